# SPDX-License-Identifier: Apache-2.0
"""What a tenant's package must not contain is found wherever it stands."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.vnf.tenants import violation
from tests.instance import config_map, crontab_crd, obj
from tests.lcm.web import deployment

HOOKS = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"


def binding(kind: str, role: str) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return {**obj(RBAC, kind, "a"), "roleRef": reference}


def adding(*capabilities: str) -> dict[str, Any]:
    return {"securityContext": {"capabilities": {"add": [*capabilities]}}}


def namespace(mode: str, level: str) -> dict[str, Any]:
    made = obj("v1", "Namespace", "red")
    made["metadata"]["labels"] = {f"pod-security.kubernetes.io/{mode}": level}
    return made


def with_pod(**spec: Any) -> dict[str, Any]:
    """A custom resource with a template of Pods within."""
    return obj("stable.example.com/v1", "CronTab", "tab", spec={"jobs": [{"template": {"spec": spec}}]})


@pytest.mark.parametrize(
    ("forbidden", "words"),
    [
        (obj(HOOKS, "ValidatingWebhookConfiguration", "a"), "controls the whole cluster"),
        (obj(HOOKS, "MutatingAdmissionPolicyBinding", "a"), "controls the whole cluster"),
        (obj("apiregistration.k8s.io/v1", "APIService", "a"), "controls the whole cluster"),
        (binding("ClusterRoleBinding", "view"), "controls the whole cluster"),
        (binding("RoleBinding", "cluster-admin"), "roleRef: gives all permissions"),
        (obj("v1", "Namespace", "kube-system"), "one of the cluster"),
        (obj("v1", "Secret", "a", namespace="kube-system"), "one of the cluster"),
        (with_pod(hostNetwork=True), "spec.jobs[0].template.spec.hostNetwork: is a namespace of the node"),
        (with_pod(hostPID=True), "hostPID"),
        (with_pod(volumes=[{"hostPath": {"path": "/"}}]), "spec.jobs[0].template.spec.volumes[0].hostPath: is a folder"),
        (with_pod(containers=[{"securityContext": {"privileged": True}}]), "containers[0].securityContext.privileged"),
        (with_pod(initContainers=[{"securityContext": {"privileged": True}}]), "initContainers[0].securityContext.privileged"),
        (with_pod(containers=[{"ports": [{"hostPort": 80}]}]), "containers[0].ports[0].hostPort: is a port of the node"),
        (obj("v1", "Service", "a", spec={"externalIPs": ["192.0.2.1"]}), "spec.externalIPs: leads traffic of others"),
        (obj(RBAC, "ClusterRole", "a"), "controls the whole cluster"),
        (obj("v1", "PersistentVolume", "a", spec={"hostPath": {"path": "/"}}), "spec.hostPath: is a folder"),
        (obj("v1", "PersistentVolume", "a", spec={"local": {"path": "/etc"}}), "spec.local: is a folder"),
        (with_pod(containers=[adding("SYS_ADMIN")]), "containers[0].securityContext.capabilities.add: SYS_ADMIN reaches"),
        (with_pod(ephemeralContainers=[adding("all")]), "add: all reaches the node"),
        (with_pod(initContainers=[adding("NET_ADMIN", "CAP_SYS_RAWIO")]), "add: CAP_SYS_RAWIO reaches the node"),
        (with_pod(securityContext={"windowsOptions": {"hostProcess": True}}), "hostProcess: has all permissions"),
        (with_pod(securityContext={"procMount": "Unmasked"}), "procMount: shows and changes"),
        (namespace("enforce", "privileged"), "pod-security.kubernetes.io/enforce: lets Pods reach"),
    ],
)
def test_an_object_that_reaches_beyond_a_tenant_is_found(forbidden: dict[str, Any], words: str) -> None:
    found = violation([deployment(1), forbidden])
    assert found.startswith(f"{forbidden['kind']}") and words in found


def test_other_objects_are_no_violation() -> None:
    crd = crontab_crd()
    [version] = crd["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["hostPath"] = {"type": "object", "properties": {"path": {"type": "string"}}, "path": {"type": "string"}}
    secured = {"privileged": False, "capabilities": {"add": ["NET_ADMIN", "IPC_LOCK"], "drop": ["ALL"]}}
    volumes = with_pod(hostNetwork=False, containers=[{"securityContext": secured}], volumes=[{"emptyDir": {}}])
    others = [namespace("enforce", "restricted"), deployment(1), config_map("a"), binding("RoleBinding", "view")]
    assert violation([crd, volumes, *others]) == ""
