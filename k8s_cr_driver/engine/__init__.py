# SPDX-License-Identifier: Apache-2.0
"""The engine applies a set of objects to a cluster and waits until they are ready; its entry point is in `run.reconcile`."""
