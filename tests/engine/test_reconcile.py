# SPDX-License-Identifier: Apache-2.0
"""A set of objects becomes real, and stays what the last set said."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import NotOurs
from tests.fake_api import FakeApi
from tests.instance import BLUE, GREEN, Instance, config_map, controlled_by, crontab, crontab_crd, obj


def test_objects_are_created_with_the_labels_of_their_owner(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a")])
    live = api.get("ConfigMap", "default", "a")
    assert live["metadata"]["labels"]["tacker_vnf_instance_id"] == BLUE
    assert live["metadata"]["labels"]["applyset.kubernetes.io/part-of"].startswith("applyset-")
    assert live["data"] == {"a": "1"}


def test_a_crd_and_its_objects_in_any_order(api: FakeApi) -> None:
    lives = Instance(api.url).reconcile([crontab("one"), crontab("two"), crontab_crd()])
    assert api.names("CronTab", "default") == ["one", "two"]
    assert len(lives) == 3


def test_prune_deletes_what_is_not_in_the_set_and_nothing_else(api: FakeApi) -> None:
    api.put(config_map("theirs"))
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    blue.reconcile([config_map("b", x="2")])
    assert set(api.names("ConfigMap", "default")) - {f"k8s-cr-driver-{BLUE}"} == {"b", "theirs"}
    assert api.get("ConfigMap", "default", "b")["data"] == {"x": "2"}


def test_the_empty_set_leaves_nothing_not_even_the_inventory(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("one"), obj("v1", "Namespace", "blue"), config_map("a", "blue")])
    blue.terminate()
    assert api.names("ConfigMap") == []
    assert api.names("CustomResourceDefinition") == []
    assert "blue" not in api.names("Namespace")


def test_an_object_of_somebody_else_is_refused_and_untouched(api: FakeApi) -> None:
    before = api.put(config_map("a", x="theirs"))
    with pytest.raises(NotOurs, match=r"ConfigMap default/a exists already.*adopt-existing"):
        Instance(api.url).reconcile([config_map("a")])
    assert api.get("ConfigMap", "default", "a") == before


def test_an_object_of_another_instance_is_refused_without_the_id_of_that(api: FakeApi) -> None:
    Instance(api.url, GREEN).reconcile([config_map("a")])
    with pytest.raises(NotOurs, match="ConfigMap default/a belongs to another VNF instance") as raised:
        Instance(api.url, BLUE).reconcile([config_map("a")])
    assert GREEN not in str(raised.value)


def test_an_adopted_object_is_left_in_place_at_the_end(api: FakeApi) -> None:
    api.put(config_map("a", theirs="1"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("a", ours="2")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"theirs": "1", "ours": "2"}
    blue.terminate()
    live = api.get("ConfigMap", "default", "a")
    assert live["data"] == {"theirs": "1"}
    assert "tacker_vnf_instance_id" not in live["metadata"].get("labels", {})


@pytest.mark.parametrize("first, last", [(BLUE, GREEN), (GREEN, BLUE)])
def test_two_instances_share_a_crd_and_a_namespace_until_the_last_goes(api: FakeApi, first: str, last: str) -> None:
    instances = {id: Instance(api.url, id) for id in (BLUE, GREEN)}
    for id, one in instances.items():
        one.reconcile([crontab_crd(), obj("v1", "Namespace", "both"), crontab(id[-1:] + "-tab", "both")])
    instances[first].terminate()
    assert api.names("CustomResourceDefinition") == ["crontabs.stable.example.com"]
    assert api.names("CronTab", "both") == [last[-1:] + "-tab"]
    instances[last].terminate()
    assert api.names("CustomResourceDefinition") == []
    assert "both" not in api.names("Namespace")


def test_a_shared_namespace_that_a_user_made_survives(api: FakeApi) -> None:
    api.put(obj("v1", "Namespace", "theirs"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([obj("v1", "Namespace", "theirs"), config_map("a", "theirs")])
    blue.terminate()
    assert "theirs" in api.names("Namespace")
    assert api.names("ConfigMap", "theirs") == []


def test_an_object_that_is_left_to_the_garbage_collector_is_reported_with_its_owner(api: FakeApi) -> None:
    """A finalizer holds the owner; nobody has asked for the deletion of the object."""
    blue, owner = Instance(api.url), config_map("owner")
    owner["metadata"]["finalizers"] = ["example.com/hold"]
    blue.reconcile([owner, config_map("a")])
    reference = controlled_by(api.get("ConfigMap", "default", "owner"))
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(ownerReferences=[reference]))
    blue.seconds = 3
    expected = r"ConfigMap default/a: .*not deleted yet, the garbage collector deletes it after ConfigMap owner"
    with pytest.raises(NotReady, match=expected):
        blue.terminate()
