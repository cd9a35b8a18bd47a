# SPDX-License-Identifier: Apache-2.0
"""`validate --update-of` and the engine call the same changes immutable, whatever the words of the API server."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest

from k8s_cr_driver.cli.package_update import immutable_changes
from k8s_cr_driver.errors import ApiError, Refused
from k8s_cr_driver.objects.immutable import changed_fields, is_replaced
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.objects.marks import KEEP, SHARED
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.write_errors import Immutable, explained
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import BLUE, Instance, crontab, crontab_crd, obj
from tests.times import change_times
from tests.writes.test_replacement import POD, annotated, invalid, update_of

RBAC = "rbac.authorization.k8s.io/v1"


class Case(NamedTuple):
    """A field of a kind with two values, and the field in the API server's response to the change."""

    api_version: str
    kind: str
    path: str
    before: Any
    after: Any
    where: str

    def manifest(self, value: Any, **fields: Any) -> Object:
        first, *rest = self.path.split(".")
        for step in reversed(rest):
            value = {step: value}
        return obj(self.api_version, self.kind, "blue", **{first: value, **fields})


A, B = {"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "2"}}
CASES = [
    Case("apps/v1", "StatefulSet", "spec.serviceName", "a", "b", "spec"),
    Case("apps/v1", "StatefulSet", "spec.podManagementPolicy", None, "Parallel", "spec"),
    Case("apps/v1", "Deployment", "spec.selector", A, B, "spec.selector"),
    Case("apps/v1", "DaemonSet", "spec.selector", A, B, "spec.selector"),
    Case("apps/v1", "ControllerRevision", "data", {"a": 1}, {"a": 2}, "data"),
    Case(RBAC, "RoleBinding", "roleRef.name", "a", "b", "roleRef"),
    Case(RBAC, "ClusterRoleBinding", "roleRef.kind", "Role", "ClusterRole", "roleRef"),
    Case("scheduling.k8s.io/v1", "PriorityClass", "value", 1, 2, "value"),
    Case("scheduling.k8s.io/v1", "PriorityClass", "preemptionPolicy", None, "Never", "preemptionPolicy"),
    Case("storage.k8s.io/v1", "StorageClass", "provisioner", "a", "b", "provisioner"),
    Case("storage.k8s.io/v1", "StorageClass", "reclaimPolicy", None, "Retain", "reclaimPolicy"),
    Case("storage.k8s.io/v1", "CSIDriver", "spec.attachRequired", None, False, "spec.attachedRequired"),
    Case("storage.k8s.io/v1", "VolumeAttributesClass", "driverName", "a", "b", "driverName"),
    Case("storage.k8s.io/v1", "CSIStorageCapacity", "storageClassName", "a", "b", "storageClassName"),
    Case("v1", "PersistentVolumeClaim", "spec.storageClassName", "a", "b", "spec"),
    Case("v1", "PersistentVolumeClaim", "spec.volumeMode", None, "Block", "volumeMode"),
    Case("v1", "PersistentVolumeClaim", "spec.volumeName", "a", "b", "spec"),
    Case("v1", "PersistentVolumeClaim", "spec.dataSourceRef", {"name": "a"}, {"name": "b"}, "spec"),
    Case("v1", "PersistentVolume", "spec.hostPath", {"path": "/a"}, {"path": "/b"}, "spec.persistentvolumesource"),
    Case("v1", "PersistentVolume", "spec.nodeAffinity", {"required": {}}, None, "nodeAffinity"),
    Case("v1", "Service", "spec.clusterIP", "10.0.0.1", "10.0.0.2", "spec.clusterIPs[0]"),
    Case("v1", "Service", "spec.clusterIP", None, "None", "spec.clusterIPs[0]"),
    Case("v1", "Service", "spec.clusterIP", "None", None, "spec.clusterIP"),
    Case("v1", "Service", "spec.ipFamilies", ["IPv4"], ["IPv6"], "spec.ipFamilies[0]"),
    Case("v1", "ResourceQuota", "spec.scopes", ["BestEffort"], ["NotBestEffort"], "spec.scopes"),
    Case("networking.k8s.io/v1", "IngressClass", "spec.controller", "a", "b", "spec.controller"),
    Case("networking.k8s.io/v1", "ServiceCIDR", "spec.cidrs", ["10.0.0.0/24"], ["10.1.0.0/24"], "spec.cidrs[0]"),
    Case("networking.k8s.io/v1", "IPAddress", "spec.parentRef", {"name": "a"}, {"name": "b"}, "spec.parentRef"),
    Case("node.k8s.io/v1", "RuntimeClass", "handler", "a", "b", "handler"),
    Case("discovery.k8s.io/v1", "EndpointSlice", "addressType", "IPv4", "IPv6", "addressType"),
    Case("resource.k8s.io/v1", "ResourceClaim", "spec", {"devices": {}}, {"devices": {"a": 1}}, "spec"),
    Case("resource.k8s.io/v1", "ResourceClaimTemplate", "spec", {"spec": {}}, {"spec": {"a": 1}}, "spec"),
    Case("apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec.scope", "Cluster", "Namespaced", "spec.scope"),
    Case("v1", "Secret", "type", "a", "b", "type"),
]
MUTABLE = [
    Case("v1", "Secret", "type", None, "Opaque", ""),
    Case(RBAC, "RoleBinding", "roleRef.apiGroup", None, "rbac.authorization.k8s.io", ""),
    Case("apps/v1", "StatefulSet", "spec.podManagementPolicy", None, "OrderedReady", ""),
    Case("apps/v1", "StatefulSet", "spec.ordinals", None, {"start": 1}, ""),
    Case("v1", "ReplicationController", "spec.selector", {"a": "1"}, {"a": "2"}, ""),
    Case("v1", "PersistentVolumeClaim", "spec.volumeMode", "Filesystem", None, ""),
    Case("v1", "PersistentVolumeClaim", "spec.volumeName", None, "a", ""),
    Case("v1", "PersistentVolumeClaim", "spec.resources.requests", {"storage": "1Gi"}, {"storage": "2Gi"}, ""),
    Case("v1", "PersistentVolume", "spec.capacity", {"storage": "1Gi"}, {"storage": "2Gi"}, ""),
    Case("v1", "PersistentVolume", "spec.nodeAffinity", None, {"required": {}}, ""),
    Case("v1", "Service", "spec.clusterIP", "10.0.0.1", None, ""),
    Case("v1", "Service", "spec.ipFamilies", ["IPv4"], ["IPv4", "IPv6"], ""),
    Case("v1", "Service", "spec", {"type": "ExternalName"}, {"clusterIP": "10.0.0.2"}, ""),
    Case("v1", "Service", "spec", {"loadBalancerClass": "a", "type": "LoadBalancer"}, {"type": "NodePort"}, ""),
    Case("v1", "ResourceQuota", "spec.scopes", ["a", "b"], ["b", "a"], ""),
    Case("storage.k8s.io/v1", "StorageClass", "allowVolumeExpansion", None, True, ""),
    Case("networking.k8s.io/v1", "ServiceCIDR", "spec.cidrs", ["10.0.0.0/24"], ["10.0.0.0/24", "fd00::/64"], ""),
    Case("batch/v1", "Job", "spec", {"completionMode": "Indexed", "completions": 1, "parallelism": 1},
         {"completionMode": "Indexed", "completions": 2, "parallelism": 2}, ""),
]  # fmt: skip
REPLACED = [
    Case("batch/v1", "Job", "spec.template", {"metadata": {}}, {"metadata": {"labels": {"a": "b"}}}, "spec.template"),
    Case("v1", "Pod", "spec", {"nodeName": "a"}, {"nodeName": "b"}, "spec"),
]


def judged(old: Object, new: Object, where: str) -> Exception:
    """What the engine makes of a refusal that says nothing of immutability."""
    refusal = ApiError("PATCH", 422, "Invalid", "no", [("FieldValueInvalid", where, "no")])
    return explained(refusal, resource_for(new), BLUE, old)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.path}-{case.after}")
