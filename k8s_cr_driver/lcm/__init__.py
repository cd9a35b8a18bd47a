"""What Tacker calls: the LCM verbs. The only folder that imports tacker."""
