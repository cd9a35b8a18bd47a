# SPDX-License-Identifier: Apache-2.0
"""Kubernetes infra-driver for Tacker that manages custom resources of any kind."""
