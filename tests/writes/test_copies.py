# SPDX-License-Identifier: Apache-2.0
"""Copies of members, with their labels and managedFields, are objects of users: a backup restored under another name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import NotOurs
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object, key_of, kind_of
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, annotated, config_map, crontab, crontab_crd, obj, restored

MADE_BEFORE = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("namespace", ["restore", "default"])
@pytest.mark.parametrize("verb", ["terminate", "change"])
@pytest.mark.parametrize("labeled", [True, False], ids=["labeled", "unlabeled"])
def test_a_restored_copy_of_a_member_stays(
    api: FakeApi, caplog: pytest.LogCaptureFixture, namespace: str, verb: str, labeled: bool
) -> None:
    api.put(obj("v1", "Namespace", "restore"))
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    live = api.get("ConfigMap", "default", "a")
    restored(api, live if labeled else {**live, "metadata": {**live["metadata"], "labels": {}}}, namespace)
    blue.reconcile([config_map("a", b="2")] if verb == "change" else [])
    assert "copy" in api.names("ConfigMap", namespace)
    assert not labeled or f"ConfigMap {namespace}/copy stays: it has the instance's label" in caplog.text


def test_a_restored_copy_of_a_custom_resource_keeps_its_crd(api: FakeApi) -> None:
    api.put(obj("v1", "Namespace", "restore"))
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("ours")])
    restored(api, api.get("CronTab", "default", "ours"), "restore")
    blue.terminate()
    assert api.names("CronTab") == ["copy"]


WROTE_NOTHING = {
    "403 after a restart": faults.forbidden("patch"),
    "429": faults.too_many(0),
    "denied with 503": faults.denied("later", 503, "ServiceUnavailable"),
}


@pytest.mark.parametrize("refusal", WROTE_NOTHING)
def test_a_write_that_certainly_did_not_happen_makes_no_copy_ours(api: FakeApi, refusal: str) -> None:
    """A user has restored a backup under the name that the next package brings; no other write of ours got a response."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    restored(api, api.get("ConfigMap", "default", "a"), "default")
    api.fail(faults.unavailable(), method="PATCH", path="configmaps/other$")
    api.fail(WROTE_NOTHING[refusal], method="PATCH", path="configmaps/copy$")
    last = annotated(config_map("copy", ours="2"), {DEPENDS_ON: "/namespaces/default/ConfigMap/other"})
    with pytest.raises(NotOurs):
        blue.reconcile([config_map("a"), config_map("other"), last])
    Instance(api.url).reconcile([config_map("a")])
    assert api.faults_pending == 0
    assert api.get("ConfigMap", "default", "copy")["data"] == api.get("ConfigMap", "default", "a")["data"]


def exported(api: FakeApi, live: Object, namespace: str) -> None:
    """As `kubectl get -o yaml` and `kubectl create` copy it: with its labels and annotations, and without managedFields."""
    kept = {name: live["metadata"][name] for name in ("labels", "annotations") if name in live["metadata"]}
    api.put({**live, "metadata": {**kept, "name": "copy", "namespace": namespace}}, manager="kubectl-create")


Copy = Callable[[FakeApi, Object, str], None]
COPIED = pytest.mark.parametrize("copied", [restored, exported])


def copy_of(api: FakeApi, copied: Copy, original: Object) -> Object:
    """Copies a member, and returns the manifest by which the next package brings an object of the copy's name."""
    key = key_of(original)
    copied(api, api.get(key.kind, key.namespace, key.name), key.namespace)
    return {**original, "metadata": {**original["metadata"], "name": "copy"}}


def killed_after_its_claim(api: FakeApi, brought: Object) -> None:
    """A worker that was killed between its claim and its first write."""
    blue = Instance(api.url)
    with Connection(blue.endpoint) as connection:
        inventory = Inventory(connection, blue.inventory_namespace, blue.id)
        inventory.claim("killed", [kind_of(brought)], ["default"], create=True, members=[key_of(brought)])


