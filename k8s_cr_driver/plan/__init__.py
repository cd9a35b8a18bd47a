# SPDX-License-Identifier: Apache-2.0
"""What becomes of each object: the rule that operations and `k8s-cr` follow. Pure."""
