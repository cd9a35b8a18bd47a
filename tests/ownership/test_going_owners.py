# SPDX-License-Identifier: Apache-2.0
"""What the deletion of a former run takes along, when a run that has no watch of it deletes others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.engine.replace import Replacement
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers
from tests.instance import Instance, config_map, controlled_by, crontab_crd, deployment, labelled, wait_for
from tests.ownership.claims import HELD, assert_released, held_crontab, is_going, is_the_same, own, replaceable, volume


def owned_by_what_goes(api: FakeApi, blue: Instance, *others: Object) -> str:
    """The deletion of the owner of a claim has begun, and a finalizer holds it: it has an owner itself. The claim's uid."""
    home = config_map("home")
    blue.reconcile([crontab_crd(), home, *others, held_crontab(), volume()])
    reference = controlled_by(api.get("ConfigMap", "default", "home"))
    tab = api.edit("CronTab", "default", "a", lambda live: live["metadata"].update(ownerReferences=[reference]))
    api.delete("CronTab", "default", "a")
    return own(api, tab)


def test_a_claim_outlives_its_owner_that_a_former_run_has_deleted_in_a_heal(api: FakeApi, collect: Callable[[], None]) -> None:
    controllers.run_workloads(api)
    blue, web = Instance(api.url), deployment()
    web["metadata"]["namespace"] = "default"
    uid = owned_by_what_goes(api, blue, web)
    [pod] = api.objects("Pod", "default")
    blue.reconcile([web], prune=False, replacement=Replacement([("app=web", [pod])]))
    api.release("CronTab", "default", "a", HELD)
    collect()
    assert is_the_same(api, uid)


def test_a_claim_outlives_its_owner_that_a_former_run_has_deleted_in_a_scale_that_replaces_others(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    blue, owner = Instance(api.url), replaceable()
    del owner["metadata"]["finalizers"]
    uid = owned_by_what_goes(api, blue, owner)
    blue.reconcile([{**owner, "data": {"a": "2"}}], prune=False)
    api.release("CronTab", "default", "a", HELD)
    collect()
    assert is_the_same(api, uid)


@pytest.mark.usefixtures("soon")
def test_a_claim_outlives_its_owner_that_others_delete_while_a_heal_replaces_a_machine(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    """An operator owns the claim by its part, which the heal has no watch of, and that goes before the machine does."""
    blue, part, home = Instance(api.url), config_map("part"), config_map("home")
    part["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), home, part, volume()])
    reference = controlled_by(api.get("ConfigMap", "default", "home"))
    part = api.edit("ConfigMap", "default", "part", lambda live: live["metadata"].update(ownerReferences=[reference]))
    machine = api.put(labelled(held_crontab(), app="web"), manager="operator")
    uid = own(api, part)
    run = blue.start([home], prune=False, replacement=Replacement([("app=web", [machine])]))
    wait_for(api, lambda: is_going(api, "CronTab", "a"))
    api.delete("ConfigMap", "default", "part")
    assert_released(api, part)
    api.release("ConfigMap", "default", "part", HELD)
    api.release("CronTab", "default", "a", HELD)
    run.result(60)
    collect()
    assert is_the_same(api, uid)
