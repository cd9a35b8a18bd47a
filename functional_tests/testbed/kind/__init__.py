# SPDX-License-Identifier: Apache-2.0
"""Clusters that kind makes, as users have them: a Docker daemon of the bed's own, a node image of its own, kind itself."""
