"""Cluster API and the clusters that it makes, with its unmodified controllers."""