def test_validate_and_the_engine_call_the_same_change_immutable(case: Case) -> None:
    old, new = case.manifest(case.before), case.manifest(case.after)
    [problem] = immutable_changes([old], [new])
    assert f"{case.path} is immutable and changes" in problem
    if key_of(new).group_kind in SHARED:
        assert problem.endswith("changes. Keep it, or rename the object: its kind is never replaced")
        assert "It is never replaced" in str(judged(old, new, case.where))
    else:
        assert isinstance(judged(old, new, case.where), Immutable)


@pytest.mark.parametrize("case", MUTABLE, ids=lambda case: f"{case.kind}-{case.path}-{case.after}")
def test_a_change_that_the_server_accepts_is_no_problem(case: Case) -> None:
    old, new = case.manifest(case.before), case.manifest(case.after)
    assert not changed_fields(old, new)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"type": "LoadBalancer", "loadBalancerClass": "b"}, "spec.loadBalancerClass"),
        ({"type": "LoadBalancer", "loadBalancerClass": "a", "healthCheckNodePort": 2}, "spec.healthCheckNodePort"),
    ],
)
def test_of_a_load_balancer_class_and_health_port_stay(spec: dict[str, Any], path: str) -> None:
    before = {"type": "LoadBalancer", "loadBalancerClass": "a", "healthCheckNodePort": 1}
    assert changed_fields(obj("v1", "Service", "blue", spec=before), obj("v1", "Service", "blue", spec=spec)) == [path]


