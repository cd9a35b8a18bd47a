# SPDX-License-Identifier: Apache-2.0
"""The engine makes a set of objects exist on a cluster and waits until they are ready; enter by `reconcile.reconcile`."""
