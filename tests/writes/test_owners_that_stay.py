# SPDX-License-Identifier: Apache-2.0
"""Owners that turn out to stay, or to go, when their deletion was asked for, and what stays under them."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, GREEN, Instance, config_map, controlled_by, obj, wait_for
from tests.times import change_times
from tests.writes.claims import (
    HELD,
    is_going,
    never,
    replaceable,
)


@pytest.mark.parametrize("whose", ["ours", "cleared"])
def test_an_object_that_others_take_over_while_it_waits_for_its_deletion_stays(api: FakeApi, whose: str) -> None:
    """Cleared: somebody has emptied its `managedFields`, so that it is a member by its label and the inventory alone."""
    blue, first = Instance(api.url), config_map("first")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/a"}}
    blue.reconcile([config_map("a"), first])
    if whose == "cleared":
        api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(managedFields=[{}]))
    uid = api.get("ConfigMap", "default", "a")["metadata"]["uid"]
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "first"))
    taken = {"labels": {INSTANCE_LABEL: GREEN}, "managedFields": [{}]}
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(taken))
    blue.wait_until_reported("a", "deleted")
    api.release("ConfigMap", "default", "first", HELD)
    run.result(10)
    assert api.get("ConfigMap", "default", "a")["metadata"]["uid"] == uid


def test_what_is_left_to_the_collector_is_deleted_though_others_have_taken_its_owner_over(api: FakeApi) -> None:
    blue, first = Instance(api.url), config_map("first")
    first["metadata"] |= {"finalizers": HELD, "annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/a"}}
    blue.reconcile([config_map("a"), config_map("owned"), first])
    depended = controlled_by(api.get("ConfigMap", "default", "a"))
    api.edit("ConfigMap", "default", "owned", lambda live: live["metadata"].update(ownerReferences=[depended]))
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "first"))
    taken = {"labels": {INSTANCE_LABEL: GREEN}, "managedFields": [{}]}
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(taken))
    blue.wait_until_reported("a", "deleted")
    api.release("ConfigMap", "default", "first", HELD)
    run.result(15)
    assert api.find("ConfigMap", "default", "owned") is None


@pytest.mark.parametrize("managed", [True, False])
def test_a_kept_copy_of_others_is_not_released_from_its_owner(api: FakeApi, managed: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), config_map("b")])
    owner = api.get("ConfigMap", "default", "owner")
    copy = config_map("copy")
    copy["metadata"] |= {"labels": {INSTANCE_LABEL: BLUE}, "annotations": {KEEP: "true"}}
    copy["metadata"]["ownerReferences"] = [controlled_by(owner)]
    api.put(copy, manager="user")
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, config_map("b")], prune=managed)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    try:
        never(api, lambda: not api.get("ConfigMap", "default", "copy")["metadata"].get("ownerReferences"))
    finally:
        api.release("ConfigMap", "default", "owner", HELD)
        run.result(10)


@pytest.mark.parametrize("how", ["to another controller", "to nobody"])
def test_a_pod_that_its_controller_has_lost_before_its_deletion_is_tried_again_stays(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A user has changed its labels, to look into it, or it is another workload's now. The first deletion has failed."""
    owner, other = api.put(config_map("owner")), api.put(config_map("other"))
    made = obj("v1", "Pod", "chosen", "default", spec={"containers": [{"name": "c", "image": "i"}]})
    made["metadata"] |= {"labels": {"app": "web"}, "ownerReferences": [controlled_by(owner)]}
    chosen = api.put(made)
    references = [controlled_by(other)] if how == "to another controller" else []
    taken = {"labels": {"app": "other"}, "ownerReferences": references}

    def lost(_: Request) -> bool:
        api.edit("Pod", "default", "chosen", lambda live: live["metadata"].update(taken))
        return True

    change_times(monkeypatch, first_backoff=1.0)
    api.fail(faults.unavailable(), method="DELETE", path="pods/chosen$", when=lost)
    Instance(api.url).reconcile([config_map("a")], replacement=Replacement([("app=web", [chosen])]))
    assert api.names("Pod") == ["chosen"]
