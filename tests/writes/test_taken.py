# SPDX-License-Identifier: Apache-2.0
"""Fields of others that an instance has taken by force stay, whatever becomes of the instance."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.managed_fields import beyond, common
from k8s_cr_driver.writes.release import TAKEN
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


@pytest.mark.parametrize("note", ["{", "[1]", "all"])
def test_a_note_that_makes_no_sense_keeps_all(api: FakeApi, blue: Instance, note: str) -> None:
    api.edit("Secret", "default", "a", lambda live: live["metadata"]["annotations"].update({TAKEN: note}))
    blue.terminate()
    assert api.get("Secret", "default", "a")["data"] == {**PASSWORD, "theirs": "MQ==", "added": "MQ=="}


def test_a_note_of_too_many_fields_keeps_all(api: FakeApi) -> None:
    many = {f"{number:0200}": "MQ==" for number in range(400)}
    api.put(secret(password="dGhlaXJz", **many), manager="kubectl")
    one = Instance(api.url, adopt=True, force=True)
    one.reconcile([secret(**PASSWORD, added="MQ==")])
    one.terminate()
    assert api.get("Secret", "default", "a")["data"] == {**PASSWORD, **many, "added": "MQ=="}


PORT, OTHER = 'k:{"containerPort":80,"protocol":"TCP"}', 'k:{"containerPort":81,"protocol":"TCP"}'
PORTS = {PORT: {".": {}, "f:name": {}}, OTHER: {".": {}}}
OURS = {"f:spec": {"f:ports": PORTS, "f:a": {}}, "f:set": {'v:"x"': {}, 'v:"y"': {}}}


@pytest.mark.parametrize(("other", "found"), [
    ({}, {}),
    ({"f:spec": {}}, {"f:spec": OURS["f:spec"]}),
    ({"f:spec": {".": {}, "f:b": {}}}, {}),
    ({"f:spec": {"f:ports": {PORT: {"f:name": {}, "f:x": {}}}}}, {"f:spec": {"f:ports": {PORT: {"f:name": {}}}}}),
    ({"f:set": {'v:"y"': {}}}, {"f:set": {'v:"y"': {}}}),
])  # fmt: skip
def test_what_two_managers_own(other: Object, found: Object) -> None:
    assert common(OURS, other) == found


@pytest.mark.parametrize(("manifest", "left"), [
    ({}, OURS),
    ({"spec": {"ports": [{"containerPort": 80, "name": "n"}, {"containerPort": 81}], "a": 0}, "set": ["x", "y"]}, {}),
    ({"spec": {"ports": [{"containerPort": 80}, {"containerPort": 81}], "a": 0}, "set": ["x", "y"]},
     {"f:spec": {"f:ports": {PORT: {"f:name": {}}}}}),
    ({"spec": {"ports": [{"containerPort": 80, "name": "n"}]}, "set": ["x"]},
     {"f:spec": {"f:ports": {OTHER: {".": {}}}, "f:a": {}}, "f:set": {'v:"y"': {}}}),
])  # fmt: skip
def test_what_a_manifest_does_not_set(manifest: Object, left: Object) -> None:
    assert beyond(OURS, manifest) == left
