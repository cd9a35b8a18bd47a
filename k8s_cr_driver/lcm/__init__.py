# SPDX-License-Identifier: Apache-2.0
"""What Tacker calls: the LCM verbs for VNF instances. The only folder that imports tacker."""
