# SPDX-License-Identifier: Apache-2.0
"""What a failed operation has released, and an operator owns again before the next one: kept, adopted and shared objects."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from tests.fake_api import FakeApi, faults
from tests.instance import GREEN, Instance, config_map, crontab, crontab_crd, kept, obj, wait_for
from tests.writes.claims import is_the_same, own, volume
from tests.writes.holders import (
    CRD,
    NAMESPACE,
    ROLE,
    inner,
    own_by_role,
)


def fail_to_terminate(api: FakeApi, blue: Instance, released: str = "volume") -> None:
    fail_to_change(api, blue, [], released)


def fail_to_change(api: FakeApi, blue: Instance, objects: list[Object], released: str = "volume") -> None:
    """Once an object of that name is released, and the deletion of another one was denied."""
    api.fail(faults.denied("not now"), method="DELETE", path="/clusterroles/owner$", times=10**6)
    api.requests.clear()
    blue.heard.clear()
    run = blue.start(objects)
    blue.wait_until_reported(released, "left")
    wait_for(api, lambda: len(api.requests.select("DELETE", "/clusterroles/owner")) > 1)
    blue.end()
    with pytest.raises(DriverError, match="not now"):
        run.result(60)
    api.clear_faults()


@pytest.mark.parametrize("whose", ["kept", "adopted"])
def test_a_claim_that_is_owned_again_after_a_failed_terminate_outlives_the_next_one(api: FakeApi, whose: str) -> None:
    blue = Instance(api.url, adopt=True, force=True)
    if whose == "adopted":
        api.put(volume(), manager="user")
    blue.reconcile([ROLE, volume(whose)])
    owner = api.get("ClusterRole", None, "owner")
    uid = own(api, owner)
    fail_to_terminate(api, blue)
    own(api, owner)
    blue.terminate()
    assert api.find("ClusterRole", None, "owner") is None
    assert is_the_same(api, uid)


@pytest.mark.parametrize("whose", ["kept", "adopted"])
def test_a_claim_that_a_failed_change_has_released_outlives_an_owner_that_a_heal_replaces(api: FakeApi, whose: str) -> None:
    """The operation is failed, not retried. The instance has its former package, with the claim."""
    blue, owner = Instance(api.url, adopt=True, force=True), config_map("owner")
    if whose == "adopted":
        api.put(volume(), manager="user")
    blue.reconcile([ROLE, owner, volume(whose)])
    fail_to_change(api, blue, [owner])
    before = api.get("ConfigMap", "default", "owner")
    uid = own(api, before)
    replacement = Replacement([(f"{INSTANCE_LABEL}={blue.id}", [before])])
    blue.reconcile([owner], prune=False, replacement=replacement)
    assert api.get("ConfigMap", "default", "owner")["metadata"]["uid"] != before["metadata"]["uid"]
    assert is_the_same(api, uid)


@pytest.mark.parametrize("place", [NAMESPACE, CRD], ids=["Namespace", "CRD"])
def test_what_another_instance_has_outlives_the_owner_of_a_shared_object_that_a_failed_terminate_has_released(
    api: FakeApi, place: tuple[str, None, str]
) -> None:
    shared, inside = {NAMESPACE: (obj("v1", "Namespace", "inner"), inner("desired")), CRD: (crontab_crd(), crontab("a"))}[place]
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    blue.reconcile([ROLE, shared])
    green.reconcile([shared, inside])
    where = inside["kind"], inside["metadata"]["namespace"], inside["metadata"]["name"]
    uid = api.get(*where)["metadata"]["uid"]
    own_by_role(api, place)
    fail_to_terminate(api, blue, place[2])
    own_by_role(api, place)
    blue.terminate()
    assert api.find("ClusterRole", None, "owner") is None
    assert api.find(*place)
    assert api.get(*where)["metadata"]["uid"] == uid


MANY = 50


def renamed(manifest: Object, name: str) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}}


def test_a_retry_of_terminate_does_not_read_each_object_that_is_gone(api: FakeApi) -> None:
    blue, names = Instance(api.url), [f"c{number}" for number in range(MANY)]
    blue.reconcile([config_map("last"), *map(config_map, names)])
    for name in names:
        api.delete("ConfigMap", "default", name)
    api.requests.clear()
    blue.terminate()
    assert len(api.requests.select("GET", "/configmaps/c")) < MANY / 2


def test_a_kept_object_among_many_that_are_gone_outlives_an_owner_that_owns_it_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    claims = [renamed(kept(volume()), f"v{number}") for number in range(MANY)]
    blue.reconcile([ROLE, volume("kept"), *claims])
    uid = own(api, api.get("ClusterRole", None, "owner"))
    fail_to_terminate(api, blue)
    for one in claims:
        api.delete("PersistentVolumeClaim", "default", one["metadata"]["name"])
    own(api, api.get("ClusterRole", None, "owner"))
    blue.seconds = 60
    blue.terminate()
    assert api.find("ClusterRole", None, "owner") is None
    assert is_the_same(api, uid)
