# SPDX-License-Identifier: Apache-2.0
"""Aggregated APIs whose servers are down: what an instance has of their kinds is neither gone nor forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.engine.watch import discovery_gaps
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import FakeApi, faults
from tests.fake_api.kinds import Kind
from tests.fake_api.recording import Request
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, obj, state

API = ("remote.example.com", "v1")
NAMED = r"APIService.apiregistration.k8s.io v1.remote.example.com: .* Remote cannot be listed; repair it"


@pytest.fixture(autouse=True)
def served(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery_gaps, "DISCOVER_EVERY", 0.02)
    kind = Kind(*API, "Remote", "remotes", generation=True, custom=True)
    api.cluster.serve(kind.resource, [kind])


def remote(name: str) -> Object:
    made = obj("remote.example.com/v1", "Remote", name, "default", spec={})
    made["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    return made


def kinds_of_inventory(api: FakeApi) -> str:
    live = api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    return str(live["metadata"]["annotations"]["applyset.kubernetes.io/contains-group-kinds"])


def is_discovery(request: Request) -> bool:
    return request.path == "/apis"


def come_back(api: FakeApi, at: int) -> None:
    """Has the server of the API answer again when discovery is asked for so many times."""
    looks: list[Request] = []

    def look(request: Request) -> bool:
        if is_discovery(request):
            looks.append(request)
        if len(looks) == at:
            api.knobs.down.clear()
        return False

    api.fail(faults.internal(), when=look)


@contextmanager
def session(api: FakeApi, seconds: float = 60) -> Iterator[Session]:
    operation = Operation("test", BLUE, seconds)
    with Session(Endpoint(api.url), Options(), operation, inventory_namespace="default") as opened:
        yield opened


def test_a_kind_of_an_api_that_is_down_is_not_gone(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([remote("a"), config_map("b")])
    api.knobs.down.add(API)
    with pytest.raises(NotReady, match=NAMED):
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
    with pytest.raises(NotReady, match=NAMED):
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
    assert len(api.requests.select(when=is_discovery)) == 1


def test_a_desired_object_waits_for_its_api(api: FakeApi) -> None:
    api.knobs.down.add(API)
    come_back(api, at=3)
    with session(api) as opened:
        opened.reconcile(opened.place([remote("a")]), prune=Prune())
    assert api.names("Remote") == ["a"]


def test_a_desired_object_of_an_api_that_is_down_is_reported_at_the_deadline(api: FakeApi) -> None:
    api.knobs.down.add(API)
    with session(api, seconds=1) as opened, pytest.raises(NotReady, match=NAMED):
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
