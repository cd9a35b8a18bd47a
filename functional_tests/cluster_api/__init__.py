# SPDX-License-Identifier: Apache-2.0
"""Cluster API and the clusters that it makes, with its unmodified controllers."""
