# SPDX-License-Identifier: Apache-2.0
"""VDUs and VNFCs of one VNF instance on one cluster; without Tacker."""
