# SPDX-License-Identifier: Apache-2.0
"""What a tenant's package must not contain is found wherever it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from k8s_cr_driver.vnf.tenants import Rules, violation
from tests.instance import claim, config_map, crontab, crontab_crd, obj
from tests.lcm.web import deployment

HOOKS = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"
STORAGE = "storage.k8s.io/v1"
WHOLE = "its kind is one of the whole cluster"
BASELINE = "is none of the profile baseline"
RULES = Rules(tenant_cluster_roles=("view",))


def placed(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {"namespace": "red", **manifest["metadata"]}}


def binding(kind: str, role: str, of: str = "ClusterRole") -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": role}
    return placed({**obj(RBAC, kind, "a"), "roleRef": reference})


def role(**rule: list[str]) -> dict[str, Any]:
    return placed({**obj(RBAC, "Role", "a"), "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], **rule}]})


def adding(*capabilities: str) -> dict[str, Any]:
    return {"securityContext": {"capabilities": {"add": [*capabilities]}}}


def namespace(labels: dict[str, str], **annotations: str) -> dict[str, Any]:
    made = obj("v1", "Namespace", "red")
    made["metadata"] |= {"labels": labels, "annotations": annotations}
    return made


def enforcing(level: str, **labels: str) -> dict[str, str]:
    return {"pod-security.kubernetes.io/enforce": level, **labels}


def with_pod(**spec: Any) -> dict[str, Any]:
    """A custom resource with a template of Pods within."""
    return placed(obj("stable.example.com/v1", "CronTab", "tab", spec={"jobs": [{"template": {"spec": spec}}]}))


def annotated(kind: str, **annotations: str) -> dict[str, Any]:
    made = placed(obj("networking.k8s.io/v1", kind, "a"))
    made["metadata"]["annotations"] = annotations
    return made


def with_pods(**annotations: str) -> dict[str, Any]:
    template = {"metadata": {"annotations": annotations}, "spec": {}}
    return placed(obj("apps/v1", "DaemonSet", "a", spec={"template": template}))


def service(**spec: Any) -> dict[str, Any]:
    return placed(obj("v1", "Service", "a", spec=spec))


def converting() -> dict[str, Any]:
    crd = crontab_crd()
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://192.0.2.1"}}}
    return crd


def of_group(group: str) -> dict[str, Any]:
    crd = crontab_crd()
    crd["spec"]["group"] = group
    return crd


def claiming(**spec: Any) -> dict[str, Any]:
    made = placed(claim("a"))
    made["spec"] = {**made.get("spec", {}), **spec}
    return made


CLUSTER_SCOPED = [
    obj(HOOKS, "ValidatingWebhookConfiguration", "a"),
    obj(HOOKS, "MutatingAdmissionPolicyBinding", "a"),
    obj("apiregistration.k8s.io/v1", "APIService", "a"),
    obj(RBAC, "ClusterRole", "a"),
    obj(RBAC, "ClusterRoleBinding", "a"),
    obj("scheduling.k8s.io/v1", "PriorityClass", "a"),
    obj("node.k8s.io/v1", "RuntimeClass", "a"),
    obj("v1", "PersistentVolume", "a"),
    obj("v1", "Node", "a"),
    obj(STORAGE, "StorageClass", "a"),
    obj(STORAGE, "CSIDriver", "a"),
    obj(STORAGE, "VolumeAttachment", "a"),
    obj(STORAGE, "VolumeAttributesClass", "a"),
    obj("networking.k8s.io/v1", "IngressClass", "a"),
    obj("networking.k8s.io/v1", "ServiceCIDR", "a"),
    obj("networking.k8s.io/v1", "IPAddress", "a"),
    obj("gateway.networking.k8s.io/v1", "GatewayClass", "a"),
    obj("policy.networking.k8s.io/v1alpha1", "AdminNetworkPolicy", "a"),
    obj("certificates.k8s.io/v1", "CertificateSigningRequest", "a"),
    obj("certificates.k8s.io/v1beta1", "ClusterTrustBundle", "a"),
    obj("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "a"),
    obj("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "a"),
    obj("resource.k8s.io/v1", "DeviceClass", "a"),
    obj("resource.k8s.io/v1", "ResourceSlice", "a"),
    obj("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "a"),
    obj("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "a"),
    obj("internal.apiserver.k8s.io/v1alpha1", "StorageVersion", "a"),
    obj("cert-manager.io/v1", "ClusterIssuer", "a"),
    obj("kyverno.io/v1", "ClusterPolicy", "a"),
]


@pytest.mark.parametrize("forbidden", CLUSTER_SCOPED, ids=lambda one: one["kind"])
def test_a_kind_outside_of_namespaces_is_a_violation_unless_the_operator_lists_it(forbidden: dict[str, Any]) -> None:
    assert WHOLE in violation([placed(deployment(1)), forbidden], RULES)
    assert violation([forbidden], replace(RULES, tenant_kinds=[f"{forbidden['kind']}*"])) == ""


@pytest.mark.parametrize(
    ("forbidden", "words"),
    [
        (placed(obj("v1", "Endpoints", "a")), "leads traffic of a Service to any address"),
        (placed(obj("discovery.k8s.io/v1", "EndpointSlice", "a")), "leads traffic of a Service to any address"),
        (placed(obj("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "a")), "network plugins, which run on the node"),
        (placed(obj(STORAGE, "CSIStorageCapacity", "a")), "what the scheduler knows"),
        (placed(obj("apps/v1", "ControllerRevision", "a")), "only controllers write"),
        (placed(obj("multicluster.x-k8s.io/v1alpha1", "ServiceImport", "a")), "leads traffic of a Service"),
        (binding("RoleBinding", "cluster-admin"), "roleRef: the ClusterRole cluster-admin is none that the operator lists"),
        (binding("RoleBinding", "admin"), "roleRef: the ClusterRole admin is none"),
        (binding("RoleBinding", "operators", "Role"), "roleRef: the Role operators is none of the package"),
        (role(verbs=["*"]), "rules[0].verbs: * gives more"),
        (role(verbs=["get", "escalate"]), "rules[0].verbs: escalate gives more"),
        (role(verbs=["impersonate"], resources=["serviceaccounts"]), "rules[0].verbs: impersonate"),
        (role(verbs=["create"], resources=["rolebindings"]), "rules[0].resources: rolebindings gives more"),
        (role(verbs=["create"], resources=["serviceaccounts/token"]), "rules[0].resources: serviceaccounts/token"),
        (role(verbs=["patch"], resources=["endpointslices"]), "rules[0].resources: endpointslices"),
        (role(verbs=["patch"], resources=["*"]), "rules[0].resources: * gives more"),
        (role(apiGroups=["*"]), "rules[0].apiGroups: * gives more"),
        (namespace({}), "metadata.labels: set pod-security.kubernetes.io/enforce: baseline"),
        (namespace(enforcing("privileged")), "metadata.labels: set pod-security.kubernetes.io/enforce"),
        (namespace(enforcing("baseline", **{"pod-security.kubernetes.io/enforce-version": "v1.20"})), "is not latest"),
        (namespace(enforcing("baseline", **{"control-plane": "x"})), "metadata.labels.control-plane: may switch off"),
        (namespace(enforcing("baseline", **{"admission.gatekeeper.sh/ignore": "x"})), "may switch off"),
        (namespace(enforcing("baseline", **{"resource.kubernetes.io/admin-access": "true"})), "may switch off"),
        (namespace(enforcing("baseline"), **{"scheduler.alpha.kubernetes.io/node-selector": "a=b"}), "may switch off"),
        (converting(), "spec.conversion: its webhook reads and changes the objects of all"),
        (of_group("gateway.networking.k8s.io"), "spec.group: is one of Kubernetes"),
        (with_pod(hostNetwork=True), "spec.jobs[0].template.spec.hostNetwork: is a namespace of the node"),
        (with_pod(hostPID=True), "hostPID"),
        (with_pod(hostIPC="true"), "hostIPC"),
        (with_pod(volumes=[{"hostPath": {"path": "/"}}]), "spec.jobs[0].template.spec.volumes[0].hostPath: is a folder"),
        (with_pod(extraMounts=[{"hostPath": "/var/run"}]), "extraMounts[0].hostPath: is a folder of the node"),
        (with_pod(volumes=[{"hostDisk": {"path": "/"}}]), "volumes[0].hostDisk: is a file of the node"),
        (with_pod(volumes=[{"gitRepo": {"repository": "a"}}]), "volumes[0].gitRepo: runs a program on the node"),
        (with_pod(volumes=[{"flexVolume": {"driver": "a"}}]), "volumes[0].flexVolume: runs a program"),
        (with_pod(containers=[{"securityContext": {"privileged": True}}]), "containers[0].securityContext.privileged"),
        (with_pod(initContainers=[{"securityContext": {"privileged": True}}]), "initContainers[0].securityContext.privileged"),
        (with_pod(containers=[{"ports": [{"hostPort": 80}]}]), "containers[0].ports[0].hostPort: is a port of the node"),
        (with_pod(containers=[adding("SYS_ADMIN")]), f"containers[0].securityContext.capabilities.add: SYS_ADMIN {BASELINE}"),
        (with_pod(ephemeralContainers=[adding("all")]), f"add: all {BASELINE}"),
        (with_pod(containers=[adding("NET_ADMIN")]), f"add: NET_ADMIN {BASELINE}"),
        (with_pod(initContainers=[adding("CHOWN", "CAP_SYS_RAWIO")]), f"add: CAP_SYS_RAWIO {BASELINE}"),
        (with_pod(securityContext={"windowsOptions": {"hostProcess": True}}), "hostProcess: has all permissions"),
        (with_pod(securityContext={"procMount": "Unmasked"}), "procMount: shows and changes"),
        (with_pod(securityContext={"seccompProfile": {"type": "Unconfined"}}), f"seccompProfile.type: {BASELINE}"),
        (with_pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}), f"appArmorProfile.type: {BASELINE}"),
        (with_pod(securityContext={"seLinuxOptions": {"type": "spc_t"}}), f"seLinuxOptions.type: {BASELINE}"),
        (with_pod(securityContext={"seLinuxOptions": {"user": "root"}}), f"seLinuxOptions.user: {BASELINE}"),
        (with_pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}), f"sysctls: kernel.msgmax {BASELINE}"),
        (with_pod(containers=[{"livenessProbe": {"httpGet": {"host": "192.0.2.1"}}}]), "httpGet.host: sends requests"),
        (with_pod(containers=[{"lifecycle": {"preStop": {"tcpSocket": {"host": "a"}}}}]), "tcpSocket.host: sends requests"),
        (with_pod(priorityClassName="system-node-critical"), "priorityClassName: displaces Pods of others"),
        (with_pods(**{"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}), BASELINE),
        (with_pods(**{"container.seccomp.security.alpha.kubernetes.io/a": "unconfined"}), BASELINE),
        (with_pods(**{"k8s.v1.cni.cncf.io/networks": "blue/net@eth1"}), "attaches a network of the namespace blue"),
        (with_pods(**{"k8s.v1.cni.cncf.io/networks": '[{"name": "net", "namespace": "blue"}]'}), "of the namespace blue"),
        (placed(obj("resource.k8s.io/v1", "ResourceClaim", "a", spec={"devices": {"requests": [{"adminAccess": True}]}})),
         "adminAccess: reaches devices of others"),
        (annotated("Ingress", **{"nginx.ingress.kubernetes.io/server-snippet": "x"}), "configures a controller"),
        (service(externalIPs=["192.0.2.1"]), "spec.externalIPs: leads traffic of others"),
        (service(loadBalancerIP="192.0.2.1"), "spec.loadBalancerIP: chooses an address"),
        (service(ports=[{"nodePort": 30080}]), "spec.ports[0].nodePort: chooses a port of all nodes"),
        (service(healthCheckNodePort=30081), "spec.healthCheckNodePort: chooses a port of all nodes"),
        (annotated("Service", **{"metallb.io/loadBalancerIPs": "192.0.2.1"}), "chooses an address"),
        (annotated("Service", **{"loadbalancer.openstack.org/load-balancer-id": "a"}), "chooses an address"),
        (service(externalName="db.blue.svc.cluster.local"), "spec.externalName: leads to a Service of another namespace"),
        (claiming(volumeName="pv-of-blue"), "spec.volumeName: chooses a volume"),
        (claiming(dataSourceRef={"kind": "PersistentVolumeClaim", "name": "a", "namespace": "blue"}), "is another one"),
        (placed(obj("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "a", spec={"source": {"volumeSnapshotContentName": "b"}})),
         "spec.source.volumeSnapshotContentName: chooses a snapshot"),
    ],
)  # fmt: skip
def test_an_object_that_reaches_beyond_a_tenant_is_found(forbidden: dict[str, Any], words: str) -> None:
    found = violation([placed(deployment(1)), forbidden], RULES)
    assert found.startswith(f"{forbidden['kind']}") and words in found


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (obj("v1", "PersistentVolume", "a", spec={"hostPath": {"path": "/"}}), "spec.hostPath: is a folder"),
        (obj("v1", "PersistentVolume", "a", spec={"local": {"path": "/etc"}}), "spec.local: is a folder"),
        (
            {
                **obj(STORAGE, "StorageClass", "a"),
                "metadata": {"name": "a", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            },
            "makes the class that of everybody",
        ),
    ],
)
def test_an_object_of_a_listed_kind_is_judged_by_its_fields(listed: dict[str, Any], words: str) -> None:
    assert words in violation([listed], replace(RULES, tenant_kinds=["PersistentVolume", "StorageClass.*"]))


def test_other_objects_are_no_violation() -> None:
    crd = crontab_crd()
    [version] = crd["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["hostPath"] = {"type": "object", "properties": {"path": {"type": "string"}}, "path": {"type": "string"}}
    secured = {"privileged": False, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}
    volumes = with_pod(hostNetwork=False, containers=[{"securityContext": secured}], volumes=[{"emptyDir": {}}])
    others = [
        namespace(enforcing("restricted", app="web")),
        placed(deployment(1)),
        placed(config_map("a", hostNetwork="true")),
        binding("RoleBinding", "view"),
        role(verbs=["create", "delete"]),
        role(resources=["*"]),
        binding("RoleBinding", "a", "Role"),
        placed(crontab("a")),
        service(type="NodePort", ports=[{"port": 80, "nodePort": 0}]),
        service(externalName="db.example.com"),
        with_pods(**{"k8s.v1.cni.cncf.io/networks": "red/net, own"}),
        claiming(),
    ]
    assert violation([crd, volumes, *others], RULES) == ""


def test_the_operator_may_allow_the_addresses_of_services() -> None:
    chosen = service(loadBalancerIP="192.0.2.1", ports=[{"nodePort": 30080}])
    assert violation([chosen], replace(RULES, allow_service_addresses=True)) == ""


def test_a_stricter_level_of_pod_security_is_demanded_if_the_operator_says_so() -> None:
    strict = replace(RULES, tenant_pod_security="restricted")
    assert "enforce: restricted" in violation([namespace(enforcing("baseline"))], strict)
    assert violation([namespace(enforcing("restricted"))], strict) == ""


def test_an_object_in_a_namespace_of_others_is_a_violation() -> None:
    asked: list[str] = []

    def may_use(name: str) -> str:
        asked.append(name)
        return "is one of others" if name == "blue" else ""

    theirs = obj("v1", "Secret", "a", namespace="blue")
    rules = replace(RULES, may_use=may_use)
    assert violation([placed(config_map("a")), theirs, theirs], rules) == "Secret blue/a: its namespace is one of others"
    assert asked == ["blue", "default"]
