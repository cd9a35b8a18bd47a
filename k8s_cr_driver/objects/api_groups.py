# SPDX-License-Identifier: Apache-2.0
"""The API groups that Kubernetes itself serves, which no CustomResourceDefinition describes.

Taken from the OpenAPI description of Kubernetes 1.36.
"""

from __future__ import annotations

from k8s_cr_driver.objects.keys import GroupKind

GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    }
)

REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""Groups whose objects are requests: the server evaluates them and never stores them."""


def is_builtin(kind: GroupKind) -> bool:
    """Whether Kubernetes itself serves `kind`, and no CustomResourceDefinition or aggregated API server."""
    return kind.group in GROUPS
