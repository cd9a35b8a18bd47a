# SPDX-License-Identifier: Apache-2.0
"""The volume claims of a StatefulSet go with the instance, and only with it."""

from __future__ import annotations

import contextlib
import json
import urllib.request

import pytest

from k8s_cr_driver.engine.delete import pruner
from k8s_cr_driver.errors import DriverError, NotOurs
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP
from tests.fake_api import FakeApi, controllers, defaults, faults
from tests.fake_api.recording import Request
from tests.instance import (
    GREEN,
    Instance,
    claim,
    config_map,
    controlled_by,
    created_again,
    kept,
    labelled,
    obj,
    owned,
    replaced,
    state,
    stateful_set,
    wait_for,
)
from tests.writes.claims import HELD, is_going


@pytest.fixture(autouse=True)
def workloads(api: FakeApi) -> None:
    controllers.run_workloads(api)


def bind(live: Object) -> None:
    """As the controller of volumes does."""
    live["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    live["spec"]["volumeName"] = "pv-7"


def keep_claim(api: FakeApi, namespace: str, name: str) -> None:
    api.edit("PersistentVolumeClaim", namespace, name, lambda live: live["metadata"].update(annotations={KEEP: "true"}))


def fail_to_terminate(api: FakeApi, instance: Instance) -> None:
    """The claims are labelled then."""
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="statefulsets/db")
    with pytest.raises(DriverError, match="statefulsets/db"):
        instance.terminate()


ITS_OWN = {"app": "db"}


@pytest.mark.parametrize(
    ("name", "marks", "manager", "is_older", "goes"),
    [
        pytest.param("data-db-7", ITS_OWN, controllers.MANAGER, False, True, id="the controller's"),
        pytest.param("data-db-x", ITS_OWN, controllers.MANAGER, False, False, id="not of its names"),
        pytest.param("data-db", ITS_OWN, controllers.MANAGER, False, False, id="without a number"),
        pytest.param("logs-db-7", ITS_OWN, controllers.MANAGER, False, False, id="of no template of it"),
        pytest.param("data-db-7", ITS_OWN, controllers.MANAGER, True, False, id="a former set's of its name"),
        pytest.param("data-db-7", {}, "kubectl", False, False, id="a user's"),
        pytest.param("data-db-7", ITS_OWN, "kubectl", False, False, id="a user's with its labels, in the same second"),
        pytest.param(
            "data-db-7", {**ITS_OWN, INSTANCE_LABEL: GREEN}, controllers.MANAGER, False, False, id="another instance's label"
        ),
    ],
)
def test_which_claims_go_with_their_stateful_set(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, name: str, marks: dict[str, str], manager: str, is_older: bool, goes: bool
) -> None:
    blue, made = Instance(api.url), claim(name, **marks)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        if is_older:
            api.put(made, manager=manager)
    blue.reconcile([stateful_set("db")])
    if not is_older:
        api.put(made, manager=manager)
    if manager == "kubectl":
        api.edit("PersistentVolumeClaim", "default", name, bind, manager=controllers.MANAGER)
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ([] if goes else [name])
    assert api.names("StatefulSet", "default") == []


