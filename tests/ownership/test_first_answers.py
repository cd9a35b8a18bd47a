# SPDX-License-Identifier: Apache-2.0
"""The first answer to an operator that owns again what was released, once the deletion of the owner has begun."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.engine import releases
from tests.fake_api import FakeApi
from tests.instance import Instance, wait_for
from tests.ownership.claims import HELD, is_going, is_owned, is_the_same, never, own, replaceable, volume


@pytest.mark.parametrize("verb", ["change", "replacement"])
def test_a_desired_claim_that_is_owned_again_right_after_the_deletion_of_its_owner_has_begun_is_released_at_once(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The operator does so as it hears of the deletion, and takes its finalizer off soon after."""
    monkeypatch.setattr(releases, "AGAIN", 20)
    blue = Instance(api.url)
    blue.reconcile([replaceable(), volume()])
    owner = api.get("ConfigMap", "default", "owner")
    uid = own(api, owner)
    if verb == "change":
        run = blue.start([volume()])
    else:
        run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner"))
    own(api, owner)
    try:
        wait_for(api, lambda: not is_owned(api))
    finally:
        api.release("ConfigMap", "default", "owner", HELD)
        run.result(60)
    assert is_the_same(api, uid)


def test_what_a_replacement_has_released_itself_is_not_looked_at_meanwhile(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a look would be the answer that the operator has to wait for."""
    blue, looks, looked = Instance(api.url), list[Any](), releases.Releases._looked
    blue.reconcile([replaceable(), volume()])
    own(api, api.get("ConfigMap", "default", "owner"))

    def noted(found: releases.Releases, look: Any) -> Any:
        looks.append(look)
        return looked(found, look)

    monkeypatch.setattr(releases.Releases, "_looked", noted)
    run = blue.start([{**replaceable(), "data": {"a": "2"}}, volume()], prune=False)
    wait_for(api, lambda: is_going(api, "ConfigMap", "owner") and not is_owned(api))
    never(api, lambda: is_owned(api))
    assert not looks
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(60)
