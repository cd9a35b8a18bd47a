# SPDX-License-Identifier: Apache-2.0
"""Threads and connections do not grow with the kinds: those beyond the limits are listed, and nothing else differs."""

from __future__ import annotations

import copy
import threading

import pytest

from k8s_cr_driver.engine.run.operation import WatchLimits
from k8s_cr_driver.engine.watch import informers, reflectors
from k8s_cr_driver.errors import Conflict, Refused, Superseded
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import CONDITIONS, Instance, config_map, crontab, crontab_crd, job, obj, state, status, wait_for

KINDS = 12


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflectors, "READ_EVERY", 0.02)
    monkeypatch.setattr(reflectors, "_process", reflectors._Count())  # watches of other tests may be ending still


PACKAGE = [obj("stable.example.com/v1", f"Kind{n}", "a", "default", spec={"cronSpec": "x"}) for n in range(KINDS)]


def serve_kinds(api: FakeApi) -> None:
    for number in range(KINDS):
        crd = copy.deepcopy(crontab_crd(**CONDITIONS))
        crd["metadata"]["name"] = f"kind{number}s.stable.example.com"
        crd["spec"]["names"] = {"plural": f"kind{number}s", "singular": f"kind{number}", "kind": f"Kind{number}"}
        api.put(crd)


def wait_until_created(api: FakeApi) -> None:
    wait_for(api, lambda: all(api.find(one["kind"], "default", "a") for one in PACKAGE))


def make_ready(api: FakeApi) -> None:
    for one in PACKAGE:
        api.set_status(one["kind"], "default", "a", status())


def limited(api: FakeApi, *, operation: int = 50, process: int = 250) -> Instance:
    blue = Instance(api.url)
    blue.watches = WatchLimits(operation, process)
    return blue


def open_watches(but: set[threading.Thread]) -> list[str]:
    return [thread.name for thread in set(threading.enumerate()) - but if thread.name.startswith("watch ")]


@pytest.mark.parametrize("limit", [0, 3])
def test_an_instance_lives_with_fewer_watches_than_kinds(api: FakeApi, limit: int) -> None:
    """Its objects are created, become ready, are created again when somebody deletes them, and are deleted."""
    serve_kinds(api)
    before = state(api)
    blue = limited(api, operation=limit)
    run = blue.start(PACKAGE)
    wait_until_created(api)
    api.delete("Kind7", "default", "a")
    wait_until_created(api)
    make_ready(api)
    run.result(10)
    blue.terminate()
    assert state(api) == before


@pytest.mark.parametrize("limits", [{"operation": 3}, {"process": 3}])
def test_threads_and_connections_have_limits(api: FakeApi, limits: dict[str, int]) -> None:
    serve_kinds(api)
    before = set(threading.enumerate())
    blue = limited(api, **limits)
    run = blue.start(PACKAGE)
    wait_until_created(api)
    assert api.wait_for_streams(3)
    assert len(open_watches(before)) == 3
    assert api.connections_opened <= 3 + 8 + reflectors.LISTERS + 1  # watches, writers, listers, and the run itself
    make_ready(api)
    run.result(10)


def test_what_a_run_has_taken_of_the_process_others_have_after_it(api: FakeApi) -> None:
    for _ in range(3):
        limited(api, process=1).reconcile([config_map("a")])
        wait_for(api, lambda: not api.streams())
    assert len(api.requests.select(watch=True, path="configmaps")) >= 3


def test_a_run_that_lists_its_inventory_notices_that_another_has_taken_over(api: FakeApi) -> None:
    serve_kinds(api)
    blue = limited(api, operation=0)
    run = blue.start(PACKAGE)
    blue.wait_until_reported("a", "Waiting")
    other = limited(api, operation=0).start([])
    with pytest.raises(Superseded):
        run.result(10)
    other.result(10)


def test_kinds_that_hang_keep_no_write_waiting(api: FakeApi) -> None:
    """Each list of them holds a thread, but none of those that write."""
    serve_kinds(api)
    for number in range(reflectors.LISTERS):
        api.fail(faults.hang(), path=f"kind{number}s", method="GET", times=100)
    blue = limited(api, operation=4)
    blue.start([config_map("z"), *PACKAGE])
    wait_for(api, lambda: api.find("ConfigMap", "default", "z") is not None)
    blue.stop.set()


def test_the_first_kind_beyond_a_limit_is_logged_with_the_option(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for limits, option in ((WatchLimits(operation=1), "max_watches"), (WatchLimits(process=0), "max_process_watches")):
        caplog.clear()
        watched = reflectors.Watches(limits)
        taken = [watched.take() for _ in range(3)]
        here = (reflectors.__name__, threading.get_ident())  # runs of other tests may be ending still
        [logged] = [record.getMessage() for record in caplog.records if (record.name, record.thread) == here]
        assert f"[k8s_cr] {option}" in logged
        for _ in filter(None, taken):
            watched.give_back()


def test_objects_without_end_end_the_run(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    several = [config_map(f"a{number}") for number in range(11)]
    Instance(api.url).reconcile(several)
    monkeypatch.setattr(informers, "OBJECTS", 11)
    Instance(api.url).reconcile(several)
    monkeypatch.setattr(informers, "OBJECTS", 10)
    with pytest.raises(Refused, match="more than 10 objects ConfigMap"):
        Instance(api.url).reconcile(several)


def test_an_object_that_others_create_again_between_two_lists_is_another(api: FakeApi) -> None:
    """No list has shown that there was none of its name."""
    api.put(crontab_crd(**CONDITIONS))
    blue = limited(api, operation=0)
    run = blue.start([config_map("a", x="ours"), crontab("never-ready")])
    blue.wait_until_reported("a", "Ready")
    create_again(api, config_map("a", x="theirs"))
    with pytest.raises(Conflict, match=r"ConfigMap default/a.*\.data\.x"):
        run.result(10)


def test_an_object_that_others_create_again_while_it_is_replaced_is_another(api: FakeApi) -> None:
    controllers.run_workloads(api)
    blue = limited(api, operation=0)
    blue.reconcile([job("a", "i:1")])

    def happens(request: Request) -> bool:
        create_again(api, job("a", "i:9"))
        return False

    api.fail(faults.internal(), method="DELETE", path="jobs/a$", when=happens)
    with pytest.raises(Conflict, match=r"Job.batch default/a.*image"):
        blue.reconcile([job("a", "i:2", **{"k8s-cr-driver/replace": "true"})])


def create_again(api: FakeApi, made: Object) -> None:
    """As `kubectl replace --force` does, with the labels that the object had."""
    kind, name = made["kind"], made["metadata"]["name"]
    made["metadata"]["labels"] = api.get(kind, "default", name)["metadata"]["labels"]
    with api.cluster.store.lock:
        api.delete(kind, "default", name)
        api.put(made, manager="kubectl-replace")