def test_a_change_of_package_keeps_volume_claims(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db"), config_map("a")])
    api.put(claim("data-db-0", app="db"))
    instance.reconcile([config_map("a")])
    assert (api.names("StatefulSet", "default"), api.names("PersistentVolumeClaim", "default")) == ([], ["data-db-0"])


def test_terminate_keeps_volume_claims_with_when_deleted_retain(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"})])
    api.put(claim("data-db-0", app="db"))
    instance.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


def test_a_policy_that_does_not_say_when_deleted_keeps_no_volume_claims(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server fills in the other field, without an owner."""
    filled = [("spec", "persistentVolumeClaimRetentionPolicy", one) for one in ("whenDeleted", "whenScaled")]
    monkeypatch.setitem(defaults._DEFAULTS, "StatefulSet", [(("spec", "replicas"), 1), *((path, "Retain") for path in filled)])
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db", persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"})])
    assert api.get("StatefulSet", "default", "db")["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Retain"
    api.put(claim("data-db-0", app="db"), manager=controllers.MANAGER)
    instance.terminate()
    assert state(api) == {}


def test_terminate_deletes_a_volume_claim_despite_a_conflict(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    api.put(claim("data-db-0", app="db"))
    api.fail(faults.conflict(), method="PATCH", path="persistentvolumeclaims/data-db-0")
    instance.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("is_labelled", [True, False])
def test_a_retry_finds_volume_claims_when_the_stateful_set_is_gone(api: FakeApi, is_labelled: bool) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    api.put(claim("data-db-0", app="db"))
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="persistentvolumeclaims/data-db-0")
    with pytest.raises(Exception, match="data-db-0"):
        instance.terminate()
    if not is_labelled:
        api.edit("PersistentVolumeClaim", "default", "data-db-0", lambda live: live["metadata"]["labels"].pop(INSTANCE_LABEL))
    instance.terminate()
    assert state(api) == {}


def test_a_change_of_package_keeps_volume_claims_that_a_failed_terminate_was_to_delete(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db"), config_map("a")])
    before = api.get("PersistentVolumeClaim", "default", "data-db-0")["metadata"]["uid"]
    fail_to_terminate(api, instance)
    instance.reconcile([stateful_set("db"), config_map("b")])
    kept = api.get("PersistentVolumeClaim", "default", "data-db-0")["metadata"]
    assert kept["uid"] == before and INSTANCE_LABEL not in kept.get("labels", {}) and "annotations" not in kept
    instance.terminate()
    assert state(api) == {}


def test_terminate_keeps_volume_claims_of_other_instances(api: FakeApi) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    blue.reconcile([stateful_set("db")])
    green.reconcile([claim("data-db-5", app="db"), claim("data-db-6", app="db")])
    replaced(api, "PersistentVolumeClaim", "default", "data-db-6")
    api.put(claim("data-db-0", app="db"))
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-5", "data-db-6"]


def test_a_refused_instantiate_keeps_the_volume_claims_of_users(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        api.put(claim("data-db-0", app="db"))
    blue = Instance(api.url)
    api.put(config_map("theirs"))
    with pytest.raises(NotOurs):
        blue.reconcile([stateful_set("db"), config_map("theirs")])
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


def without_managers(live: Object) -> None:
    live["metadata"]["managedFields"] = [{}]


@pytest.mark.parametrize(
    ("kind", "name", "second", "stays"),
    [
        pytest.param("PersistentVolumeClaim", "data-db-1", "01", False, id="a later second"),
        pytest.param("PersistentVolumeClaim", "data-db-1", "00", True, id="the same second"),
        pytest.param("StatefulSet", "db", "01", True, id="whether it retains claims is not known"),
    ],
)
def test_names_labels_and_times_decide_where_managers_are_not_known(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, kind: str, name: str, second: str, stays: bool
) -> None:
    """In the second in which the instance began, a claim may be older than the instance."""
    blue = Instance(api.url)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        blue.reconcile([stateful_set("db")])
        past.setattr(defaults, "now", lambda: f"2020-01-01T00:00:{second}Z")
        api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    api.edit(kind, "default", name, without_managers)
    blue.terminate()
    assert ("data-db-1" in api.names("PersistentVolumeClaim", "default")) == stays


def test_a_claim_that_was_adopted_and_released_stays(api: FakeApi) -> None:
    blue = Instance(api.url, adopt=True)
    blue.reconcile([stateful_set("db")])
    users = api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    api.set_status("PersistentVolumeClaim", "default", "data-db-1", {"phase": "Bound"})
    blue.reconcile([stateful_set("db"), claim("data-db-1", app="db")])
    blue.reconcile([stateful_set("db")])
    blue.terminate()
    assert api.get("PersistentVolumeClaim", "default", "data-db-1")["metadata"]["uid"] == users["metadata"]["uid"]


@pytest.mark.parametrize(("labels", "left"), [({"app": "db"}, []), ({}, ["data-db-0"])])
def test_a_selector_of_expressions_leaves_claims_that_nothing_else_tells_from_others(
    api: FakeApi, labels: dict[str, str], left: list[str]
) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}
    template = {"metadata": {"name": "data", "labels": labels}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    blue = Instance(api.url)
    blue.reconcile([stateful_set("db", selector=selector, volumeClaimTemplates=[template])])
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == left


def test_terminate_keeps_a_claim_that_a_users_set_has_left_before_a_change_has_brought_one(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same controller has created it, for an object of the same name, after the instance began."""
    blue = Instance(api.url)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        blue.reconcile([config_map("a")])
        past.setattr(defaults, "now", lambda: "2020-01-02T00:00:00Z")
        api.put(claim("data-db-0", app="db"), manager=controllers.MANAGER)
    blue.reconcile([stateful_set("db"), config_map("a")])
    api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    blue.reconcile([stateful_set("db"), config_map("a")])
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


def test_a_claim_that_another_instance_labels_while_it_is_listed_is_not_taken_by_force(api: FakeApi) -> None:
    def taken(request: Request) -> bool:
        del request
        api.edit("PersistentVolumeClaim", "default", "data-db-1", label)
        return False

    blue = Instance(api.url)
    blue.reconcile([stateful_set("db")])
    api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    api.fail(faults.conflict(), method="PATCH", path="persistentvolumeclaims/data-db-1", when=taken)
    blue.terminate()
    left = api.get("PersistentVolumeClaim", "default", "data-db-1")
    assert left["metadata"]["labels"][INSTANCE_LABEL] == GREEN


def label(live: Object) -> None:
    live["metadata"]["labels"][INSTANCE_LABEL] = GREEN


RETAIN = {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_claims_stay_with_a_stateful_set_that_others_have_created_again_and_that_may_retain_them(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    """`kubectl replace --force` with the same file: an update, which owns the defaults of the API server, too."""
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db", persistentVolumeClaimRetentionPolicy=RETAIN)])
    api.put(claim("data-db-0", app="db"), manager=controllers.MANAGER)
    created_again(api, "StatefulSet", "default", "db")
    instance.terminate()
    assert api.names("StatefulSet", "default") == []
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]
    assert "the objects that it leaves are kept" in caplog.text


def labelled_set(name: str, template: str, replicas: int, app: str) -> Object:
    pods = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    claims = [{"metadata": {"name": template}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    selector = {"matchLabels": {"app": app}}
    return stateful_set(name, replicas=replicas, selector=selector, template=pods, volumeClaimTemplates=claims)


@pytest.mark.parametrize("theirs", ["another instance's", "a user's"])
def test_claims_that_may_be_of_another_stateful_set_stay(api: FakeApi, theirs: str) -> None:
    """`data-db` of `main` and `data` of `db-main` are one name."""
    blue, other = Instance(api.url), labelled_set("db-main", "data", 2, "db")
    blue.reconcile([labelled_set("main", "data-db", 0, "db")])
    if theirs == "a user's":
        api.put(other)
    else:
        Instance(api.url, GREEN).reconcile([other])
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-main-0", "data-db-main-1"]
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-main-0", "data-db-main-1"]


def test_claims_go_that_the_labels_of_another_stateful_set_of_the_same_names_do_not_fit(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([labelled_set("main", "data-db", 1, "db")])
    api.put(labelled_set("db-main", "data", 0, "other"))
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == []


@pytest.mark.parametrize("why", ["kept", "retaining"])
def test_claims_of_another_stateful_set_of_the_instance_stay_with_it(api: FakeApi, why: str) -> None:
    blue, other = Instance(api.url), labelled_set("db-main", "data", 2, "db")
    if why == "kept":
        other = kept(other)
    else:
        other["spec"]["persistentVolumeClaimRetentionPolicy"] = RETAIN
    blue.reconcile([labelled_set("main", "data-db", 0, "db"), other])
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-main-0", "data-db-main-1"]


def test_claims_of_a_stateful_set_whose_labels_are_not_known_stay(api: FakeApi) -> None:
    other = labelled_set("db-main", "data", 2, "db")
    other["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}
    [data] = other["spec"]["volumeClaimTemplates"]
    data["metadata"]["labels"] = {"app": "db"}
    blue = Instance(api.url)
    blue.reconcile([labelled_set("main", "data-db", 0, "db")])
    api.put(other)
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-main-0", "data-db-main-1"]


def test_claims_stay_that_a_user_has_patched_to_be_retained(api: FakeApi) -> None:
    blue, policy = Instance(api.url), "persistentVolumeClaimRetentionPolicy"
    blue.reconcile([stateful_set("db", **{policy: {"whenDeleted": "Delete"}})])
    api.edit("StatefulSet", "default", "db", lambda live: live["spec"][policy].update(whenDeleted="Retain"), manager="patch")
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


@pytest.mark.parametrize("count", [2, 20])
def test_a_terminate_lists_other_stateful_sets_a_fixed_number_of_times(api: FakeApi, count: int) -> None:
    blue = Instance(api.url)
    blue.reconcile([stateful_set(f"db-{number}") for number in range(count)])
    api.requests.clear()
    blue.terminate()
    assert len(api.requests.select("GET", watch=False, when=lambda one: one.path.endswith("/statefulsets"))) < 8


@pytest.mark.parametrize("since", ["", "healed", "unlabelled"])
@pytest.mark.parametrize("how", ["retain", "keep"])
def test_what_is_said_after_a_failed_terminate_counts_for_claims(api: FakeApi, how: str, since: str) -> None:
    policy, blue = "persistentVolumeClaimRetentionPolicy", Instance(api.url)
    wanted = [stateful_set("db", **{policy: {"whenDeleted": "Delete"}})]
    blue.reconcile(wanted)
    fail_to_terminate(api, blue)
    if since == "healed":
        blue.reconcile(wanted, prune=False)

    def decide(live: Object) -> None:
        if since == "unlabelled":
            live["metadata"]["labels"] = {}
        if how == "retain":
            live["spec"][policy]["whenDeleted"] = "Retain"
        else:
            live["metadata"].setdefault("annotations", {})[KEEP] = "true"

    api.edit("StatefulSet", "default", "db", decide, manager="kubectl-edit")
    blue.terminate()
    found = api.get("PersistentVolumeClaim", "default", "data-db-0")["metadata"]
    assert "deletionTimestamp" not in found and (since == "unlabelled" or INSTANCE_LABEL not in found["labels"])


def test_claims_stay_where_nobody_knows_whether_their_stateful_set_does(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([stateful_set("db")])
    fail_to_terminate(api, blue)
    api.edit("StatefulSet", "default", "db", lambda live: live["metadata"].setdefault("annotations", {}).update({KEEP: "true"}))
    api.fail(faults.unavailable(), method="GET", path="/statefulsets", times=10_000)
    leaving = Instance(api.url, seconds=3)
    leaving.abandon = True
    with pytest.raises(DriverError):  # what the verb logs, as it abandons the cluster
        leaving.terminate()
    assert api.find("PersistentVolumeClaim", "default", "data-db-0")


def owned_by_set(api: FakeApi, name: str, database: str = "db") -> str:
    return owned(api, name, "StatefulSet", "apps/v1", database)


@pytest.mark.parametrize("how", [{"persistentVolumeClaimRetentionPolicy": RETAIN}, {}], ids=["Retain", "keep"])
def test_a_set_that_leaves_its_claims_says_nothing_of_those_of_another_namespace(api: FakeApi, how: Object) -> None:
    leaving, other = ({**one, "metadata": {"name": "db", "namespace": where}}
                      for one, where in ((stateful_set("db", **how), "one"), (stateful_set("db"), "two")))
    for where in ("one", "two"):
        api.put(obj("v1", "Namespace", where))
    blue = Instance(api.url)
    blue.reconcile([leaving if how else kept(leaving), other])
    api.requests.clear()
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "two") == []
    assert api.names("PersistentVolumeClaim", "one") == ["data-db-0"]
    assert len(api.requests) < 100


@pytest.mark.parametrize("package", [[config_map("a")], []], ids=["change", "terminate"])
def test_a_retained_claim_that_still_has_its_set_as_owner_stays(api: FakeApi, package: list[Object]) -> None:
    """The controller leaves a reference from before the policy in the claims of ordinals without a Pod."""
    blue = Instance(api.url)
    blue.reconcile([stateful_set("db", persistentVolumeClaimRetentionPolicy=RETAIN), config_map("a")])
    api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    owned_by_set(api, "data-db-1")
    blue.reconcile(package)
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0", "data-db-1"]


@pytest.mark.parametrize("package", [[config_map("a")], []], ids=["change", "terminate"])
def test_a_claim_that_is_to_be_kept_is_released_from_a_set_that_takes_its_claims(api: FakeApi, package: list[Object]) -> None:
    blue = Instance(api.url)
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    blue.reconcile([stateful_set("db", persistentVolumeClaimRetentionPolicy=policy), config_map("a")])
    owned_by_set(api, "data-db-0")
    keep_claim(api, "default", "data-db-0")
    blue.reconcile(package)
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


def test_a_claim_whose_label_others_own_too_outlives_a_change_after_a_failed_terminate(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([stateful_set("db"), config_map("a")])
    fail_to_terminate(api, blue)

    def owned_by_others(live: Object) -> None:
        fields = {"f:metadata": {"f:labels": {f"f:{INSTANCE_LABEL}": {}}}}
        entry = {"manager": "backup", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
        live["metadata"]["managedFields"].append({**entry, "time": live["metadata"]["creationTimestamp"]})

    api.edit("PersistentVolumeClaim", "default", "data-db-0", owned_by_others)
    before = api.get("PersistentVolumeClaim", "default", "data-db-0")["metadata"]["uid"]
    blue.reconcile([stateful_set("db"), config_map("a", b="2")])
    found = api.get("PersistentVolumeClaim", "default", "data-db-0")["metadata"]
    assert found["uid"] == before and "deletionTimestamp" not in found


@pytest.mark.parametrize("package", [[config_map("a")], []], ids=["change", "terminate"])
def test_a_claim_that_was_adopted_and_released_outlives_a_set_that_takes_claims(api: FakeApi, package: list[Object]) -> None:
    database = stateful_set("db", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"})
    api.put(claim("data-db-0", app="db"), manager="kubectl")
    Instance(api.url, adopt=True).reconcile([database, claim("data-db-0", app="db")])
    Instance(api.url).reconcile([database, config_map("a")])
    owned_by_set(api, "data-db-0")
    Instance(api.url).reconcile(package)
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


@pytest.mark.parametrize("package", [[config_map("a")], []], ids=["change", "terminate"])
def test_a_set_without_claims_needs_no_permission_for_claims(api: FakeApi, package: list[Object]) -> None:
    api.knobs.denied.add(("*", "", "persistentvolumeclaims", "*"))
    database = stateful_set("db")
    del database["spec"]["volumeClaimTemplates"]
    Instance(api.url).reconcile([config_map("a"), database])
    Instance(api.url).reconcile(package)
    assert api.names("StatefulSet", "default") == []


@pytest.mark.parametrize("times", [1, 100_000])
def test_claims_that_may_not_be_listed_keep_their_set(api: FakeApi, times: int) -> None:
    """What nobody knows of is not released, and would go with it."""
    Instance(api.url).reconcile([config_map("a"), stateful_set("db")])
    owned_by_set(api, "data-db-0")
    api.fail(faults.status(403, "Forbidden", "no"), method="GET", path="/persistentvolumeclaims$", times=times)
    with pytest.raises(DriverError, match="persistentvolumeclaims: 403"):
        Instance(api.url).reconcile([config_map("a")])
    assert api.names("StatefulSet", "default") == ["db"]
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


@pytest.mark.parametrize("fault", ["claim", "list"])
def test_a_set_whose_claims_cannot_be_released_is_abandoned_with_them_and_nothing_else(api: FakeApi, fault: str) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    sets = [stateful_set(name, persistentVolumeClaimRetentionPolicy=policy) for name in ("db", "other")]
    blue = Instance(api.url, seconds=5)
    blue.reconcile([config_map("a"), *sets])
    for name in ("db", "other"):
        owned_by_set(api, f"data-{name}-0", name)
        keep_claim(api, "default", f"data-{name}-0")
    if fault == "claim":
        api.fail(faults.status(403, "Forbidden", "no"), method="PATCH", path="claims/data-db-0", times=100_000)
    else:
        api.fail(faults.status(500, "InternalError", "etcd"), method="GET", path="claims$", times=100_000)
    blue.abandon = True
    with contextlib.suppress(DriverError):
        blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0", "data-other-0"]
    assert api.names("StatefulSet", "default") == (["db"] if fault == "claim" else ["db", "other"])
    assert api.find("ConfigMap", "default", "a") is None


def test_a_late_claim_that_is_deleted_before_the_watch_of_claims_opens_is_gone(api: FakeApi) -> None:
    """No watch has reported it, so none reports that it no longer exists."""
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    none = {"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "metadata": {"resourceVersion": "1"}, "items": []}
    api.fail(faults.lie(json.dumps(none).encode()), method="GET", path="persistentvolumeclaims$", times=1)

    api.fail(faults.held(1.5), when=lambda request: request.watch and request.path.endswith("/persistentvolumeclaims"))
    instance.terminate()
    assert state(api) == {}


TAKES = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"}}


def test_a_set_that_is_abandoned_with_its_claim_keeps_their_namespace(api: FakeApi) -> None:
    blue, db = Instance(api.url, seconds=5), stateful_set("db", **TAKES)
    db["metadata"]["namespace"] = "apps"
    blue.reconcile([obj("v1", "Namespace", "apps"), db])
    owner = {**controlled_by(api.get("StatefulSet", "apps", "db")), "controller": False}
    api.edit("PersistentVolumeClaim", "apps", "data-db-0", lambda live: live["metadata"].update(ownerReferences=[owner]))
    keep_claim(api, "apps", "data-db-0")
    api.fail(faults.status(403, "Forbidden", "no"), method="PATCH", path="claims/data-db-0", times=100_000)
    blue.abandon = True
    with contextlib.suppress(DriverError):
        blue.terminate()
    assert (api.names("StatefulSet", "apps"), api.names("PersistentVolumeClaim", "apps")) == (["db"], ["data-db-0"])
    assert "deletionTimestamp" not in api.get("Namespace", None, "apps")["metadata"]


def test_claims_that_cannot_be_listed_leave_half_of_the_time_for_what_can_be_abandoned(api: FakeApi) -> None:
    blue = Instance(api.url, seconds=6)
    blue.reconcile([config_map("a"), *(stateful_set(f"db-{number}") for number in range(20))])
    api.fail(faults.status(500, "InternalError", "etcd"), method="GET", path="claims$", times=100_000)
    blue.abandon = True
    with contextlib.suppress(DriverError):
        blue.terminate()
    assert api.find("ConfigMap", "default", "a") is None


def test_what_sets_own_is_listed_once_for_each_namespace(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), *(stateful_set(f"db-{number}") for number in range(5))])
    api.requests.clear()
    blue.reconcile([config_map("a")])
    assert len(api.requests.select("GET", "/persistentvolumeclaims", watch=False)) == 1


def test_claims_that_their_watch_reports_are_read_no_more_than_once(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were labelled by the terminate, and a finalizer holds them, as it does while Pods use them."""
    monkeypatch.setattr(pruner, "READ_EVERY", 0.05)
    blue, own = Instance(api.url), claim("own")
    own["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    blue.reconcile([stateful_set("db"), own])
    api.edit("PersistentVolumeClaim", "default", "data-db-0", lambda live: live["metadata"].update(finalizers=["hold"]))
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("PersistentVolumeClaim", "default", "data-db-0")["metadata"])
    with api.cluster.store.changed:
        assert not api.cluster.store.changed.wait_for(lambda: len(api.requests.select("GET", "claims/data-db-0")) > 3, 1)
    api.release("PersistentVolumeClaim", "default", "data-db-0")
    run.result(10)


RETENTION = "spec", "persistentVolumeClaimRetentionPolicy"


def apply_as_user(api: FakeApi, manifest: object) -> None:
    """As `kubectl apply --server-side` does it."""
    path = f"{api.url}/apis/apps/v1/namespaces/default/statefulsets/db?fieldManager=kubectl&force=true"
    headers = {"Content-Type": "application/apply-patch+yaml"}
    urllib.request.urlopen(urllib.request.Request(path, json.dumps(manifest).encode(), headers, method="PATCH")).close()


def test_a_claim_of_a_user_outlives_a_set_that_others_create_again_and_that_has_no_status_yet(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set before it names the controller, which has not made the claim."""
    filled = [((*RETENTION, one), "Retain") for one in ("whenDeleted", "whenScaled")]
    monkeypatch.setitem(defaults._DEFAULTS, "StatefulSet", [(("spec", "replicas"), 1), *filled])
    blue, last = Instance(api.url), config_map("last")
    last["metadata"]["finalizers"] = HELD
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        blue.reconcile([stateful_set("db"), last])
    api.put(claim("data-db-7", app="db"), manager="kubectl-client-side-apply")
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "last") and api.find("StatefulSet", "default", "db") is None)
    blue.wait_until_reported("db", "deleted")
    api.cluster.reactions.clear()  # the controllers are late
    blue.heard.clear()
    apply_as_user(api, labelled(stateful_set("db"), **{INSTANCE_LABEL: blue.id}))
    blue.wait_until_reported("db", "deleted")
    api.release("ConfigMap", "default", "last", HELD)
    run.result(60)
    assert "data-db-7" in api.names("PersistentVolumeClaim", "default")


def test_a_claim_of_the_first_second_of_an_instance_goes_though_a_list_did_not_say_who_has_made_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of a server that lags has no status of the set yet, which names its controller. The watch has it."""
    monkeypatch.setattr(defaults, "now", lambda: "2026-01-01T00:00:00Z")
    blue, database = Instance(api.url), stateful_set("db")
    database["metadata"]["finalizers"] = HELD
    blue.reconcile([database])
    api.edit("StatefulSet", "default", "db", without_status_manager)
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "StatefulSet", "db"))
    seen = api.get("StatefulSet", "default", "db")["status"]
    api.set_status("StatefulSet", "default", "db", {**seen, "collisionCount": 0}, manager=controllers.MANAGER)
    api.release("StatefulSet", "default", "db", HELD)
    run.result(60)
    assert state(api) == {}


def without_status_manager(live: Object) -> None:
    metadata = live["metadata"]
    metadata["managedFields"] = [one for one in metadata["managedFields"] if one.get("subresource") != "status"]
