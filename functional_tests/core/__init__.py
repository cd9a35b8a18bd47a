# SPDX-License-Identifier: Apache-2.0
"""The verbs of LCM and what users see of them, through Tacker's API; and `k8s-cr` beside it."""
