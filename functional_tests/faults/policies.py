# SPDX-License-Identifier: Apache-2.0
"""A policy that judges the ConfigMaps of one Namespace, on the real API server."""

from __future__ import annotations

from kubernetes.client.exceptions import ApiException

from ..cluster import Cluster
from ..objects import Object, config_map, make

GROUP = "admissionregistration.k8s.io/v1"


def policy(where: str, expression: str, denial: str, *operations: str) -> list[Object]:
    """It has the name of the Namespace `where`, and denies what does not meet the CEL `expression`."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": ["configmaps"]}]
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": expression, "message": denial}],
    }
    selected = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": where}}}
    binding = {"policyName": where, "validationActions": ["Deny"], "matchResources": selected}
    return [
        make(GROUP, "ValidatingAdmissionPolicy", where, spec=spec),
        make(GROUP, "ValidatingAdmissionPolicyBinding", where, spec=binding),
    ]


def is_enforced(cluster: Cluster, where: str, denial: str, **data: str) -> bool:
    """Whether a ConfigMap `probe` with that data is denied: the API server needs some seconds until it obeys a new policy."""
    try:
        cluster.create(config_map("probe", where, **data))
    except ApiException as error:
        return denial in str(error)
    cluster.delete("ConfigMap", "probe", where)
    return False
