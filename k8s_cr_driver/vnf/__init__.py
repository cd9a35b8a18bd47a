"""VDUs and VNFCs of one VNF instance on one cluster; without Tacker."""
