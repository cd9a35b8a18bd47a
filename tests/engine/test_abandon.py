# SPDX-License-Identifier: Apache-2.0
"""A cluster that is left for good: what can be deleted is deleted, whatever cannot be listed, read or marked is reported."""

from __future__ import annotations

import threading

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.watch import discovery_gaps
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.kinds import Kind
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    Instance,
    claim,
    config_map,
    controlled_by,
    crontab,
    crontab_crd,
    obj,
    state,
    stateful_set,
    wait_for,
)
from tests.resources.health.objects import ANY_FIELDS

API = ("remote.example.com", "v1")
INVENTORY = f"k8s-cr-driver-{BLUE}"


def remote(name: str) -> Object:
    made = obj("remote.example.com/v1", "Remote", name, "default", spec={})
    made["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    return made


@pytest.fixture
def blue(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Instance:
    monkeypatch.setattr(discovery_gaps, "DISCOVER_EVERY", 0.02)
    kind = Kind(*API, "Remote", "remotes", generation=True, custom=True)
    api.cluster.serve(kind.resource, [kind])
    return Instance(api.url)


def abandoned(blue: Instance, seconds: float = 2) -> str:
    """What the error of a terminate with `abandon` says."""
    blue.abandon, blue.seconds = True, seconds
    with pytest.raises(NotReady) as left:
        blue.terminate()
    blue.abandon, blue.seconds = False, 60
    return str(left.value)


@pytest.mark.parametrize("forgets", [True, False])
def test_an_api_that_is_down_keeps_no_other_object(api: FakeApi, blue: Instance, forgets: bool) -> None:
    blue.reconcile([remote("a"), config_map("b")])
    api.knobs.forgets_down = forgets
    api.knobs.down.add(API)
    message = abandoned(blue)
    assert (api.names("Remote"), api.names("ConfigMap", "default")) == (["a"], [INVENTORY])
    assert ("Remote cannot be listed" if forgets else "has not listed remotes yet") in message
    assert "ConfigMap" not in message
    api.knobs.down.clear()
    blue.terminate()
    assert state(api) == {}


def test_an_api_that_comes_back_late_loses_its_objects_too(api: FakeApi, blue: Instance) -> None:
    blue.reconcile([remote("a"), config_map("b")])
    api.knobs.down.add(API)
    api.react("ConfigMap", lambda live: api.knobs.down.clear() if "deletionTimestamp" in live["metadata"] else None)
    api.edit("ConfigMap", "default", "b", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    blue.abandon, blue.seconds = True, 8
    run = blue.start([])
    wait_for(api, lambda: api.names("Remote") == [])
    api.release("ConfigMap", "default", "b")
    run.result(10)
    assert state(api) == {}


def test_a_kind_that_may_not_be_listed_keeps_no_other_object(api: FakeApi, blue: Instance) -> None:
    blue.reconcile([remote("a"), config_map("b")])
    api.knobs.denied.update({("list", "remote.example.com", "remotes", "*"), ("watch", "remote.example.com", "remotes", "*")})
    message = abandoned(blue)
    assert (api.names("Remote"), api.names("ConfigMap", "default")) == (["a"], [INVENTORY])
    assert "Remote.remote.example.com *: Waiting (NotListed): The driver must be allowed to list and watch remotes" in message


def test_a_crd_whose_objects_cannot_be_listed_stays_even_with_delete_guests(api: FakeApi, blue: Instance) -> None:
    """Another instance may have made some of them."""
    blue.reconcile([crontab_crd(), crontab("a")])
    api.fail(faults.internal("conversion webhook failed"), path="/crontabs$", times=10**6)
    blue.target["delete_guests"] = True
    abandoned(blue)
    assert api.names("CustomResourceDefinition") == ["crontabs.stable.example.com"]


@pytest.mark.parametrize("fault", [faults.status(403, "Forbidden", "no"), faults.internal("a webhook is down")])
def test_volume_claims_that_cannot_be_marked_keep_no_other_object(
    api: FakeApi, blue: Instance, fault: faults.Answer, caplog: pytest.LogCaptureFixture
) -> None:
    controllers.run_workloads(api)
    blue.reconcile([stateful_set("db"), config_map("a")])
    for name in ("data-db-0", "data-db-1"):
        api.put(claim(name, app="db"), manager=controllers.MANAGER)
    api.fail(fault, method="PATCH", path="persistentvolumeclaims/data-db-1", times=10**6)
    blue.abandon, blue.seconds = True, 8
    blue.terminate()
    assert (api.names("StatefulSet"), api.names("ConfigMap", "default")) == ([], [])
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-1"]
    assert "data-db-1" in caplog.text


def test_an_object_that_has_changed_and_may_not_be_read_any_more_stays_and_is_named(api: FakeApi, blue: Instance) -> None:
    """What has changed may be that it is to be kept."""
    last, first = config_map("last"), config_map("first")
    first["metadata"]["finalizers"] = ["example.com/hold"]
    first["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/last"}
    blue.reconcile([last, first])
    looks: list[Request] = []

    def looked(request: Request) -> bool:
        looks.append(request)
        if len(looks) == 1:
            api.release("ConfigMap", "default", "first")
        return True

    api.fail(faults.status(403, "Forbidden", "no"), method="GET", path="configmaps/last$", when=looked, times=10**6)
    api.react("ConfigMap", lambda live: unlabel(api) if "deletionTimestamp" in live["metadata"] else None)
    blue.abandon, blue.seconds = True, 8
    with pytest.raises(NotReady, match=r"ConfigMap default/last: .*403 Forbidden: no"):
        blue.terminate()
    assert looks
    assert api.names("ConfigMap", "default") == [INVENTORY, "last"]


def unlabel(api: FakeApi) -> None:
    if api.find("ConfigMap", "default", "last"):
        api.edit("ConfigMap", "default", "last", lambda live: live["metadata"]["labels"].pop(INSTANCE_LABEL, None))


def test_a_workload_to_which_a_stuck_object_refers_goes_all_the_same(api: FakeApi) -> None:
    """As that of a scaler whose operator was removed before: nobody takes the finalizer off any more."""
    blue, scaler, target = Instance(api.url), crontab("scaler"), config_map("target")
    definition = crontab_crd()
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", **ANY_FIELDS}
    scaler["spec"]["scaleTargetRef"] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "target"}
    scaler["metadata"]["finalizers"] = ["example.com/hold"]
    blue.reconcile([definition, scaler, target])
    abandoned(blue)
    assert (api.names("CronTab", "default"), api.find("ConfigMap", "default", "target")) == (["scaler"], None)


def test_an_object_that_is_listed_late_and_cannot_be_released_ends_no_run(api: FakeApi, blue: Instance) -> None:
    """Its owner is deleted already, and held by a finalizer, when the lists of its kind come."""
    precious = claim("volume")
    precious["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored", KEEP: "true"}
    held = config_map("owner")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    blue.reconcile([held, precious])
    owner = controlled_by(api.get("ConfigMap", "default", "owner"))
    api.edit("PersistentVolumeClaim", "default", "volume", lambda live: live["metadata"].update(ownerReferences=[owner]))
    fails = threading.Event()
    api.fail(faults.internal("etcd"), method="GET", path="claims$", when=lambda _: not fails.is_set(), times=10**6)
    api.fail(faults.status(403, "Forbidden", "no"), method="PATCH", path="claims/volume$", times=10**6)
    api.react("ConfigMap", lambda live: fails.set() if "deletionTimestamp" in live["metadata"] else None)
    assert "ConfigMap default/owner" in abandoned(blue, 6)


@pytest.mark.parametrize("why", ["finalizer", "denied"])
def test_an_owner_that_is_stuck_keeps_no_object_that_was_left_to_the_garbage_collector(api: FakeApi, why: str) -> None:
    blue, owner = Instance(api.url), crontab("owner")
    if why == "finalizer":
        owner["metadata"]["finalizers"] = ["example.com/hold"]
    blue.reconcile([crontab_crd(), owner, config_map("a")])
    reference = controlled_by(api.get("CronTab", "default", "owner"))
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(ownerReferences=[reference]))
    if why == "denied":
        api.fail(faults.denied("no"), method="DELETE", path="/crontabs/owner$", times=10**6)
    abandoned(blue, 2)
    assert (api.names("CronTab", "default"), api.find("ConfigMap", "default", "a")) == (["owner"], None)
