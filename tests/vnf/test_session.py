# SPDX-License-Identifier: Apache-2.0
"""The requests of a session itself, outside of the engine: discovery, and the CRDs of scalable kinds."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.errors import ApiError, ConnectionFailed, DriverError, Refused
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import CRD, Object
from k8s_cr_driver.objects.marks import KEEP
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import session as module
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.faults import Action
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, job, state, stateful_set


def session(url: str, **options: bool) -> Session:
    operation = Operation("test", BLUE, 30)
    return Session(Endpoint(url), Options(**options), operation, inventory_namespace="default")


def test_reading_a_crd_is_repeated_while_the_server_is_busy(api: FakeApi) -> None:
    crd = crontab_crd(replicas={"type": "integer"})
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    crd["spec"]["versions"][0]["subresources"] = {"scale": paths}
    api.put(crd)
    api.fail(faults.unavailable(), path=f"/{CRD.group}/v1/customresourcedefinitions/")
    with session(api.url) as opened:
        vdus = opened.stored_vdus({"cron": resource_for(crontab("one"))})
    assert vdus["cron"].replicas() == ("spec", "replicas")


@pytest.mark.parametrize("fault", [faults.reset_before(), faults.truncated(), faults.unavailable(), faults.lie(b"[]")])
@pytest.mark.parametrize("path", ["^/api$", "^/apis$"])
def test_discovery_is_repeated_like_every_other_request(api: FakeApi, fault: Action, path: str) -> None:
    api.fail(fault, path=path)
    with session(api.url):
        assert api.faults_pending == 0


def test_a_refused_connection_is_reported_at_once(api: FakeApi) -> None:
    api.close()
    with pytest.raises(ConnectionFailed, match=f"cannot connect to {api.url}"), session(api.url):
        pass


def test_discovery_that_keeps_failing_is_reported_before_the_deadline(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVERY_SECONDS", 0.2)
    api.fail(faults.unavailable(), path="^/apis$", times=100)
    with pytest.raises(ApiError, match="GET /apis: 503"), session(api.url):
        pass
    assert api.faults_pending


def nulls_crd() -> Object:
    crd = crontab_crd()
    fields = {
        "cronSpec": {"type": "string"},
        "selector": {"type": "object", "properties": {"matchLabels": {"type": "object", "nullable": False}}},
        "note": {"type": "string", "nullable": True},
        "mode": {"type": "string", "default": "fast"},
        "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    return crd


def with_nulls() -> Object:
    manifest = crontab("one")
    manifest["spec"] |= {"selector": {"matchLabels": None}, "note": None, "mode": None, "values": {"a": None, "b": {"c": None}}}
    manifest["spec"] |= {"labels": {"a": None, "b": "x"}, "list": [{"a": None}], "unknown": None}
    return manifest


KEPT = {
    "cronSpec": "* * * * *",
    "selector": {},
    "note": None,
    "values": {"a": None, "b": {"c": None}},
    "labels": {"b": "x"},
    "list": [{}],
}


@pytest.mark.parametrize("packaged", [True, False])
def test_nulls_that_the_schema_has_no_room_for_are_not_applied(api: FakeApi, packaged: bool) -> None:
    crd = nulls_crd()
    if not packaged:
        api.put(crd)
    with session(api.url) as opened:
        placed = opened.place([*([crd] if packaged else []), with_nulls()])
        assert placed[-1].manifest["spec"] == KEPT
        opened.reconcile(placed, prune=Prune())


def test_the_server_refuses_a_null_that_is_applied(api: FakeApi) -> None:
    api.put(nulls_crd())
    manifest = with_nulls()
    del manifest["spec"]["unknown"]
    with session(api.url) as opened, pytest.raises(Refused, match="must be of type object"):
        opened.reconcile([resource_for(manifest)], prune=Prune())


def test_nulls_stay_where_the_definition_may_not_be_read(api: FakeApi) -> None:
    api.put(nulls_crd())
    api.fail(faults.status(403, "Forbidden"), path=f"/{CRD.group}/v1/customresourcedefinitions/")
    with session(api.url) as opened:
        assert opened.place([with_nulls()])[0].manifest == {**with_nulls(), "metadata": {"name": "one", "namespace": "default"}}


def test_a_definition_is_read_once_for_all_objects_of_its_kind(api: FakeApi) -> None:
    api.put(nulls_crd())
    another = with_nulls()
    another["metadata"] = {"name": "two"}
    with session(api.url) as opened:
        opened.place([with_nulls(), another])
    assert len([one for one in api.requests if "/customresourcedefinitions/" in one.path]) == 1


def test_no_definition_is_read_for_objects_without_nulls(api: FakeApi) -> None:
    api.put(nulls_crd())
    with session(api.url) as opened:
        opened.place([crontab("one")])
    assert not [one for one in api.requests if "/customresourcedefinitions/" in one.path]


@pytest.mark.parametrize("named", [True, False])
def test_an_account_of_one_namespace_finds_the_objects_without_an_inventory(api: FakeApi, named: bool) -> None:
    Instance(api.url).reconcile([config_map("a")])
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    api.knobs.denied |= {("list", "", "configmaps", ""), ("watch", "", "configmaps", "")}
    manifest = config_map("a")
    if not named:
        del manifest["metadata"]["namespace"]
    with session(api.url) as opened:
        opened.recover_inventory([manifest])
        opened.reconcile([], prune=Prune())
    assert state(api) == {}


def test_a_recreated_object_is_a_member_though_an_inventory_without_members_was_found(api: FakeApi) -> None:
    """A rollback that has created the inventory again may be interrupted: the next one finds that inventory."""
    Instance(api.url).reconcile([config_map("a")])
    live = api.get("ConfigMap", "default", "a")
    api.delete("ConfigMap", "default", "a")
    api.put({**config_map("a"), "metadata": {name: live["metadata"][name] for name in ("name", "namespace", "labels")}})
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    for attempt in ("interrupted", "retried"):
        with session(api.url) as opened:
            opened.recover_inventory([config_map("a")])
            if attempt == "interrupted":
                opened.inventory.claim(attempt, [], [], create=True)
            else:
                opened.reconcile([], prune=Prune())
    assert state(api) == {}


def test_volume_claims_are_found_without_an_inventory_and_their_stateful_set(api: FakeApi) -> None:
    """A rollback may be interrupted when it has deleted the StatefulSet, and the inventory be deleted by then."""
    controllers.run_workloads(api)
    Instance(api.url).reconcile([stateful_set("db")])
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="persistentvolumeclaims/data-db-0")
    with pytest.raises(DriverError, match="data-db-0"):
        Instance(api.url).terminate()
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    with session(api.url) as opened:
        opened.recover_inventory([stateful_set("db")])
        opened.reconcile([], prune=Prune())
    assert state(api) == {}


def test_a_kept_object_that_would_have_to_be_replaced_is_refused_before_anything_is_written(api: FakeApi) -> None:
    first, second = job("a", "c:1", **{KEEP: "true"}), job("a", "c:2", **{KEEP: "true"})
    controllers.run_workloads(api)
    Instance(api.url).reconcile([config_map("b"), first])
    with session(api.url) as opened, pytest.raises(Refused, match="never deleted, nor replaced"):
        opened.reconcile(opened.place([config_map("new"), second]), prune=Prune())
    assert api.names("ConfigMap", "default") == ["b", f"k8s-cr-driver-{BLUE}"]


def test_fields_taken_by_force_are_logged_once_although_they_are_tried_before(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = config_map("a", x="1")
    manifest["metadata"]["annotations"] = {KEEP: "true"}
    Instance(api.url).reconcile([manifest])
    api.edit("ConfigMap", "default", "a", lambda live: live["data"].update(x="2"))
    with session(api.url, force_conflicts=True) as opened:
        opened.reconcile([resource_for(manifest)], prune=None)
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "1"}
    assert caplog.text.count("are taken by force") == 1


def test_a_first_set_that_a_webhook_denies_with_a_code_of_its_own_is_deleted_again(api: FakeApi) -> None:
    api.put(crontab_crd())
    api.fail(faults.denied("no such size", 406, "NotAcceptable"), method="PATCH", path="/crontabs/one$", times=99)
    with session(api.url) as opened, pytest.raises(Refused, match=r"default/one: admission webhook"):
        opened.reconcile(opened.place([config_map("a"), crontab("one")]), prune=Prune(), first=True)
    assert api.find("ConfigMap", "default", "a") is None
