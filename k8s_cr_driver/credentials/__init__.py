# SPDX-License-Identifier: Apache-2.0
"""The kubeconfigs of workload clusters, on their way from the management cluster to their users.

Both ends of one protocol (`envelope`): the sender, which a management driver calls, and the receiver of `k8s-cr receive`.
"""
