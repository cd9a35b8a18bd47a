"""The verbs of LCM and what users see of them, through Tacker's API; and `k8s-cr` beside it."""
