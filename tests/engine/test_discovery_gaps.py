# SPDX-License-Identifier: Apache-2.0
"""
Kinds of an instance that discovery does not list: its objects count as gone only if nothing defines the kind.

The server of an aggregated API may be down: what an instance has of its kinds is neither gone nor forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import TimeoutError
from contextlib import contextmanager

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.engine.watch import discovery_gaps
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import _ACCEPT
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import FakeApi, faults
from tests.fake_api.kinds import Kind
from tests.fake_api.recording import Request
from tests.instance import BLUE, Instance, annotated, config_map, crontab, crontab_crd, obj, state, wait_for

API = ("remote.example.com", "v1")
REMOTE = Kind(*API, "Remote", "remotes", generation=True, custom=True)
DOWN = r"APIService.apiregistration.k8s.io v1.remote.example.com: .* Remote cannot be listed; repair it"
CRD = "crontabs.stable.example.com"
NAMED = (
    rf"CustomResourceDefinition.apiextensions.k8s.io {CRD}: Waiting \(NotServed\): discovery does not list "
    "CronTab.stable.example.com, .*: serve a version of it, or delete it with them"
)
LISTS = ("customresourcedefinitions", "apiservices")


@pytest.fixture(autouse=True)
def served(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster serves an aggregated API."""
    monkeypatch.setattr(discovery_gaps, "DISCOVER_EVERY", 0.02)
    api.cluster.serve(REMOTE.resource, [REMOTE])


@pytest.fixture
def blue(api: FakeApi) -> Instance:
    """An instance whose CRD is not its own."""
    api.put(crontab_crd())
    instance = Instance(api.url)
    instance.reconcile([crontab("one"), config_map("a")])
    return instance


def remote(name: str) -> Object:
    made = obj("remote.example.com/v1", "Remote", name, "default", spec={})
    return annotated(made, {"k8s-cr-driver/ready-when": "stored"})


def serve(api: FakeApi, served: bool) -> None:
    api.edit("CustomResourceDefinition", None, CRD, lambda crd: crd["spec"]["versions"][0].update(served=served))


def forget_group(api: FakeApi, times: int = 1) -> None:
    """As an API server that has not seen the CRD yet."""
    with Connection(Endpoint(api.url)) as connection:
        found = connection.get_if_changed("/apis", _ACCEPT, "")
    assert found is not None
    groups = [one for one in found[0]["items"] if one["metadata"]["name"] != "stable.example.com"]
    api.fail(faults.lie(json.dumps({**found[0], "items": groups}).encode()), path="^/apis$", times=times)


def api_service(name: str, **labels: str) -> Object:
    made = obj("apiregistration.k8s.io/v1", "APIService", name, spec={})
    made["metadata"]["labels"] = labels
    return made


def kinds_of_inventory(api: FakeApi) -> str:
    live = api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    return str(live["metadata"]["annotations"]["applyset.kubernetes.io/contains-group-kinds"])


@pytest.mark.parametrize("left", [[], [config_map("b")]], ids=["terminate", "change"])
def test_a_crd_that_serves_no_version_keeps_its_objects_and_the_inventory(
    api: FakeApi, blue: Instance, left: list[Object]
) -> None:
    serve(api, False)
    with pytest.raises(NotReady, match=NAMED):
        Instance(api.url, seconds=2).reconcile(left)
    assert "CronTab.stable.example.com" in kinds_of_inventory(api)
    serve(api, True)
    assert api.names("CronTab") == ["one"]
    blue.reconcile(left)
    assert api.names("CronTab") == []


def test_terminate_goes_on_when_the_kind_is_served_again(api: FakeApi, blue: Instance) -> None:
    serve(api, False)
    looks = []

    def look(request: object) -> bool:
        looks.append(request)
        if len(looks) == 3:
            serve(api, True)
        return False

    api.fail(faults.internal(), path=f"/{LISTS[1]}$", when=look)
    blue.terminate()
    api.delete("CustomResourceDefinition", None, CRD)
    assert state(api) == {}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("left", [[], [config_map("b")]], ids=["terminate", "change"])
def test_responses_of_discovery_without_the_group_hide_no_object(
    api: FakeApi, blue: Instance, left: list[Object], times: int
) -> None:
    forget_group(api, times)
    blue.reconcile(left)
    assert api.faults_pending == 0
    assert api.names("CronTab") == []


