# SPDX-License-Identifier: Apache-2.0
"""Clusters on servers: the management drivers as Tacker calls them, on machines, with a cloud that only lists them."""
