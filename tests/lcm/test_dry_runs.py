# SPDX-License-Identifier: Apache-2.0
"""A change of package asks first: what the cluster refuses is refused with nothing written (case 27)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.engine.apply.dry_runs import is_final
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import Conflict, DriverError, Forbidden, NotOurs, Refused
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object, kind_of
from k8s_cr_driver.resources.registry import resource_for
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import config_map, crontab, crontab_crd, job, obj
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.web import deployment
from tests.writes.test_replacement import COMPLETE

POLICY = faults.status(
    422,
    "Invalid",
    "machinetemplates \"workers\" is forbidden: ValidatingAdmissionPolicy 'lab' with binding 'lab' denied request: no change",
)
QUOTA = faults.status(403, "Forbidden", 'configmaps "b" is forbidden: exceeded quota: small, requested: count/configmaps=1')


def definition(kind: str) -> Object:
    crd = crontab_crd()
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    crd["metadata"]["name"] = f"{names['plural']}.stable.example.com"
    crd["spec"]["names"] = names
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    return crd


def lab(version: str) -> list[Object]:
    """A cluster that takes no lower version, and a template of its machines."""
    template = obj("stable.example.com/v1", "MachineTemplate", "workers", "default", spec={"image": f"node-{version}"})
    cluster = obj("stable.example.com/v1", "Lab", "one", "default", spec={"version": version})
    return [deployment(1), definition("Lab"), definition("MachineTemplate"), cluster, template]


def started(cluster: FakeApi, folder: Path, manifests: list[Object]) -> Instance:
    blue = Instance(cluster, folder / "old", copy.deepcopy(manifests))
    blue.instantiate()
    cluster.requests.clear()
    return blue


def change(blue: Instance, folder: Path, manifests: list[Object], **params: Any) -> None:
    blue.change(make_vnfd(folder / "new", manifests), **params)


def is_trial(request: Request) -> bool:
    return request.query.get("dryRun") == "All"


def written(cluster: FakeApi) -> list[str]:
    """What was written but for the inventory."""
    return [one.path for one in cluster.requests.select("PATCH") if not is_trial(one) and "k8s-cr-driver" not in one.path]


def asked(cluster: FakeApi) -> list[str]:
    return sorted(one.path.rpartition("/")[2] for one in cluster.requests if is_trial(one))


def test_a_policy_that_refuses_a_template_leaves_the_version_of_the_cluster(cluster: FakeApi, tmp_path: Path) -> None:
    blue = started(cluster, tmp_path, lab("v1.35.0"))
    before = cluster.get("Lab", "default", "one")
    cluster.fail(POLICY, method="PATCH", path="machinetemplates/workers", times=100)
    with pytest.raises(sol_ex.SolException, match=r"MachineTemplate\.stable\.example\.com default/workers.*denied request"):
        change(blue, tmp_path, lab("v1.36.0"))
    assert written(cluster) == []
    assert cluster.get("Lab", "default", "one") == before
    blue.roll_back_change()
    assert cluster.get("Lab", "default", "one")["spec"] == {"version": "v1.35.0"}


@pytest.mark.parametrize(
    ("fault", "words"),
    [(QUOTA, "exceeded quota"), (faults.denied("no more of these"), "no more of these"), (POLICY, "denied request")],
    ids=["quota", "webhook", "policy"],
)
def test_what_admission_refuses_is_refused_with_nothing_written(
    cluster: FakeApi, tmp_path: Path, fault: faults.Answer, words: str
) -> None:
    blue = started(cluster, tmp_path, [deployment(1), config_map("a", x="1")])
    cluster.fail(fault, method="PATCH", path="configmaps/b", times=100)
    with pytest.raises(sol_ex.SolException, match=words):
        change(blue, tmp_path, [deployment(2), config_map("a", x="2"), config_map("b")])
    assert written(cluster) == []


def test_an_immutable_field_is_refused_with_nothing_written(cluster: FakeApi, tmp_path: Path) -> None:
    secret = obj("v1", "Secret", "s", "default", type="Opaque", data={"a": "Yg=="})
    blue = started(cluster, tmp_path, [deployment(1), secret, config_map("a", x="1")])
    with pytest.raises(sol_ex.SolException, match="immutable"):
        change(blue, tmp_path, [deployment(1), {**secret, "type": "other"}, config_map("a", x="2")])
    assert written(cluster) == []


def test_an_object_of_somebody_else_is_refused_with_nothing_written(cluster: FakeApi, tmp_path: Path) -> None:
    blue = started(cluster, tmp_path, [deployment(1), config_map("a", x="1")])
    cluster.put(config_map("b"), manager="kubectl")
    with pytest.raises(sol_ex.SolException, match="default/b exists already"):
        change(blue, tmp_path, [deployment(1), config_map("a", x="2"), config_map("b")])
    assert written(cluster) == []


def test_one_request_is_asked_for_each_object_that_differs_and_none_for_others(cluster: FakeApi, tmp_path: Path) -> None:
    ports = [{"port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    service = obj("v1", "Service", "web", "default", spec={"selector": {"app": "web"}, "ports": ports})
    same = [deployment(1), service, crontab_crd(), crontab("one"), obj("v1", "Namespace", "home"), config_map("h", "home")]
    blue = started(cluster, tmp_path, [*same, config_map("a", x="1"), config_map("less", x="1", y="2")])
    new = [config_map("a", x="2"), config_map("less", x="1"), config_map("new")]
    change(blue, tmp_path, [*same, *new])
    assert asked(cluster) == ["a", "less", "new"]
    cluster.requests.clear()
    blue.scale("SCALE_OUT")
    assert asked(cluster) == []


def test_what_only_an_object_of_the_change_would_allow_is_no_refusal(cluster: FakeApi, tmp_path: Path) -> None:
    """A webhook wants what the object refers to."""
    blue = started(cluster, tmp_path, [deployment(1)])
    later = config_map("later")
    later["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/first"}
    cluster.fail(
        faults.denied("ConfigMap first is missing"),
        method="PATCH",
        path="configmaps/later",
        when=lambda _: cluster.find("ConfigMap", "default", "first") is None,
        times=100,
    )
    change(blue, tmp_path, [deployment(1), config_map("first"), later])
    assert cluster.find("ConfigMap", "default", "later")


@pytest.mark.parametrize("fault", [faults.denied("namespace home is locked"), POLICY], ids=["webhook", "policy"])
def test_what_a_changed_label_of_the_namespace_would_allow_is_no_refusal(
    cluster: FakeApi, tmp_path: Path, fault: faults.Answer
) -> None:
    """A namespaceSelector, or namespaceObject in an expression."""
    home = obj("v1", "Namespace", "home")
    blue = started(cluster, tmp_path, [deployment(1), home, config_map("a", "home", x="1")])
    home["metadata"]["labels"] = {"unlocked": "true"}
    cluster.fail(
        fault,
        method="PATCH",
        path="configmaps/a",
        when=lambda _: "unlocked" not in cluster.get("Namespace", "", "home")["metadata"].get("labels", {}),
        times=100,
    )
    change(blue, tmp_path, [deployment(1), home, config_map("a", "home", x="2")])
    assert cluster.get("ConfigMap", "home", "a")["data"] == {"x": "2"}


def deny_later_until_first_is_new(cluster: FakeApi) -> None:
    """By a webhook that knows what the object `first` allows."""
    cluster.fail(
        faults.denied("first has no such variable"),
        method="PATCH",
        path="configmaps/later",
        when=lambda _: cluster.get("ConfigMap", "default", "first")["data"] == {"x": "1"},
        times=100,
    )


def test_what_a_changed_object_that_is_waited_for_would_allow_is_no_refusal(cluster: FakeApi, tmp_path: Path) -> None:
    """A webhook of Clusters knows only the variables that the ClusterClass has."""
    first, later = config_map("first", x="1"), config_map("later", x="1")
    later["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/first"}
    blue = started(cluster, tmp_path, [deployment(1), first, later])
    deny_later_until_first_is_new(cluster)
    first["data"], later["data"] = {"x": "2"}, {"x": "2"}
    change(blue, tmp_path, [deployment(1), first, later])
    assert cluster.get("ConfigMap", "default", "later")["data"] == {"x": "2"}


def test_what_is_waited_for_through_a_job_that_is_done_would_allow_is_no_refusal(cluster: FakeApi, tmp_path: Path) -> None:
    """The Job has run to its end and no longer exists, so nothing waits for it."""
    first, between, later = config_map("first", x="1"), job("one", "i:1"), config_map("later", x="1")
    between["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/first"}
    later["metadata"]["annotations"] = {DEPENDS_ON: "batch/namespaces/default/Job/one"}
    cluster.react("Job", lambda live: None if live.get("status") else cluster.set_status("Job", "default", "one", COMPLETE))
    blue = started(cluster, tmp_path, [deployment(1), first, between, later])
    cluster.delete("Job", "default", "one")
    deny_later_until_first_is_new(cluster)
    first["data"], later["data"] = {"x": "2"}, {"x": "2"}
    change(blue, tmp_path, [deployment(1), first, between, later])
    assert cluster.get("ConfigMap", "default", "later")["data"] == {"x": "2"}
    assert not cluster.find("Job", "default", "one")


def test_a_field_that_the_package_s_crd_adds_is_no_refusal(cluster: FakeApi, tmp_path: Path) -> None:
    blue = started(cluster, tmp_path, [deployment(1), crontab_crd(), crontab("one")])
    crd, one = crontab_crd(), crontab("one")
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["more"] = {"type": "string"}
    one["spec"]["more"] = "words"
    change(blue, tmp_path, [deployment(1), crd, one])
    assert cluster.get("CronTab", "default", "one")["spec"]["more"] == "words"


def storage(more: bool) -> list[Object]:
    one = obj("storage.k8s.io/v1", "StorageClass", "slow", "", provisioner="x.example.org", allowVolumeExpansion=more)
    return [one, claim(2 if more else 1, "slow")]


def claim(size: int, of_class: str | None = None) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{size}Gi"}}}
    return obj(
        "v1", "PersistentVolumeClaim", "data", "default", spec=spec | ({"storageClassName": of_class} if of_class else {})
    )


def limits(more: bool) -> list[Object]:
    limit = {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi" if more else "1Gi"}}
    return [obj("v1", "LimitRange", "most", "default", spec={"limits": [limit]}), claim(2 if more else 1)]


def quota(more: bool) -> list[Object]:
    hard = {"requests.storage": "2Gi" if more else "1Gi"}
    return [obj("v1", "ResourceQuota", "small", "default", spec={"hard": hard}), claim(2 if more else 1)]


def parameters(more: bool) -> list[Object]:
    return [config_map("z", most="2" if more else "1"), claim(2 if more else 1)]


def default_class(more: bool) -> list[Object]:
    return [storage(more)[0], claim(2 if more else 1)]


@pytest.mark.parametrize(
    ("package", "fault"),
    [
        (
            storage,
            faults.status(403, "Forbidden", "only dynamically provisioned pvc can be resized and the class must support"),
        ),
        (default_class, faults.status(403, "Forbidden", "the class must support resize")),
        (limits, faults.status(403, "Forbidden", "maximum storage usage per PersistentVolumeClaim is 1Gi, but limit is 2Gi")),
        (quota, faults.status(403, "Forbidden", "exceeded quota: small, requested: requests.storage=1Gi")),
        (parameters, POLICY),
    ],
)
def test_what_the_change_itself_allows_is_written_before(
    cluster: FakeApi, tmp_path: Path, package: Callable[[bool], list[Object]], fault: faults.Answer
) -> None:
    """In whatever order the objects would be sent else."""
    spec = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    cluster.put(obj("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "lab", "", spec=spec), manager="kubectl")
    blue = started(cluster, tmp_path, [deployment(1), *package(False)])
    rule = package(True)[0]
    names = rule["kind"], rule["metadata"].get("namespace", ""), rule["metadata"]["name"]
    before = cluster.get(*names)["metadata"]["resourceVersion"]

    def unchanged(_: Request) -> bool:
        return bool(cluster.get(*names)["metadata"]["resourceVersion"] == before)

    cluster.fail(fault, method="PATCH", path="persistentvolumeclaims/data", when=unchanged, times=100)
    change(blue, tmp_path, [deployment(1), *package(True)])
    assert cluster.get("PersistentVolumeClaim", "default", "data")["spec"]["resources"]["requests"]["storage"] == "2Gi"


@pytest.mark.parametrize("may_read", [True, False])
def test_a_policy_that_reads_no_object_of_the_change_is_final(cluster: FakeApi, tmp_path: Path, may_read: bool) -> None:
    spec = {"paramKind": {"apiVersion": "example.org/v1", "kind": "Limit"}}
    cluster.put(obj("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "lab", "", spec=spec), manager="kubectl")
    blue = started(cluster, tmp_path, [deployment(1), *parameters(False)])
    cluster.fail(POLICY, method="PATCH", path="persistentvolumeclaims/data", times=100)
    if not may_read:
        cluster.fail(faults.status(403, "Forbidden"), method="GET", path="validatingadmissionpolicies/lab", times=9)
    with pytest.raises(sol_ex.SolException, match="denied request"):
        change(blue, tmp_path, [deployment(1), *parameters(True)])
    assert written(cluster) == []
    assert len(cluster.requests.select("GET", "validatingadmissionpolicies/lab")) == 1


@pytest.mark.parametrize(
    "fault",
    [
        faults.status(400, "BadRequest", "dryRun is not supported yet"),
        faults.status(400, "BadRequest", 'unknown query parameter "dryRun"'),
        faults.status(422, "Invalid", "the dry-run option is disabled"),
        faults.status(405, "MethodNotAllowed", "server cannot do a dry run"),
        faults.status(403, "Forbidden", "unsupported option dry_run"),
    ],
)
def test_a_server_that_does_not_know_dry_runs_ends_no_change(cluster: FakeApi, tmp_path: Path, fault: faults.Answer) -> None:
    blue = started(cluster, tmp_path, [deployment(1), config_map("a", x="1")])
    cluster.fail(fault, method="PATCH", path="configmaps/a", when=is_trial, times=100)
    change(blue, tmp_path, [deployment(1), config_map("a", x="2")])
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"x": "2"}


def test_a_server_that_cannot_say_yet_ends_no_change(cluster: FakeApi, tmp_path: Path) -> None:
    blue = started(cluster, tmp_path, [deployment(1), config_map("a", x="1")])
    cluster.fail(faults.webhook_down(), method="PATCH", path="configmaps/a", when=is_trial, times=2)
    change(blue, tmp_path, [deployment(1), config_map("a", x="2")])
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"x": "2"}


def changed(manifest: Object, *, new: bool = False) -> Desired:
    resource = Resource(kind_of(manifest), manifest["apiVersion"], "any", True, frozenset())
    return Desired(resource_for(manifest), resource, live=None if new else manifest)


WEBHOOK = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w")
DENIED = 'default/one: admission webhook "w.example.org" denied the request: no'
BY_POLICY = "default/one: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"
OVER = "default/one: exceeded quota: small"


@pytest.mark.parametrize(
    ("why", "before", "final"),
    [
        (Refused(DENIED), [], True),
        (Refused(DENIED), [changed(config_map("a"))], False),
        (Refused(DENIED), [changed(config_map("a"), new=True)], False),
        (Refused(DENIED), [changed(deployment(1))], False),
        (Refused(DENIED), [changed(WEBHOOK)], False),
        (Refused(DENIED), [changed(crontab_crd())], True),
        (Refused(BY_POLICY), [changed(deployment(1)), changed(config_map("a"), new=True)], True),
        (Refused(BY_POLICY), [changed(WEBHOOK)], False),
        (Refused(BY_POLICY), [changed(obj("v1", "Namespace", "default"))], False),
        (Forbidden(OVER), [changed(deployment(1))], True),
        (Forbidden(OVER), [changed(obj("v1", "ResourceQuota", "small", "default"))], False),
        (Forbidden(OVER), [changed(obj("v1", "ResourceQuota", "small", "elsewhere"))], True),
        (Forbidden('violates PodSecurity "baseline"'), [changed(obj("v1", "Namespace", "default"))], False),
        (Forbidden("attempting to grant RBAC permissions"), [], True),
        (Forbidden("the class must support resize"), [changed(obj("storage.k8s.io/v1", "StorageClass", "s"))], False),
        (Forbidden("the class must support resize"), [changed(crontab_crd())], True),
        (Refused("spec.more: unknown field"), [changed(crontab_crd())], False),
        (Refused("spec.more: unknown field"), [changed(config_map("a"), new=True)], True),
        (Forbidden("maximum is 1Gi"), [changed(obj("v1", "LimitRange", "most", "default"))], False),
        (Forbidden("maximum is 1Gi"), [changed(obj("v1", "LimitRange", "most", "elsewhere"))], True),
        (NotOurs("belongs to another VNF instance"), [changed(crontab_crd())], True),
        (Conflict("others manage fields"), [changed(crontab_crd())], True),
    ],
)
def test_which_refusals_the_writes_before_cannot_change(why: DriverError, before: list[Desired], final: bool) -> None:
    assert is_final(why, resource_for(crontab("one")).key, before) is final
