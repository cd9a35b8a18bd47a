"""A VNF package: a CSAR folder becomes checked objects; without a cluster."""
