# SPDX-License-Identifier: Apache-2.0
"""A rollback leaves what others have set since: nobody can give it force-conflicts, and the change has not caused it."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.errors import Conflict, Refused
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership.labels import is_managed
from k8s_cr_driver.ownership.managed_fields import without_conflicts
from tests.fake_api import FakeApi, controllers
from tests.instance import BLUE, GREEN, Instance, config_map, crontab_crd, deployment


def web(replicas: int, image: str) -> Object:
    made = deployment()
    made["spec"]["replicas"] = replicas
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return made


KINDS: list[tuple[Object, Object, Any]] = [
    (config_map("web", x="1", y="1"), config_map("web", x="1", y="2"), lambda live: live["data"].update(x="theirs")),
    (web(1, "1"), web(1, "2"), lambda live: live["spec"]["template"]["spec"]["containers"][0].update(image="theirs")),
    (web(1, "1"), web(2, "1"), lambda live: live["spec"].update(replicas=3)),
]


def content(live: Object) -> Object:
    return {name: value for name, value in live.items() if name not in ("metadata", "status")}


@pytest.mark.parametrize(("former", "newer", "edit"), KINDS, ids=["data", "an entry of a list", "a count"])
def test_a_rollback_leaves_fields_of_others(
    api: FakeApi, caplog: pytest.LogCaptureFixture, former: Object, newer: Object, edit: Any
) -> None:
    controllers.run_workloads(api)
    blue, kind = Instance(api.url), former["kind"]
    blue.reconcile([former])
    api.edit(kind, "default", "web", edit, manager="kubectl-edit")
    theirs = content(api.get(kind, "default", "web"))
    with pytest.raises(Conflict, match="kubectl-edit"):
        blue.reconcile([newer, config_map("new")])
    Instance(api.url, yields=True).reconcile([former])
    live = api.get(kind, "default", "web")
    assert content(live) == theirs
    assert is_managed(live, BLUE)
    assert "a rollback leaves what others have set: ." in caplog.text and "kubectl-edit" in caplog.text
    assert api.find("ConfigMap", "default", "new") is None


def test_a_rollback_restores_what_others_have_not_set(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a", x="1", y="1")])
    blue.reconcile([config_map("a", x="1", y="2", z="2")])
    api.edit("ConfigMap", "default", "a", lambda live: live["data"].update(x="theirs"), manager="kubectl-edit")
    Instance(api.url, yields=True).reconcile([config_map("a", x="1", y="1")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "theirs", "y": "1"}
    Instance(api.url).terminate()
    assert api.find("ConfigMap", "default", "a") is None


def test_a_rollback_leaves_the_versions_of_a_crd_that_a_user_has_changed(api: FakeApi) -> None:
    crd = crontab_crd()
    name = crd["metadata"]["name"]
    Instance(api.url).reconcile([crd])

    def widen(live: Object) -> None:
        live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["more"] = {"type": "string"}

    api.edit("CustomResourceDefinition", None, name, widen, manager="kubectl-edit")
    Instance(api.url, yields=True).reconcile([crd])
    version = api.get("CustomResourceDefinition", None, name)["spec"]["versions"][0]
    assert "more" in version["schema"]["openAPIV3Schema"]["properties"]


def test_a_rollback_goes_on_using_what_its_maker_has_changed(api: FakeApi) -> None:
    green, blue = Instance(api.url, GREEN), Instance(api.url)
    for one in (green, blue):
        one.reconcile([crontab_crd()])
    green.reconcile([crontab_crd(runs={"type": "integer"})])
    with pytest.raises(Conflict, match="Other VNF instances use it"):
        blue.reconcile([crontab_crd(), config_map("new")])
    Instance(api.url, yields=True).reconcile([crontab_crd()])


def test_a_rollback_takes_no_other_refusal_for_a_conflict(api: FakeApi) -> None:
    made = {**config_map("a", x="1"), "immutable": True}
    Instance(api.url).reconcile([made])
    with pytest.raises(Refused, match="immutable"):
        Instance(api.url, yields=True).reconcile([{**made, "data": {"x": "2"}}])


def test_a_new_user_of_a_shared_object_is_checked_in_a_rollback_as_well(api: FakeApi) -> None:
    Instance(api.url, GREEN).reconcile([crontab_crd(runs={"type": "integer"})])
    with pytest.raises(Conflict):
        Instance(api.url, yields=True).reconcile([crontab_crd(runs={"type": "string"})])


def owned(manager: str, fields: Object) -> Object:
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}


PORT = {"containerPort": 80, "name": "http"}


@pytest.mark.parametrize(("wanted", "there", "fields", "left"), [
    ({"a": 1, "b": 2}, {"a": 9, "b": 9}, {"f:a": {}}, {"b": 2}),
    ({"a": 1}, {"a": 1}, {"f:a": {}}, {"a": 1}),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, {"f:a": {"f:b": {}}}, {}),
    ({"a": {}}, {"a": {"b": 2}}, {"f:a": {"f:b": {}}}, {"a": {}}),
    ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2}}, {"f:a": {".": {}, "f:b": {}}}, {"a": {"c": 1}}),
    ({"a": [1, 2]}, {"a": [1, 3]}, {"f:a": {}}, {}),
    ({"a": [1]}, {"a": [1, 3]}, {"f:a": {"v:3": {}}}, {"a": [1]}),
    ({"a": [1]}, {"a": [3]}, {"f:a": {"i:0": {}}}, {"a": [1]}),
    (
        {"a": [{**PORT, "hostPort": 1}]},
        {"a": [{**PORT, "protocol": "TCP", "hostPort": 2}]},
        {"f:a": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:hostPort": {}}}},
        {"a": [PORT]},
    ),
    ({"a": [PORT]}, {"a": [{**PORT, "name": "x"}]}, {"f:a": {'k:{"containerPort":81}': {"f:name": {}}}}, {"a": [PORT]}),
    ({"a": "x"}, {"a": {"b": 1}}, {"f:a": {"f:b": {}}}, {"a": "x"}),
])  # fmt: skip
def test_fields_that_others_own_with_other_values_are_left_out(
    wanted: Object, there: Object, fields: Object, left: Object
) -> None:
    live = {**there, "metadata": {"managedFields": [owned("other", fields), owned("me", {"f:b": {}, "f:a": {}})]}}
    assert without_conflicts(wanted, live, "me") == left
