# SPDX-License-Identifier: Apache-2.0
"""What a desired object owns that others delete is listed, while other objects go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.engine import releases
from k8s_cr_driver.engine.not_ready import NotReady
from k8s_cr_driver.engine.recreate import Recreator
from k8s_cr_driver.engine.timeouts import Timeouts
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, config_map, controlled_by, crontab_crd, wait_for
from tests.ownership.claims import HELD, VOLUME, assert_outlives, held_crontab, is_going, is_the_same, own, volume


def follows(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a run has noted what a desired object owns that others delete."""
    done, follow = threading.Event(), Recreator._follow

    def followed(*arguments: Any) -> None:
        follow(*arguments)
        done.set()

    monkeypatch.setattr(Recreator, "_follow", followed)
    return done


def test_a_claim_outlives_what_goes_later_in_a_change_in_which_others_delete_a_desired_object(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator owns the claim by what it has made of a part, whose deletion waits for that of its user."""
    blue, home, other = Instance(api.url), config_map("home"), config_map("other")
    part, user = config_map("part"), config_map("user")
    user["metadata"] |= {"annotations": {DEPENDS_ON: "/namespaces/default/ConfigMap/part"}, "finalizers": HELD}
    other["metadata"]["finalizers"] = HELD
    blue.reconcile([home, other, part, user, volume()])
    reference = controlled_by(api.get("ConfigMap", "default", "home"))
    api.edit("ConfigMap", "default", "part", lambda live: live["metadata"].update(ownerReferences=[reference]))
    made = api.put(controllers.owned(api.get("ConfigMap", "default", "part"), "v1", "ConfigMap", "made"))
    is_followed = follows(monkeypatch)
    run = blue.start([home, other, volume()])
    wait_for(api, lambda: is_going(api, "ConfigMap", "user"))
    api.delete("ConfigMap", "default", "other")
    assert is_followed.wait(60)
    api.requests.clear()
    uid = own(api, made)
    wait_for(api, lambda: bool(api.requests.select("GET", "/configmaps/made")))
    api.release("ConfigMap", "default", "user", HELD)
    wait_for(api, lambda: api.find("ConfigMap", "default", "part") is None)
    api.release("ConfigMap", "default", "other", HELD)
    run.result(60)
    assert is_the_same(api, uid)


def test_the_last_look_is_made_though_a_list_has_an_object_that_is_gone(
    api: FakeApi, collect: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kept claim that no watch selects, and that is owned at the end by the last that goes."""
    monkeypatch.setattr(releases, "AGAIN", 20)
    blue = Instance(api.url)
    home, other, part, owner = map(config_map, ("home", "other", "part", "owner"))
    for one in (other, part, owner):
        one["metadata"]["finalizers"] = HELD
    blue.reconcile([home, other, part, owner, volume("kept")])
    reference = controlled_by(api.get("ConfigMap", "default", "home"))
    api.edit("ConfigMap", "default", "part", lambda live: live["metadata"].update(ownerReferences=[reference]))
    is_followed, is_held, is_gone = follows(monkeypatch), threading.Event(), threading.Event()

    def is_list(request: Request) -> bool:
        if not request.watch:
            is_held.set()
        return not request.watch

    run = blue.start([home, other])
    wait_for(api, lambda: is_going(api, "ConfigMap", "part") and is_going(api, "ConfigMap", "owner"))
    wait_for(api, lambda: INSTANCE_LABEL not in api.get(*VOLUME)["metadata"].get("labels", {}))
    blue.heard.clear()
    api.fail(faults.held(60, is_gone), method="GET", path="/persistentvolumeclaims$", when=is_list)
    api.delete("ConfigMap", "default", "other")
    assert is_held.wait(60)
    api.release("ConfigMap", "default", "part", HELD)
    blue.wait_until_reported("part", "deleted")
    is_gone.set()
    assert is_followed.wait(60)
    api.release("ConfigMap", "default", "other", HELD)
    blue.wait_until_reported("other", "Ready")
    uid = own(api, api.get("ConfigMap", "default", "owner"))
    api.release("ConfigMap", "default", "owner", HELD)
    run.result(60)
    collect()
    assert is_the_same(api, uid)


def test_a_run_says_what_it_waits_for_when_a_list_hangs(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    blue, owner = Instance(api.url), config_map("owner")
    is_over, not_ready = threading.Event(), Timeouts.not_ready

    def over(timeouts: Timeouts, seconds: float) -> NotReady:
        is_over.set()
        return not_ready(timeouts, seconds)

    monkeypatch.setattr(Timeouts, "not_ready", over)
    owner["metadata"]["finalizers"] = HELD
    blue.reconcile([owner, volume()])
    api.delete("ConfigMap", "default", "owner")
    api.requests.clear()
    blue.heard.clear()
    held = faults.held(end=is_over)
    api.fail(held, method="GET", path="/persistentvolumeclaims$", when=lambda one: not one.watch, times=1000)
    run = blue.start([owner], prune=False)
    wait_for(api, lambda: any("persistentvolumeclaims" in one.path and not one.watch for one in api.requests))
    api.release("ConfigMap", "default", "owner", HELD)
    blue.wait_until_reported("owner", "Ready")
    blue.end()
    with pytest.raises(NotReady, match="what it owned is not read yet"):
        run.result(60)


@pytest.mark.usefixtures("soon")
def test_a_claim_outlives_an_owner_that_others_delete_after_a_desired_object_in_a_scale(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scale has no watch of the owner, which it has listed when the desired object went."""
    blue, home, other = Instance(api.url), config_map("home"), config_map("other")
    other["metadata"]["finalizers"] = HELD
    blue.reconcile([crontab_crd(), home, other, held_crontab(), volume()])
    reference = controlled_by(api.get("ConfigMap", "default", "home"))
    tab = api.edit("CronTab", "default", "a", lambda live: live["metadata"].update(ownerReferences=[reference]))
    uid = str(api.get("PersistentVolumeClaim", "default", "volume")["metadata"]["uid"])
    api.delete("ConfigMap", "default", "other")
    is_followed = follows(monkeypatch)
    run = blue.start([home, other, volume()], prune=False)
    assert is_followed.wait(60)
    api.delete("CronTab", "default", "a")
    assert_outlives(api, uid, run, tab, ("CronTab", "a"), ("ConfigMap", "other"))
