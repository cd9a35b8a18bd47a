# SPDX-License-Identifier: Apache-2.0
"""Clusters as users have them: kind makes them, and clusterctl installs Cluster API."""
