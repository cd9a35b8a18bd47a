# SPDX-License-Identifier: Apache-2.0
"""One cluster over HTTP; without Tacker."""
