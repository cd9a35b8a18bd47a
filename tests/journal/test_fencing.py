# SPDX-License-Identifier: Apache-2.0
"""Two workers on one instance: the one that began last goes on, the other stops and touches nothing any more."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import pytest

from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.loop import Loop
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune, reconcile
from k8s_cr_driver.errors import Superseded
from k8s_cr_driver.journal import fence
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube import connection, watch
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of, key_of
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes import guests
from k8s_cr_driver.writes.context import WriteContext
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, CONDITIONS, Instance, config_map, crontab, crontab_crd, obj, state, status, wait_for
from tests.times import REAL, change_times

CRD = crontab_crd(**CONDITIONS)
DEPENDS_ON, CRONTAB = "config.kubernetes.io/depends-on", "stable.example.com/namespaces/default/CronTab/one"


def test_the_second_worker_stops_the_first_while_that_waits(api: FakeApi) -> None:
    first, second = Instance(api.url), Instance(api.url)
    old = first.start([CRD, crontab("one"), config_map("old")])
    first.wait_until_reported("one", "Waiting")
    new = second.start([CRD, crontab("one"), config_map("new")])
    with pytest.raises(Superseded, match="Another worker took over"):
        old.result(10)
    second.wait_until_reported("one", "Waiting")
    api.set_status("CronTab", "default", "one", status())
    new.result(10)
    assert [name for name in api.names("ConfigMap") if not name.startswith("k8s-cr-driver")] == ["new"]


def test_a_worker_whose_instance_was_terminated_meanwhile_stops(api: FakeApi) -> None:
    first = Instance(api.url)
    run = first.start([CRD, crontab("one")])
    first.wait_until_reported("one", "Waiting")
    Instance(api.url).terminate()
    with pytest.raises(Superseded):
        run.result(10)
    assert state(api) == {}


def test_a_worker_that_ends_at_once_does_not_give_back_what_another_may_still_write(api: FakeApi) -> None:
    """Else a terminate that begins then waits for nobody, and the writes of the first worker come after it."""
    first, second = Instance(api.url), Instance(api.url)
    old = first.start([CRD, crontab("one")])
    first.wait_until_reported("one", "Waiting")
    asked = iter([True])  # before its claim
    second.is_current = lambda: next(asked, False)
    with pytest.raises(Superseded, match="before this worker had claimed"):
        second.reconcile([CRD])
    with pytest.raises(Superseded, match="Another worker took over"):
        old.result(10)
    assert annotations_of(api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}"))["k8s-cr-driver/released"] == "false"


@pytest.fixture
def real_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token is trusted as long as on a real cluster: shorter limits hide what happens meanwhile."""
    change_times(monkeypatch, trusted=REAL.trusted)


