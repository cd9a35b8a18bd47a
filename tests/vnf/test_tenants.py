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


def named(name: str) -> dict[str, Any]:
    return service(type="ExternalName", externalName=name)


def converting() -> dict[str, Any]:
    crd = crontab_crd()
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://192.0.2.1"}}}
    return crd


def of_group(group: str) -> dict[str, Any]:
    crd = crontab_crd()
    crd["spec"]["group"] = group
    return crd


CLAIM: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
OF_BLUE = {"matchLabels": {"tenant": "blue"}}


def templates(**spec: Any) -> dict[str, Any]:
    """Of claims, as a StatefulSet has them."""
    return placed(obj("apps/v1", "StatefulSet", "a", spec={"volumeClaimTemplates": [{"spec": {**CLAIM, **spec}}]}))


def ephemeral(**spec: Any) -> dict[str, Any]:
    return with_pod(volumes=[{"ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, **spec}}}}])


def noted(manifest: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    made = placed(manifest)
    return {**made, "metadata": {**made["metadata"], "annotations": {name: value}}}


def claiming(**spec: Any) -> dict[str, Any]:
    made = placed(claim("a"))
    made["spec"] = {**made.get("spec", {}), **spec}
    return made


def bound_to(kind: str, name: str) -> dict[str, Any]:
    own = {"kind": "ServiceAccount", "name": "default", "namespace": "red"}
    return {**binding("RoleBinding", "view"), "subjects": [own, {"kind": kind, "name": name}]}


OTHERS, INNER = "leads to a Service of another namespace", "leads to a host that is known in the cluster only"
EXTERNAL_NAMES = {
    "db.blue.svc.cluster.local": OTHERS,
    "db.blue.svc": OTHERS,
    "db.blue.svc.": OTHERS,
    "db.blue.svc.k8s.corp.example": OTHERS,
    "pod-0.db.blue.SVC.example.com": OTHERS,
    "10-0-0-1.blue.pod.cluster.local": OTHERS,
    "db.red.svc.db.blue.svc.example.com": OTHERS,
    "kubernetes.default": INNER,
    "dns.kube-system": INNER,
    "db": INNER,
    "localhost": INNER,
    "a.localhost": INNER,
    "db.cluster.local": INNER,
    "metadata.google.internal": INNER,
    "169.254.169.254": "leads to an address",
    "10.1": "leads to an address",
    "fd00::1": INNER,
    "0xa9fea9fe": INNER,
}
ANNOTATIONS = {
    ("nginx.ingress.kubernetes.io/auth-tls-secret", "blue/ca"): "names an object of the namespace blue",
    ("nginx.ingress.kubernetes.io/auth-secret", "blue/basic"): "names an object of the namespace blue",
    ("nginx.ingress.kubernetes.io/proxy-ssl-secret", " blue/ca "): "names an object of the namespace blue",
    ("nginx.ingress.kubernetes.io/auth-proxy-set-headers", "red/a, blue/a"): "names an object of the namespace blue",
    ("haproxy.org/ssl-certificate", "blue/ca"): "names an object of the namespace blue",
    ("haproxy-ingress.github.io/auth-secret", "file:///etc/passwd"): "names a file of the controller",
    ("haproxy-ingress.github.io/config-backend", "server a"): "configures a controller",
    ("projectcontour.io/tls-cert-namespace", "blue"): "names an object of the namespace blue",
    ("traefik.ingress.kubernetes.io/router.middlewares", "red-a@kubernetescrd,blue-a@kubernetescrd"): "of another namespace",
    ("alb.ingress.kubernetes.io/group.name", "shared"): "joins the load balancer of others",
    ("replicator.v1.mittwald.de/replicate-from", "blue/secret"): "names an object of the namespace blue",
    ("reflector.v1.k8s.emberstack.com/reflects", "blue/secret"): "names an object of the namespace blue",
    ("nginx.org/server-snippets", "x"): "configures a controller",
    ("haproxy-ingress.github.io/secure-crt-secret", "secret://blue/ca"): "names an object of the namespace blue",
    ("haproxy-ingress.github.io/auth-secret", "secret:blue/ca"): "names an object of the namespace blue",
    ("k8s.apisix.apache.org/svc-namespace", "blue"): "names an object of the namespace blue",
    ("nginx.ingress.kubernetes.io/auth-url", "http://db.blue.svc.cluster.local/"): OTHERS,
    ("nginx.ingress.kubernetes.io/mirror-target", "https://db.blue.svc:8443$request_uri"): OTHERS,
    ("nginx.ingress.kubernetes.io/auth-url", "HTTP://169.254.169.254/latest"): "leads to an address",
    ("nginx.ingress.kubernetes.io/auth-url", "http://[fd00::1]:80/"): INNER,
    ("nginx.ingress.kubernetes.io/auth-url", "http://auth.example.com@db.blue.svc/"): OTHERS,
    ("nginx.ingress.kubernetes.io/auth-url", "http://db.blue.svc\\@auth.example.com/"): OTHERS,
    ("nginx.ingress.kubernetes.io/auth-url", "http://auth.example.com\\@db.blue.svc/"): OTHERS,
    ("k8s.apisix.apache.org/auth-uri", "http://kubernetes.default/"): INNER,
    ("getambassador.io/config", "a: https://auth.example.com\nb: 'grpc://db.blue.svc:80'"): OTHERS,
}
COPIES = {
    ("replicator.v1.mittwald.de/replicate-from", "blue/secret"): "names an object of the namespace blue",
    ("reflector.v1.k8s.emberstack.com/reflects", "blue/secret"): "names an object of the namespace blue",
    ("k8s.io/CloneRequest", "blue/disk"): "names an object of the namespace blue",
    ("replicator.v1.mittwald.de/replicate-to", "blue,kube-system"): "writes copies into other namespaces",
    ("replicator.v1.mittwald.de/replicate-to-matching", "a=b"): "writes copies into other namespaces",
    ("reflector.v1.k8s.emberstack.com/reflection-auto-enabled", "true"): "writes copies into other namespaces",
    ("reflector.v1.k8s.emberstack.com/reflection-auto-namespaces", "blue"): "writes copies into other namespaces",
    ("kubed.appscode.com/sync", ""): "writes copies into other namespaces",
    ("kubed.appscode.com/sync-contexts", "b"): "writes copies into other namespaces",
}
OWN_ANNOTATIONS = {
    "nginx.ingress.kubernetes.io/auth-secret": "basic",
    "nginx.ingress.kubernetes.io/auth-tls-secret": "red/ca",
    "nginx.ingress.kubernetes.io/rewrite-target": "/a/b/$2",
    "nginx.ingress.kubernetes.io/auth-url": "https://auth.example.com/a/b",
    "nginx.ingress.kubernetes.io/whitelist-source-range": "192.0.2.0/24,2001:db8::/32",
    "nginx.ingress.kubernetes.io/backend-protocol": "HTTPS",
    "traefik.ingress.kubernetes.io/router.middlewares": "red-a@kubernetescrd",
    "projectcontour.io/tls-cert-namespace": "red",
    "example.com/image": "library/web",
    "nginx.ingress.kubernetes.io/auth-signin": "https://$host/oauth2/start?rd=$escaped_request_uri",
    "nginx.ingress.kubernetes.io/mirror-target": "http://mirror.red.svc:8080$request_uri",
    "haproxy-ingress.github.io/secure-crt-secret": "secret://red/ca",
    "haproxy-ingress.github.io/auth-tls-secret": "secret://ca",
    "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "false",
    "reflector.v1.k8s.emberstack.com/reflection-allowed-namespaces": "blue",
    "replicator.v1.mittwald.de/replicate-from": "red/secret",
    "argocd.argoproj.io/sync-wave": "1",
    "summary": "see http://grafana/",
}


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
        *(
            (role(verbs=["get", verb], resources=["pods", resource]), f"rules[0].resources: {resource} gives more")
            for resource, verb in (
                *(("namespaces", "patch"), ("namespaces", "delete"), ("namespaces/finalize", "update")),
                ("namespaces/status", "patch"),
                *(("resourcequotas", "delete"), ("resourcequotas/status", "patch"), ("limitranges", "deletecollection")),
                *(("networkpolicies", "create"), ("services/status", "patch"), ("ingresses/status", "update")),
                *(("pods/status", "patch"), ("pods/binding", "create"), ("bindings", "create"), ("*/status", "patch")),
                *(("serviceimports", "create"), ("csistoragecapacities", "create"), ("controllerrevisions", "create")),
                ("network-attachment-definitions", "create"),
            )
        ),
        (namespace({}), "metadata.labels: set pod-security.kubernetes.io/enforce: baseline"),
        (namespace(enforcing("privileged")), "metadata.labels: set pod-security.kubernetes.io/enforce"),
        (namespace(enforcing("baseline", **{"pod-security.kubernetes.io/enforce-version": "v1.20"})), "is not latest"),
        (namespace(enforcing("baseline", **{"control-plane": "x"})), "metadata.labels.control-plane: may switch off"),
        (namespace(enforcing("baseline", **{"admission.gatekeeper.sh/ignore": "x"})), "may switch off"),
        (namespace(enforcing("baseline", **{"resource.kubernetes.io/admin-access": "true"})), "may switch off"),
        *(
            (namespace(enforcing("baseline", **{name: "x"})), f"metadata.labels.{name}: may switch off")
            for name in ("name", "tenant", "istio-injection", "exempt-from-policy", "linkerd.io/inject", "k8s.example.com/a")
        ),
        (namespace(enforcing("baseline"), **{"scheduler.alpha.kubernetes.io/node-selector": "a=b"}), "may switch off"),
        (converting(), "spec.conversion: its webhook reads and changes the objects of all"),
        *(
            (of_group(group), "spec.group: is one of Kubernetes")
            for group in ("k8s.io", "gateway.networking.k8s.io", "kubernetes.io", "cluster.x-k8s.io", "x-k8s.io", "apps",
                          "infrastructure.cluster.x-k8s.io", "kueue.x-k8s.io", "a.kubernetes.io", "K8S.io")
        ),
        *(
            (bound_to(kind, name), f"subjects[1].name: {name} are the users of all")
            for kind, name in (
                *(("Group", "system:authenticated"), ("Group", "system:unauthenticated"), ("User", "system:anonymous")),
                *(("Group", "system:serviceaccounts"), ("Group", "system:serviceaccounts:blue"), ("Group", "system:masters")),
                *(("Group", "system:nodes"), ("User", "system:kube-scheduler")),
            )
        ),
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
        *((service(externalName=name), f"spec.externalName: {words}") for name, words in EXTERNAL_NAMES.items()),
        *(
            (annotated("Service", **{name: "a"}), "chooses an address")
            for name in ("metallb.universe.tf/address-pool", "metallb.io/address-pool", "io.cilium/lb-ipam-ips",
                         "kube-vip.io/loadbalancerIPs", "purelb.io/addresses", "cni.projectcalico.org/ipAddrs",
                         "service.beta.kubernetes.io/aws-load-balancer-eip-allocations",
                         "loadbalancer.openstack.org/load-balancer-address",
                         "service.beta.kubernetes.io/azure-pip-name", "ovn.kubernetes.io/ip_address",
                         "kubernetes.io/ingress.global-static-ip-name")
        ),
        *((annotated("Ingress", **{name: value}), words) for (name, value), words in ANNOTATIONS.items()),
        *((annotated("Ingress", **{name: value}), words) for (name, value), words in COPIES.items()),
        *((noted(obj("v1", "Secret", "a"), name, value), words) for (name, value), words in COPIES.items()),
        (noted(config_map("a"), "kubed.appscode.com/sync", ""), "metadata.annotations.kubed.appscode.com/sync: writes copies"),
        (noted(crontab_crd(), "replicator.v1.mittwald.de/replicate-to", "blue"), "writes copies"),
        (noted(claim("a"), "k8s.io/CloneRequest", "blue/disk"), "names an object of the namespace blue"),
        (placed(obj("cert-manager.io/v1", "Certificate", "a",
                    spec={"secretTemplate": {"annotations": {"a.io/replicate-to": "b"}}})),
         "spec.secretTemplate.annotations.a.io/replicate-to: writes copies"),
        (with_pods(**{"example.com/target": "http://db.blue.svc/"}), OTHERS),
        (service(clusterIP="10.96.0.77"), "spec.clusterIP: chooses an address"),
        (service(clusterIPs=["10.96.0.77", "fd00::77"]), "spec.clusterIPs: chooses an address"),
        (service(loadBalancerClass="internet"), "spec.loadBalancerClass: chooses a load balancer"),
        *(
            (claimed(**chosen), words)
            for claimed in (templates, ephemeral, claiming)
            for chosen, words in (
                ({"volumeName": "pv-of-blue"}, "spec.volumeName: chooses a volume"),
                ({"selector": OF_BLUE}, "spec.selector: chooses a volume"),
                ({"dataSource": {"name": "a", "namespace": "blue"}}, "dataSource.namespace: is another"),
                ({"dataSourceRef": {"name": "a", "namespace": "blue"}}, "dataSourceRef.namespace: is another"),
            )
        ),
        (placed(obj("v1", "PersistentVolumeClaim", "a", spec={"selector": OF_BLUE})), "spec.selector: chooses"),
        (placed(obj("stable.example.com/v1", "CronTab", "a", spec={"storage": {**CLAIM, "selector": OF_BLUE}})),
         "spec.storage.selector: chooses a volume"),
        (placed(obj("groupsnapshot.storage.k8s.io/v1beta1", "VolumeGroupSnapshot", "a",
                    spec={"source": {"volumeGroupSnapshotContentName": "b"}})),
         "spec.source.volumeGroupSnapshotContentName: chooses a snapshot"),
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
        namespace(enforcing("restricted", **{"app.kubernetes.io/name": "web"}), team="web"),
        placed(deployment(1)),
        placed(config_map("a", hostNetwork="true")),
        binding("RoleBinding", "view"),
        role(verbs=["create", "delete"]),
        role(resources=["*"]),
        role(verbs=["get", "list", "watch"], resources=["namespaces", "services/status", "networkpolicies"]),
        role(verbs=["patch"], resources=["services", "crontabs/status", "pods/exec", "ingresses"]),
        placed(obj("networking.k8s.io/v1", "NetworkPolicy", "a", spec={"podSelector": {}})),
        binding("RoleBinding", "a", "Role"),
        placed(crontab("a")),
        service(type="NodePort", ports=[{"port": 80, "nodePort": 0}]),
        *map(named, ("db.example.com", "db.example.com.", "svc.example.com", "a.svc", "db.red.svc", "db.red.svc.example.com")),
        named("xn--bcher-kva.xn--p1ai"),
        annotated("Ingress", **OWN_ANNOTATIONS),
        *(bound_to("Group", name) for name in ("system:serviceaccounts:red", "team")),
        bound_to("User", "system:serviceaccount:monitoring:prometheus"),
        *map(of_group, ("stable.example.com", "k8s.io.example.com", "mk8s.io")),
        with_pods(**{"k8s.v1.cni.cncf.io/networks": "red/net, own"}),
        claiming(),
        templates(dataSourceRef={"kind": "VolumeSnapshot", "name": "a", "namespace": "red"}),
        ephemeral(selector=None, volumeName=""),
        *(service(clusterIP=none, clusterIPs=[none]) for none in ("None", "")),
        noted(config_map("a", annotations="hostPath"), "example.com/a", "b"),
    ]
    assert violation([crd, volumes, *others], RULES) == ""


def test_the_operator_may_allow_the_addresses_of_services() -> None:
    chosen = service(loadBalancerIP="192.0.2.1", clusterIP="10.96.0.77", loadBalancerClass="a", ports=[{"nodePort": 30080}])
    assert violation([chosen], replace(RULES, allow_service_addresses=True)) == ""


def test_the_operator_may_list_hosts_that_are_not_public() -> None:
    listed = replace(RULES, tenant_external_names=["*.corp.internal", "db.blue.svc"])
    assert violation([named("db.Corp.internal."), named("db.blue.svc")], listed) == ""
    assert INNER in violation([named("metadata.google.internal")], listed)


def test_the_listed_hosts_are_also_those_of_urls() -> None:
    url = annotated("Ingress", **{"nginx.ingress.kubernetes.io/auth-url": "http://auth.blue.svc:4180/auth"})
    assert violation([url], replace(RULES, tenant_external_names=["auth.blue.svc"])) == ""


def test_the_operator_may_list_labels_of_namespaces() -> None:
    listed = replace(RULES, tenant_namespace_labels=["istio-injection", "example.com/*"])
    chosen = {"istio-injection": "enabled", "example.com/team": "red"}
    assert violation([namespace(enforcing("baseline", **chosen))], listed) == ""
    assert "metadata.labels.name: may switch off" in violation([namespace(enforcing("baseline", name="a"))], listed)
    assert "set pod-security" in violation([namespace({})], replace(RULES, tenant_namespace_labels=["*"]))


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
