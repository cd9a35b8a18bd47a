# SPDX-License-Identifier: Apache-2.0
"""Manifests, as their projects release them, become the folder of a VNF package. Pure; without a cluster."""