@pytest.fixture
def half_open(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The streams of the inventory say nothing, and have said nothing for long: only a look at it can tell."""
    api.fail(faults.half_open(), when=is_fence, times=100)
    change_times(monkeypatch, trusted=-1)


def is_fence(request: Request) -> bool:
    return "inventory" in request.query.get("labelSelector", "")


def take_over(api: FakeApi) -> None:
    """Another worker writes its token."""
    token = {"k8s-cr-driver/token": "another"}
    api.edit("ConfigMap", "default", f"k8s-cr-driver-{BLUE}", lambda live: live["metadata"]["annotations"].update(token))


@pytest.mark.usefixtures("half_open")
def test_a_worker_that_was_superseded_unnoticed_writes_nothing(api: FakeApi) -> None:
    first, second = Instance(api.url), Instance(api.url)
    made = crontab("one")
    late = {**config_map("late"), "metadata": {**config_map("late")["metadata"], "annotations": {DEPENDS_ON: CRONTAB}}}
    old = first.start([CRD, made, late])
    first.wait_until_reported("one", "Waiting")
    new = second.start([CRD, made])
    second.wait_until_reported("one", "Waiting")
    api.requests.clear()
    api.set_status("CronTab", "default", "one", status())
    with pytest.raises(Superseded):
        old.result(10)
    new.result(10)
    assert not api.find("ConfigMap", "default", "late")
    assert not api.requests.select("PATCH", "configmaps/late")


@pytest.mark.usefixtures("half_open")
@pytest.mark.parametrize("abandon", [False, True])
def test_a_worker_that_was_superseded_unnoticed_deletes_nothing(api: FakeApi, abandon: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    blue.abandon = abandon
    changed: list[Request] = []

    def is_overtaken(request: Request) -> bool:
        """Between the last answer that the stale worker waits for and its first delete."""
        if request.watch and not is_fence(request):
            changed.append(request)
            take_over(api)
        return False

    api.fail(faults.internal(), when=is_overtaken, times=100)
    with pytest.raises(Superseded):
        blue.terminate()
    assert changed
    assert api.find("ConfigMap", "default", "b")
    assert not api.requests.select("DELETE")


@pytest.mark.usefixtures("half_open")
def test_a_worker_that_was_superseded_unnoticed_replaces_no_children(api: FakeApi) -> None:
    def overtake(live: Object) -> None:
        if annotations_of(live).get("k8s-cr-driver/token", "another") != "another":
            take_over(api)

    child = api.put(config_map("child"))
    api.react("ConfigMap", overtake)
    with pytest.raises(Superseded):
        Instance(api.url).reconcile([config_map("a")], replacement=Replacement([("", [child])]))
    assert not api.requests.select("DELETE")


ACCOUNT = obj("v1", "ServiceAccount", "default", "n", automountServiceAccountToken=False)


@pytest.mark.usefixtures("half_open")
@pytest.mark.parametrize("given_up", [config_map("theirs"), ACCOUNT], ids=["adopted", "of each Namespace"])
def test_a_worker_that_was_superseded_unnoticed_gives_no_fields_up(api: FakeApi, given_up: Object) -> None:
    """Between the last answer before it gives them up, and that."""
    key = key_of(given_up)
    blue = Instance(api.url, adopt=True)
    if given_up is not ACCOUNT:
        api.put(given_up)
    blue.reconcile([obj("v1", "Namespace", "n"), given_up])

    def is_overtaken(request: Request) -> bool:
        """The last answer: of the mark, or of a read."""
        is_mark = request.method == "PATCH" and "merge" in request.content_type
        if request.path.endswith(f"/{key.name}") and (is_mark or request.method == "GET"):
            take_over(api)
        return False

    api.requests.clear()
    api.fail(faults.internal(), when=is_overtaken, times=100)
    with pytest.raises(Superseded):
        blue.terminate()
    applied = api.requests.select("PATCH", when=lambda one: "apply" in one.content_type)
    assert not [one for one in applied if one.path.endswith(f"/{key.name}")]


def test_a_delete_that_another_worker_has_overtaken_hits_no_newer_object(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    uid = api.get("ConfigMap", "default", "a")["metadata"]["uid"]
    blue.terminate()
    deletes = api.requests.select("DELETE", "configmaps/a")
    assert [request.body["preconditions"]["uid"] for request in deletes] == [uid]


def test_of_many_workers_at_once_one_ends_well_and_the_rest_stop(api: FakeApi) -> None:
    workers = [Instance(api.url) for _ in range(4)]
    runs = [worker.start([CRD, crontab("one"), config_map(f"map-{number}")]) for number, worker in enumerate(workers)]
    api.react("CronTab", lambda live: "status" in live or _ready(api), "stable.example.com")
    results = [run.exception(20) for run in runs]
    assert all(result is None or isinstance(result, Superseded) for result in results), results
    assert any(result is None for result in results)
    Instance(api.url).terminate()
    assert state(api) == {}


@pytest.mark.usefixtures("real_limits")
def test_an_object_that_another_worker_deletes_is_not_created_again_though_the_fence_is_half_open(api: FakeApi) -> None:
    api.fail(faults.half_open(), when=is_fence, times=100)
    first = Instance(api.url)
    old = first.start([CRD, crontab("one"), config_map("a")])
    first.wait_until_reported("one", "Waiting")
    wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
    Instance(api.url, seconds=30).terminate()
    with pytest.raises(Superseded):
        old.result(10)
    assert state(api) == {}


@pytest.mark.usefixtures("real_limits")
@pytest.mark.parametrize("desired", [[], [config_map("a"), config_map("late", version="2")]], ids=["terminate", "change"])
def test_what_a_superseded_worker_writes_late_is_seen(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, desired: list[Object]
) -> None:
    """A write of the first worker is under way when the second claims the instance, and arrives some seconds later."""
    second = Instance(api.url, seconds=60)
    runs: list[Future[dict[ObjectKey, Object]]] = []
    send = Client.create

    def delayed(client: Client, resource: Resource, manifest: Object, manager: str) -> Object:
        if manifest["metadata"]["name"] == "late" and not runs:
            token = token_of(api)
            runs.append(second.start(desired))
            wait_for(api, lambda: token_of(api) != token)
            time.sleep(1)  # it travels
        return send(client, resource, manifest, manager)

    monkeypatch.setattr(Client, "create", delayed)
    late = config_map("late", version="1")
    late["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/a"}
    with pytest.raises(Superseded):
        Instance(api.url, seconds=60).reconcile([config_map("a"), late, CRD, crontab("one")])
    runs[0].result(60)
    found = {key.name: live.get("data") for key, live in state(api).items() if key.name in ("a", "late")}
    assert found == {one["metadata"]["name"]: one["data"] for one in desired}


def token_of(api: FakeApi) -> str:
    return annotations_of(api.get("ConfigMap", "default", f"k8s-cr-driver-{Instance(api.url).id}"))["k8s-cr-driver/token"]


def terminate_while_a_write_is_under_way(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, travels: float, *, is_lost: bool = False
) -> None:
    """
    Two workers: the write of the first needs `travels` seconds after the second has deleted what it has listed.

    `is_lost`: somebody has deleted the inventory before the second claims the instance, so that it knows no members.
    """
    second = Instance(api.url, seconds=60)
    runs: list[Future[dict[ObjectKey, Object]]] = []
    send = Client.create

    def delayed(client: Client, resource: Resource, manifest: Object, manager: str) -> Object:
        if manifest["metadata"]["name"] == "late":
            api.fail(faults.half_open(after=3), path="configmaps", times=100)
            if is_lost:
                second.record()
                api.delete("ConfigMap", "default", f"k8s-cr-driver-{second.id}")
            runs.append(second.start([]))
            wait_for(api, lambda: api.find("ConfigMap", "default", "a") is None)
            time.sleep(travels)
        return send(client, resource, manifest, manager)

    monkeypatch.setattr(Client, "create", delayed)
    late = config_map("late")
    late["metadata"]["annotations"] = {DEPENDS_ON: "/namespaces/default/ConfigMap/a"}
    with pytest.raises(Superseded):
        Instance(api.url, seconds=60).reconcile([config_map("a"), late])
    runs[0].result(60)


@pytest.mark.usefixtures("real_limits")
@pytest.mark.parametrize(("travels", "is_lost"), [(1, False), (0, True)], ids=["", "its inventory was deleted"])
def test_terminate_deletes_what_a_superseded_worker_writes_late_though_the_watches_are_half_open(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, travels: float, is_lost: bool
) -> None:
    """A write of the first worker is under way, and arrives when the second has deleted all that it has listed, or later."""
    monkeypatch.setattr(watch, "IDLE_LIMIT", 300.0)
    monkeypatch.setattr(watch, "INITIAL_LIMIT", 300.0)
    change_times(monkeypatch, in_flight=7.0)
    terminate_while_a_write_is_under_way(api, monkeypatch, travels, is_lost=is_lost)
    assert state(api) == {}


def test_a_write_ends_before_the_time_for_which_another_worker_waits(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a")])
    writes = api.requests.select("PATCH")
    assert {request.query["timeout"] for request in writes} == {f"{connection.WRITE_TIMEOUT:g}s"}
    assert REAL.in_flight > connection.WRITE_TIMEOUT + connection.WRITE_CONNECT_TIMEOUT


def test_terminate_leaves_nothing_though_a_webhook_holds_a_write_of_a_superseded_worker(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WRITE_TIMEOUT", 0.5)
    change_times(monkeypatch, in_flight=0.6)
    held = threading.Event()
    api.fail(faults.held(2.0), method="PATCH", path="configmaps/late", when=lambda _: held.set() is None, times=1000)
    old = Instance(api.url).start([config_map("late")])
    assert held.wait(10)
    Instance(api.url).terminate()
    with pytest.raises(Superseded):
        old.result(10)
    assert state(api) == {}


@pytest.mark.parametrize("how", ["prunes", "prunes nothing", "fails"])
def test_a_run_gives_its_token_back_so_that_terminate_need_not_wait(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    change_times(monkeypatch, trusted=60.0)
    blue = Instance(api.url)
    if how == "fails":
        with pytest.raises(NotReady):
            Instance(api.url, seconds=1).reconcile([CRD, crontab("one")])
    else:
        blue.reconcile([config_map("a")], prune=how == "prunes")
    assert annotations_of(api.get("ConfigMap", "default", f"k8s-cr-driver-{blue.id}"))["k8s-cr-driver/released"] == "true"
    began = time.monotonic()
    blue.terminate()
    assert time.monotonic() - began < 60


def _ready(api: FakeApi) -> None:
    api.set_status("CronTab", "default", "one", status())


def test_the_wait_for_a_former_worker_is_no_part_of_the_time_limit(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tacker's retries and rollbacks take no parameters: none could give a longer limit."""
    change_times(monkeypatch, trusted=40.0, travel=60.0, in_flight=100.0)
    blue = Instance(api.url)
    run = blue.start([config_map("a"), CRD, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
    waits, after = list[float](), Loop.after

    def leap(loop: Loop, seconds: float, action: Callable[..., None], *about: object) -> None:
        """A wait for the former worker is over at once, and the deadline so much nearer."""
        if seconds > 50:
            waits.append(seconds)
            loop._operation.deadline -= seconds
        after(loop, 0 if seconds > 50 else seconds, action, *about)

    monkeypatch.setattr(Loop, "after", leap)
    Instance(api.url, seconds=60).terminate()
    assert len(waits) == 2
    with pytest.raises(Superseded):
        run.result(10)
    assert state(api) == {}


@pytest.mark.usefixtures("real_limits")
def test_an_object_that_vanished_is_created_again_after_the_token_was_read_again(api: FakeApi) -> None:
    """Its token is trusted for seconds, but what has deleted the object may be a worker that has taken over."""
    blue = Instance(api.url)
    run = blue.start([CRD, crontab("one"), config_map("a")])
    blue.wait_until_reported("one", "Waiting")
    wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
    api.requests.clear()
    api.delete("ConfigMap", "default", "a")
    wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
    _ready(api)
    run.result(10)
    own = [request for request in api.requests if not request.watch and "/configmaps/" in request.path]
    assert [str(request.path).rpartition("/")[2] for request in own[:2]] == [f"k8s-cr-driver-{blue.id}", "a"]
    assert [request.method for request in own[:2]] == ["GET", "PATCH"]


@pytest.mark.usefixtures("real_limits")
def test_an_object_that_is_gone_when_its_apply_arrives_is_not_created_again_by_a_superseded_worker(api: FakeApi) -> None:
    """The worker that has taken over has deleted it, and no watch has said so yet: not that of the inventory either."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    taken_over: list[Request] = []

    def is_overtaken(request: Request) -> bool:
        """Just before the apply, which names the uid of the object, arrives."""
        if request.method == "PATCH" and request.path.endswith("/configmaps/a") and not taken_over:
            taken_over.append(request)
            take_over(api)
            api.delete("ConfigMap", "default", "a")
        return False

    api.fail(faults.half_open(), when=is_fence, times=100)
    api.fail(faults.internal(), when=is_overtaken, times=100)
    with pytest.raises(Superseded):
        blue.reconcile([config_map("a", a="2")])
    assert taken_over
    assert not api.find("ConfigMap", "default", "a")


def test_a_worker_that_reconciles_twice_does_not_take_the_instance_back(api: FakeApi) -> None:
    """As a change of package does, whose second set is the whole one."""
    operation = Operation("first", BLUE, 10)
    with connection.Connection(Endpoint(api.url)) as connected:
        context = WriteContext(Client(connected, discover(connected)), Inventory(connected, "default", BLUE))
        reconcile(operation, context, [resource_for(config_map("a"))], prune=None)
        Instance(api.url).reconcile([config_map("a"), config_map("b")])
        with pytest.raises(Superseded):
            reconcile(operation, context, [], prune=Prune())
    assert {"a", "b"} <= set(api.names("ConfigMap", "default"))


def test_a_worker_that_was_superseded_while_it_listed_guests_deletes_no_namespace(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, trusted=0.0)
    package = [obj("v1", "Namespace", "n"), config_map("inside", "n"), config_map("a")]
    first, second = Instance(api.url), Instance(api.url)
    first.reconcile(package)
    listing, go_on = threading.Event(), threading.Event()
    reasons = guests.Guests.reasons

    def slow(self: guests.Guests, lives: Sequence[Object]) -> dict[ObjectKey, str]:
        found = reasons(self, lives)
        listing.set()
        assert go_on.wait(10)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(guests.Guests, "reasons", slow)
        run = first.start([config_map("a")])
        assert listing.wait(10)
    second.reconcile(package)
    go_on.set()
    with pytest.raises(Superseded):
        run.result(10)
    assert api.find("Namespace", None, "n") and api.find("ConfigMap", "n", "inside")


def _left_by(api: FakeApi, monkeypatch: pytest.MonkeyPatch, worker: str) -> list[float]:
    """For which seconds a terminate waits after a run of that process that has not given its token back."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    name = f"k8s-cr-driver-{blue.id}"
    inventory = api.get("ConfigMap", "default", name)
    left = {"k8s-cr-driver/released": "false", "k8s-cr-driver/worker": worker}
    api.edit("ConfigMap", "default", name, lambda one: annotations_of(one).update(left))
    assert annotations_of(inventory)["k8s-cr-driver/token"]
    waits = list[float]()
    monkeypatch.setattr(Loop, "let_pass", lambda loop, seconds: waits.append(seconds))
    Instance(api.url).terminate()
    return waits


def _process_that_was_killed() -> str:
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, fence.this_process().encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    return os.read(read, 200).decode()


@pytest.mark.usefixtures("real_limits")
def test_a_worker_that_was_killed_on_this_host_is_not_waited_for(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    change_times(monkeypatch, in_flight=REAL.in_flight)
    assert _left_by(api, monkeypatch, _process_that_was_killed()) == []


@pytest.mark.usefixtures("real_limits")
@pytest.mark.parametrize("where", ["here", "elsewhere", "nowhere"])
def test_a_worker_that_may_still_run_is_waited_for_as_long_as_its_writes_may_last(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    change_times(monkeypatch, in_flight=REAL.in_flight)
    elsewhere = "0" * 16 + "-99999999-1"
    waits = _left_by(api, monkeypatch, {"here": fence.this_process(), "elsewhere": elsewhere, "nowhere": ""}[where])
    assert waits
    assert 13 < max(waits) <= 15


def test_a_process_that_has_taken_over_the_pid_of_another_is_not_that() -> None:
    place, pid, started = fence.this_process().split("-")
    assert not fence.process_has_ended(fence.this_process())
    assert fence.process_has_ended(f"{place}-{pid}-{int(started) - 1}")
    assert not fence.process_has_ended(f"{place[::-1]}-{pid}-{int(started) - 1}")
