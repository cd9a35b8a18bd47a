# SPDX-License-Identifier: Apache-2.0
"""Kubeconfigs of workload clusters on their way from the credential sender to VIMs."""
