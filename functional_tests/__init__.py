# SPDX-License-Identifier: Apache-2.0
"""Tests that use a real Tacker on a real Kubernetes; the package `testbed` starts both."""