@pytest.mark.parametrize("plural", LISTS)
def test_a_kind_stays_unknown_if_the_account_may_not_list_what_could_define_it(
    api: FakeApi, blue: Instance, plural: str
) -> None:
    api.delete("CustomResourceDefinition", None, CRD)
    api.knobs.denied.add(("list", "*", plural, "*"))
    named = rf"CronTab.stable.example.com \*: Waiting \(NotServed\): .*allow the driver to list {plural}"
    with pytest.raises(NotReady, match=named):
        Instance(api.url, seconds=2).terminate()
    assert "CronTab.stable.example.com" in kinds_of_inventory(api)
    api.knobs.denied.clear()
    blue.terminate()
    assert state(api) == {}


def test_a_kind_that_an_aggregated_api_no_longer_lists_stays_as_long_as_its_api_service(api: FakeApi) -> None:
    Instance(api.url).reconcile([remote("a")])
    api.put(api_service("v1.remote.example.com"))
    api.cluster.serve(REMOTE.resource, [])
    named = r"APIService.apiregistration.k8s.io v1.remote.example.com: Waiting \(NotServed\): .*Remote.remote.example.com"
    with pytest.raises(NotReady, match=named):
        Instance(api.url, seconds=1.5).terminate()
    api.cluster.serve(REMOTE.resource, [REMOTE])
    Instance(api.url).terminate()
    assert api.names("Remote") == []


def test_a_kind_whose_crd_others_have_deleted_has_no_objects(api: FakeApi, blue: Instance) -> None:
    """Other CRDs of the group, and the APIServices that the API server makes for these, are no sign of it."""
    other = crontab_crd()
    other["metadata"]["name"], other["spec"]["names"] = "tabs.stable.example.com", {"kind": "Tab", "plural": "tabs"}
    unserved = crontab_crd()
    unserved["metadata"]["name"], unserved["spec"]["names"] = "bars.stable.example.com", {"kind": "Bar", "plural": "bars"}
    unserved["spec"]["versions"][0]["served"] = False
    label = {"kube-aggregator.kubernetes.io/automanaged": "true"}
    brought = [other, unserved, api_service("v1.stable.example.com", **label)]
    for one in brought:
        api.put(one)
    api.delete("CustomResourceDefinition", None, CRD)
    api.requests.clear()
    blue.terminate()
    assert len(state(api)) == len(brought)
    assert [len(api.requests.select(when=lambda one, end=end: one.path.endswith(end))) for end in LISTS] == [1, 1]


def test_a_crd_that_the_run_itself_deletes_costs_no_further_request(api: FakeApi) -> None:
    Instance(api.url).reconcile([crontab_crd(), crontab("one")])
    api.requests.clear()
    Instance(api.url).terminate()
    assert state(api) == {}
    assert not api.requests.select(path=LISTS[1])


def test_a_crd_that_stops_serving_its_kind_during_terminate_keeps_its_objects_and_the_inventory(
    api: FakeApi, blue: Instance
) -> None:
    api.edit("CronTab", "default", "one", lambda live: live["metadata"].update(finalizers=["example.com/held"]))
    blue.seconds = 3
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("CronTab", "default", "one")["metadata"])
    serve(api, False)
    with pytest.raises(NotReady, match=NAMED):
        run.result(10)
    assert kinds_of_inventory(api)
    serve(api, True)
    api.release("CronTab", "default", "one", ["example.com/held"])
    blue.terminate()
    assert [key.name for key in state(api)] == [CRD]


def test_terminate_goes_on_in_the_version_that_a_crd_serves_by_then(api: FakeApi, blue: Instance) -> None:
    api.edit("CronTab", "default", "one", lambda live: live["metadata"].update(finalizers=["example.com/held"]))
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("CronTab", "default", "one")["metadata"])

    def serves_another(crd: Object) -> None:
        [version] = crd["spec"]["versions"]
        crd["spec"]["versions"] = [{**version, "served": False}, {**version, "name": "v2", "storage": False}]

    api.edit("CustomResourceDefinition", None, CRD, serves_another)
    wait_for(api, lambda: any("/v2/" in request.path for request in api.requests))
    with pytest.raises(TimeoutError):  # before, all of them counted as deleted at once
        run.result(1)
    api.release("CronTab", "default", "one", ["example.com/held"])
    run.result(10)
    assert [key.name for key in state(api)] == [CRD]