def test_completions_of_a_job_stay_unless_it_is_indexed() -> None:
    old, new = (obj("batch/v1", "Job", "blue", spec={"completions": count}) for count in (1, 2))
    assert changed_fields(old, new) == ["spec.completions"]


@pytest.mark.parametrize("case", REPLACED, ids=lambda case: case.kind)
def test_a_kind_that_is_always_replaced_is_no_problem_for_either(case: Case) -> None:
    old, new = case.manifest(case.before), case.manifest(case.after)
    assert not list(immutable_changes([old], [new]))
    assert isinstance(judged(old, new, case.where), Immutable)
    assert is_replaced(new)


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
@pytest.mark.parametrize("frozen", [True, False])
def test_data_is_immutable_only_where_the_object_says_so(kind: str, frozen: bool) -> None:
    """A Secret's `stringData` is data, too."""
    if kind == "Secret":
        texts = [obj("v1", kind, "blue", stringData={"a": value}, immutable=frozen) for value in "xy"]
        assert changed_fields(*texts) == (["stringData"] if frozen else [])
    old, new = (obj("v1", kind, "blue", data={"a": value}, immutable=frozen) for value in "xy")
    assert bool(list(immutable_changes([old], [new]))) == frozen
    assert isinstance(judged(old, new, "data"), Immutable) == frozen


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.path}")
def test_a_field_that_stays_is_no_change(case: Case) -> None:
    old = case.manifest(case.before)
    assert not changed_fields(old, old)
    assert not isinstance(judged(old, old, case.where), Immutable)


def test_a_refusal_of_another_field_is_not_one_of_immutability() -> None:
    old, new = (CASES[2].manifest(value) for value in (CASES[2].before, CASES[2].after))
    assert not isinstance(judged(old, new, "spec.replicas"), Immutable)


def test_a_pod_whose_new_manifest_is_wrong_is_not_replaced() -> None:
    """Its spec differs from the live one, which has defaults, in any case."""
    old, new = (REPLACED[1].manifest(value) for value in (REPLACED[1].before, REPLACED[1].after))
    assert not isinstance(judged(old, new, "spec.containers[0].image"), Immutable)


@pytest.mark.parametrize("words", [
    'spec.cronSpec: Unsupported value: "immutable-os": supported values: "hourly"',
    'spec.cronSpec: Invalid value: "immutable": must be a schedule',
    "admission webhook said: valid-after-creation-only is no schedule",
    "spec.cronSpec: Too long: may not be more than 3 bytes",
])  # fmt: skip
def test_an_object_that_is_replaced_stays_if_only_a_value_or_a_name_says_immutable(api: FakeApi, words: str) -> None:
    def immutable_cache(schedule: str) -> Object:
        made = crontab("immutable-cache", schedule=schedule)
        made["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
        return made

    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), immutable_cache("* * * * *")])
    refusal = faults.status(422, "Invalid", f'CronTab.stable.example.com "immutable-cache" is invalid: {words}')
    api.fail(refusal, method="PATCH", path="/crontabs/immutable-cache$", times=9)
    with pytest.raises(Refused):
        blue.reconcile([crontab_crd(), immutable_cache("valid-after-creation-only")])
    assert api.names("CronTab", "default") == ["immutable-cache"]


PORT = ("FieldValueInvalid", "spec.containers[0].ports[0].containerPort", "Invalid value: 99999: must be between 1 and 65535")
FORBIDDEN = ("FieldValueForbidden", "spec", "Forbidden: pod updates may not change fields other than `spec.tolerations`")


