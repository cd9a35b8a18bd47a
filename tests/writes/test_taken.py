# SPDX-License-Identifier: Apache-2.0
"""Fields of others that an instance has taken by force stay, whatever becomes of the instance."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.writes.taken import ALL, TAKEN, kept, noted, paths_of
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, obj

PASSWORD = {"password": "b3Vycw=="}


def secret(**data: str) -> Object:
    return obj("v1", "Secret", "a", "default", data=data)


@pytest.fixture
def blue(api: FakeApi) -> Instance:
    """It has adopted a user's Secret, has taken its password, and has added a field."""
    api.put(secret(password="dGhlaXJz", theirs="MQ=="), manager="kubectl")
    one = Instance(api.url, adopt=True, force=True)
    one.reconcile([secret(**PASSWORD, added="MQ=="), config_map("b")])
    one.target = {}
    return one


@pytest.mark.parametrize("verb", ["terminate", "change", "change without the field", "terminate after a heal"])
def test_a_release_never_empties_what_was_taken_by_force(api: FakeApi, blue: Instance, verb: str) -> None:
    if verb == "change":
        blue.reconcile([config_map("b")])
    elif verb == "change without the field":
        blue.reconcile([secret(added="MQ=="), config_map("b")])
        assert api.get("Secret", "default", "a")["data"] == {**PASSWORD, "theirs": "MQ==", "added": "MQ=="}
    elif verb == "terminate after a heal":
        blue.reconcile([secret(**PASSWORD, added="MQ=="), config_map("b")])
    blue.terminate()
    live = api.get("Secret", "default", "a")
    assert live["data"] == {**PASSWORD, "theirs": "MQ=="}
    assert TAKEN not in (live["metadata"].get("annotations") or {})


def test_what_was_taken_can_be_changed_without_force(api: FakeApi, blue: Instance) -> None:
    blue.reconcile([secret(password="bmV3"), config_map("b")])
    blue.terminate()
    assert api.get("Secret", "default", "a")["data"] == {"password": "bmV3", "theirs": "MQ=="}


def test_what_kubernetes_puts_into_each_namespace_keeps_what_was_taken(api: FakeApi) -> None:
    api.put(config_map("kube-root-ca.crt", x="theirs"), manager="kube-controller-manager")
    one = Instance(api.url, adopt=True, force=True)
    one.reconcile([config_map("kube-root-ca.crt", x="ours")])
    one.terminate()
    assert api.get("ConfigMap", "default", "kube-root-ca.crt")["data"] == {"x": "ours"}


def test_a_lost_answer_to_the_apply_by_force_loses_no_field(api: FakeApi) -> None:
    api.put(secret(password="dGhlaXJz"), manager="kubectl")
    one = Instance(api.url, adopt=True, force=True)
    api.fail(faults.reset_after(), method="PATCH", path="/secrets/a$", when=lambda request: "force=true" in str(request.query))
    one.reconcile([secret(**PASSWORD), config_map("b")])
    one.terminate()
    assert api.get("Secret", "default", "a")["data"] == PASSWORD


@pytest.mark.parametrize("text, paths", [('["a"]', ["a"]), ("{", [ALL]), ('{"a": 1}', [ALL]), ("[1]", []), ("", [])])
def test_a_note_that_makes_no_sense_keeps_all(text: str, paths: list[str]) -> None:
    assert paths_of({"metadata": {"annotations": {TAKEN: text}}}) == paths


def test_a_note_of_too_many_fields_keeps_all() -> None:
    assert noted({"metadata": {}}, [f".data.{number}" for number in range(10_000)]) == '[""]'


def test_the_fields_at_paths_get_another_owner() -> None:
    ports = {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:name": {}}, 'k:{"containerPort":81}': {"f:name": {}}}
    fields = {"f:spec": {"f:ports": ports, "f:other": {}}, "f:data": {"f:a.b": {}}, "f:set": {'v:"x"': {}, 'v:"y"': {}}}
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields}
    paths = ['.spec.ports[containerPort=80,protocol="TCP"].name', ".data.a.b", '.set[="y"]']
    [found, before] = kept({"metadata": {"managedFields": [entry]}}, "m", "keeper", paths)
    assert before == entry and found["manager"] == "keeper"
    port = {'k:{"containerPort":80,"protocol":"TCP"}': {"f:name": {}}}
    assert found["fieldsV1"] == {"f:spec": {"f:ports": port}, "f:data": {"f:a.b": {}}, "f:set": {'v:"y"': {}}}