def come_back(api: FakeApi, at: int) -> None:
    """Has the server of the API answer again when discovery is asked for so many times."""
    looks: list[Request] = []

    def look(request: Request) -> bool:
        looks.append(request)
        if len(looks) == at:
            api.knobs.down.clear()
        return False

    api.fail(faults.internal(), path="^/apis$", when=look)


@contextmanager
def session(api: FakeApi, seconds: float = 60) -> Iterator[Session]:
    operation = Operation("test", BLUE, seconds)
    with Session(Endpoint(api.url), Options(), operation, inventory_namespace="default") as opened:
        yield opened


def test_a_kind_of_an_api_that_is_down_is_not_gone(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([remote("a"), config_map("b")])
    api.knobs.down.add(API)
    with pytest.raises(NotReady, match=DOWN):
        Instance(api.url, seconds=2.5).terminate()
    assert api.names("Remote") == ["a"]
    assert "Remote.remote.example.com" in kinds_of_inventory(api)
    api.knobs.down.clear()
    blue.terminate()
    assert state(api) == {}


def test_terminate_waits_until_the_api_is_up_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([remote("a")])
    api.knobs.down.add(API)
    come_back(api, at=4)
    blue.terminate()
    assert state(api) == {}
    assert not api.knobs.down


def test_terminate_waits_for_a_kind_that_discovery_lists_as_stale(api: FakeApi) -> None:
    api.knobs.forgets_down = False
    blue = Instance(api.url)
    blue.reconcile([remote("a")])
    api.knobs.down.add(API)
    with pytest.raises(NotReady, match=r"Remote.remote.example.com \*: .*/v1 has not listed remotes yet: .*503"):
        Instance(api.url, seconds=2.5).terminate()
    api.knobs.down.clear()
    blue.terminate()
    assert state(api) == {}


def test_a_change_while_an_api_is_down_keeps_its_kinds_in_the_inventory(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([remote("a"), config_map("b")])
    api.knobs.down.add(API)
    with pytest.raises(NotReady, match=DOWN):
        Instance(api.url, seconds=2).reconcile([config_map("c")])
    assert {"b", "c"} <= set(api.names("ConfigMap", "default"))
    api.knobs.down.clear()
    blue.reconcile([config_map("c")])
    assert api.names("Remote") == []
    assert "b" not in api.names("ConfigMap", "default")


def test_an_unrelated_api_that_is_down_does_not_matter(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("a"), config_map("b")])
    api.knobs.down.add(API)
    api.delete("CustomResourceDefinition", None, "crontabs.stable.example.com")
    blue.terminate()
    assert state(api) == {}


def test_discovery_is_repeated_at_a_bounded_rate(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery_gaps, "DISCOVER_EVERY", 60)
    blue = Instance(api.url)
    blue.reconcile([remote("a")])
    api.knobs.down.add(API)
    api.requests.clear()
    with pytest.raises(NotReady):
        Instance(api.url, seconds=2.5).terminate()
    assert len(api.requests.select(when=lambda one: one.path == "/apis")) == 1


def test_a_desired_object_waits_for_its_api(api: FakeApi) -> None:
    api.knobs.down.add(API)
    come_back(api, at=3)
    with session(api) as opened:
        opened.reconcile(opened.place([remote("a")]), prune=Prune())
    assert api.names("Remote") == ["a"]


def test_a_desired_object_of_an_api_that_is_down_is_reported_at_the_deadline(api: FakeApi) -> None:
    api.knobs.down.add(API)
    with session(api, seconds=1) as opened, pytest.raises(NotReady, match=DOWN):
        opened.place([remote("a"), config_map("b")])
    assert state(api) == {}


def test_a_scale_waits_for_the_api_of_its_object(api: FakeApi) -> None:
    with session(api) as opened:
        placed = opened.place([remote("a")])
        opened.reconcile(placed, prune=Prune())
    api.knobs.down.add(API)
    come_back(api, at=3)
    with session(api) as opened:
        opened.reconcile(placed, prune=None)
