"""One cluster over HTTP; without Tacker."""