@pytest.mark.parametrize("original", [config_map("a"), obj("v1", "Namespace", "a")], ids=["ConfigMap", "Namespace"])
@COPIED
def test_a_copy_under_a_name_that_the_next_package_brings_is_not_ours(
    api: FakeApi, original: Object, copied: Copy
) -> None:
    blue = Instance(api.url)
    blue.reconcile([original])
    desired = copy_of(api, copied, original)
    before = api.get(desired["kind"], desired["metadata"].get("namespace"), "copy")
    for _ in range(2):
        with pytest.raises(NotOurs, match="copy exists already and was not created by this instance"):
            blue.reconcile([original, desired])
    blue.reconcile([original])
    blue.terminate()
    assert api.get(desired["kind"], desired["metadata"].get("namespace"), "copy") == before


@COPIED
def test_an_adopted_copy_keeps_what_it_had(api: FakeApi, copied: Copy) -> None:
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("a")])
    desired = copy_of(api, copied, config_map("a"))
    blue.reconcile([config_map("a"), {**desired, "data": {"ours": "2"}}])
    assert api.get("ConfigMap", "default", "copy")["data"] == {"a": "1", "ours": "2"}
    blue.terminate()
    assert api.get("ConfigMap", "default", "copy")["data"] == {"a": "1"}


def an_old_member(api: FakeApi) -> Instance:
    """An instance whose only object it has not written for a long time."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"]["managedFields"][0].update(time=MADE_BEFORE))
    return blue


def fail_before_the_copy_is_met(api: FakeApi, desired: Object) -> list[Object]:
    """A change that brings `desired` last, and ends at its deadline before it comes to that. Returns what it brings."""
    last = {**desired, "metadata": {**desired["metadata"], "annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/first"}}}
    brought = [config_map("a"), config_map("first"), last]
    api.fail(faults.internal(), path="configmaps/first", times=1000)
    with pytest.raises(NotReady):
        Instance(api.url, seconds=2).reconcile(brought)
    api.clear_faults()
    return brought


@COPIED
def test_a_copy_stays_though_a_worker_was_killed_before_it_met_it(api: FakeApi, copied: Copy) -> None:
    blue = an_old_member(api)
    desired = copy_of(api, copied, config_map("a"))
    killed_after_its_claim(api, desired)
    with pytest.raises(NotOurs):
        blue.reconcile([config_map("a"), desired])
    killed_after_its_claim(api, desired)
    blue.terminate()
    assert "copy" in api.names("ConfigMap", "default")


@COPIED
def test_a_copy_that_a_failed_change_has_not_met_is_refused_by_its_retry_and_outlives_its_rollback(
    api: FakeApi, copied: Copy
) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    brought = fail_before_the_copy_is_met(api, copy_of(api, copied, config_map("a")))
    with pytest.raises(NotOurs):
        blue.reconcile(brought)
    blue.reconcile([config_map("a")])
    assert "copy" in api.names("ConfigMap", "default")


@COPIED
def test_a_copy_stays_though_another_verb_has_completed_since_a_worker_was_killed(api: FakeApi, copied: Copy) -> None:
    blue = an_old_member(api)
    killed_after_its_claim(api, copy_of(api, copied, config_map("a")))
    blue.reconcile([config_map("a")], prune=False)
    blue.terminate()
    assert "copy" in api.names("ConfigMap", "default")


@COPIED
def test_a_copy_of_an_object_of_an_earlier_life_is_refused(api: FakeApi, copied: Copy) -> None:
    """The same VNF instance is terminated, and instantiated again with a package that brings an object of the copy's name."""
    blue = an_old_member(api)
    desired = copy_of(api, copied, config_map("a", user="data"))
    blue.terminate()
    with pytest.raises(NotOurs):
        blue.reconcile([desired])
    blue.terminate()
    assert "copy" in api.names("ConfigMap", "default")


def test_an_object_that_a_killed_worker_has_created_is_ours(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    api.fail(faults.internal(), path="configmaps/c", times=100)
    with pytest.raises(NotReady):
        Instance(api.url, seconds=2).reconcile([config_map("a"), config_map("b"), config_map("c")])
    api.clear_faults()
    blue.reconcile([config_map("a"), config_map("b")])
    blue.terminate()
    assert api.names("ConfigMap", "default") == []


def test_an_object_whose_creation_was_not_confirmed_is_ours(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    api.fail(faults.reset_after(), path="configmaps/b")
    blue.reconcile([config_map("a"), config_map("b")])
    assert not api.faults_pending
    blue.terminate()
    assert api.names("ConfigMap", "default") == []