@pytest.mark.parametrize("is_invalid", [True, False])
def test_an_object_is_replaced_only_if_the_server_would_create_it(api: FakeApi, is_invalid: bool) -> None:
    """All faults of a change are named at once, and the first may be that a field never changes."""
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([POD])
    uid = api.get("Pod", "default", "one")["metadata"]["uid"]
    changed = copy.deepcopy(POD)
    changed["metadata"]["annotations"] = {"k8s-cr-driver/replace": "true"}
    changed["spec"]["containers"][0]["ports"] = [{"containerPort": 99999}]
    api.fail(invalid(PORT, FORBIDDEN), method="PATCH", path="/pods/", when=update_of(api, POD), times=50)
    if is_invalid:
        api.fail(invalid(PORT), method="POST", path="/pods", times=50)
        with pytest.raises(Refused, match="must be between 1 and 65535"):
            blue.reconcile([changed])
    else:
        blue.reconcile([changed])
    assert (api.get("Pod", "default", "one")["metadata"]["uid"] == uid) is is_invalid
    assert api.names("Pod", "default") == ["one"]


@pytest.mark.parametrize(
    ("answer", "is_replaced"),
    [
        (faults.status(403, "Forbidden", 'pods "one-trial" is forbidden: violates PodSecurity "restricted": x'), False),
        (faults.status(403, "Forbidden", 'admission webhook "w" denied the request: no ports'), False),
        (faults.status(422, "Invalid", 'admission webhook "w" denied the request: no ports'), False),
        (faults.status(403, "Forbidden", 'pods "x" is forbidden: maximum cpu usage per Pod is 1'), False),
        (faults.status(403, "Forbidden", 'pods "x" is forbidden: User "tacker" cannot create resource "pods"'), False),
        (faults.status(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q'), True),
        (faults.status(400, "BadRequest", 'admission webhook "w" does not support dry run'), True),
        (faults.status(422, "Invalid", "spec.ports[0].nodePort: Invalid value: provided port is already allocated"), False),
    ],
)
def test_only_a_refusal_by_admission_counts_against_a_change_of_what_never_changes(
    api: FakeApi, answer: faults.Answer, is_replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be tried because of a webhook, or for which the deletion makes room, is no fault of the object."""
    change_times(monkeypatch, forbidden=0)
    controllers.run_workloads(api)
    blue, changed = Instance(api.url), copy.deepcopy(POD)
    blue.reconcile([POD])
    uid = api.get("Pod", "default", "one")["metadata"]["uid"]
    changed["spec"]["nodeName"] = "n1"
    api.fail(invalid(FORBIDDEN), method="PATCH", path="/pods/", when=update_of(api, POD), times=50)
    api.fail(faults.status(503, "ServiceUnavailable", "a webhook is not up"), method="POST", path="/pods")
    api.fail(answer, method="POST", path="/pods", times=50)
    if is_replaced:
        blue.reconcile([changed])
    else:
        with pytest.raises(Refused):
            blue.reconcile([changed])
    assert (api.get("Pod", "default", "one")["metadata"]["uid"] != uid) is is_replaced


def plain_service(**spec: Any) -> Object:
    return obj("v1", "Service", "db", "default", spec={"ports": [{"port": 80}], **spec})


def service(**spec: Any) -> Object:
    return annotated(plain_service(**spec))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_service_does_not_stay_headless_in_silence(api: FakeApi, is_replaced: bool) -> None:
    """An update without the field leaves `clusterIP: None` as it is; a retry says the same."""
    made = service if is_replaced else plain_service
    blue = Instance(api.url)
    blue.reconcile([made(clusterIP="None")])
    before = api.get("Service", "default", "db")["metadata"]["uid"]
    if is_replaced:
        blue.reconcile([made()])
        assert api.get("Service", "default", "db")["metadata"]["uid"] != before
    else:
        for _ in range(2):
            with pytest.raises(Refused, match=r"leave spec\.clusterIP as it is"):
                blue.reconcile([made()])


def test_a_rollback_replaces_a_service_that_would_stay_headless(api: FakeApi) -> None:
    Instance(api.url).reconcile([service()])
    Instance(api.url).reconcile([service(clusterIP="None")])
    Instance(api.url, yields=True).reconcile([service()])
    assert api.get("Service", "default", "db")["spec"]["clusterIP"] != "None"


@pytest.mark.parametrize("how", ["adopted", "kept"])
def test_a_rollback_leaves_a_headless_service_that_is_never_replaced(api: FakeApi, how: str) -> None:
    if how == "adopted":
        api.put(plain_service(clusterIP="None"), manager="kubectl")
    Instance(api.url, adopt=True).reconcile([service()])
    Instance(api.url, adopt=True).reconcile([service(clusterIP="None")])
    if how == "kept":
        api.edit("Service", "default", "db", lambda live: live["metadata"]["annotations"].update({KEEP: "true"}))
    Instance(api.url, yields=True).reconcile([service()])
    assert api.get("Service", "default", "db")["spec"]["clusterIP"] == "None"
