# SPDX-License-Identifier: Apache-2.0
"""Clusters on servers of the cloud, through Tacker and Heat: what the management drivers do there with real services."""
