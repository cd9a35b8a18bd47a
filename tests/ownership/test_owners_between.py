# SPDX-License-Identifier: Apache-2.0
"""What operators have made for an owner before the run goes with it, though the owner is gone before the first look."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.engine.replace import Replacement
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL
from tests.fake_api import FakeApi, controllers
from tests.instance import Instance, claim, controlled_by, obj, wait_for
from tests.ownership.claims import HELD, is_going, is_owned, is_the_same, own, replaceable, volume

RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture(autouse=True)
def no_look_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owners are gone before one."""
    monkeypatch.setattr(releases, "AGAIN", 20)


@pytest.mark.parametrize("verb", ["heal", "replacement", "change"])
def test_a_claim_that_is_owned_again_by_what_was_made_for_an_owner_outlives_both(
    api: FakeApi, collect: Callable[[], None], verb: str
) -> None:
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    made = api.put(controllers.owned(owner, "v1", "ConfigMap", "made"))
    uid = own(api, made)
    if verb == "change":
        run = blue.start([volume()])
    elif verb == "heal":
        replacement = Replacement([(f"{INSTANCE_LABEL}={blue.id}", [owner])])
        run = blue.start([replaceable()], prune=False, replacement=replacement)
    else:
        run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner") and not is_owned(api))
    own(api, made)
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(60)
    collect()
    assert is_the_same(api, uid)


def test_a_namespace_of_guests_that_is_owned_again_by_what_was_made_for_an_owner_outlives_both(
    api: FakeApi, collect: Callable[[], None]
) -> None:
    """The claim of the guest would go with it."""
    blue = Instance(api.url)
    owner, made = (obj(RBAC, "ClusterRole", name, rules=[]) for name in ("owner", "made"))
    owner["metadata"]["finalizers"] = HELD
    blue.reconcile([owner, obj("v1", "Namespace", "edge")])
    made["metadata"]["ownerReferences"] = [controlled_by(api.get("ClusterRole", None, "owner"))]
    reference = controlled_by(api.put(made))

    def own_again() -> None:
        api.edit("Namespace", None, "edge", lambda live: live["metadata"].update(ownerReferences=[reference]))

    def is_deleted(live: Object) -> bool:
        return "deletionTimestamp" in live["metadata"]

    guest = claim("guest")
    guest["metadata"]["namespace"] = "edge"
    api.put(guest, manager="user")
    own_again()
    run = blue.start([])
    wait_for(api, lambda: is_deleted(api.get("ClusterRole", None, "owner")))
    wait_for(api, lambda: not api.get("Namespace", None, "edge")["metadata"].get("ownerReferences"))
    own_again()
    api.release("ClusterRole", None, "owner", HELD)
    run.result(60)
    collect()
    assert not is_deleted(api.get("Namespace", None, "edge"))
    assert api.names("PersistentVolumeClaim", "edge") == ["guest"]
