"""Two workers on one instance: the one that began last goes on, the other stops and touches nothing any more."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.replace import Replacement
from k8s_cr_driver.errors import Superseded
from k8s_cr_driver.objects.keys import Object, annotations_of
from k8s_cr_driver.ownership import inventory
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import CONDITIONS, Instance, config_map, crontab, crontab_crd, state, status

CRD = crontab_crd(**CONDITIONS)
DEPENDS_ON, CRONTAB = "config.kubernetes.io/depends-on", "stable.example.com/namespaces/default/CronTab/one"


def test_the_second_worker_stops_the_first_while_that_waits(api: FakeApi) -> None:
    first, second = Instance(api.url), Instance(api.url)
    old = first.start([CRD, crontab("one"), config_map("old")])
    first.wait_until_told("one", "Waiting")
    new = second.start([CRD, crontab("one"), config_map("new")])
    with pytest.raises(Superseded, match="Another worker took over"):
        old.result(10)
    second.wait_until_told("one", "Waiting")
    api.set_status("CronTab", "default", "one", status())
    new.result(10)
    assert [name for name in api.names("ConfigMap") if not name.startswith("k8s-cr-driver")] == ["new"]


def test_a_worker_whose_instance_was_terminated_meanwhile_stops(api: FakeApi) -> None:
    first = Instance(api.url)
    run = first.start([CRD, crontab("one")])
    first.wait_until_told("one", "Waiting")
    Instance(api.url).terminate()
    with pytest.raises(Superseded):
        run.result(10)
    assert state(api) == {}


@pytest.fixture
def half_open(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The streams of the inventory say nothing, and have said nothing for long: only a look at it can tell."""
    api.fail(faults.half_open(), when=is_fence, times=100)
    monkeypatch.setattr(inventory, "WRITE_WITHIN", -1)
    monkeypatch.setattr(inventory, "DELETE_WITHIN", -1)


def is_fence(request: Request) -> bool:
    return "inventory" in request.query.get("labelSelector", "")


@pytest.mark.usefixtures("half_open")
def test_a_worker_that_was_superseded_unnoticed_writes_nothing(api: FakeApi) -> None:
    first, second = Instance(api.url), Instance(api.url)
    made = crontab("one")
    late = {**config_map("late"), "metadata": {**config_map("late")["metadata"], "annotations": {DEPENDS_ON: CRONTAB}}}
    old = first.start([CRD, made, late])
    first.wait_until_told("one", "Waiting")
    new = second.start([CRD, made])
    second.wait_until_told("one", "Waiting")
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
    blue = Instance(api.url, seconds=5)
    blue.reconcile([config_map("a"), config_map("b")])
    blue.abandon = abandon
    parent = api.get("ConfigMap", "default", f"k8s-cr-driver-{blue.id}")

    def take_over(request: Request) -> bool:
        """Between the last answer that the stale worker waits for and its first delete."""
        return request.watch and not is_fence(request) and bool(changed.append(request) or edit())

    def edit() -> bool:
        parent["metadata"]["annotations"]["k8s-cr-driver/token"] = "another"
        parent["metadata"].pop("resourceVersion", None)
        api.put(parent)
        return False

    changed: list[Request] = []
    api.fail(faults.internal(), when=take_over, times=100)
    with pytest.raises(Superseded):
        blue.terminate()
    assert changed
    assert api.find("ConfigMap", "default", "b")
    assert not api.requests.select("DELETE")


@pytest.mark.usefixtures("half_open")
def test_a_worker_that_was_superseded_unnoticed_replaces_no_children(api: FakeApi) -> None:
    def take_over(live: Object) -> None:
        if annotations_of(live).get("k8s-cr-driver/token", "another") != "another":
            api.edit("ConfigMap", "default", live["metadata"]["name"], mark)

    def mark(live: Object) -> None:
        live["metadata"]["annotations"]["k8s-cr-driver/token"] = "another"

    child = api.put(config_map("child"))
    api.react("ConfigMap", take_over)
    with pytest.raises(Superseded):
        Instance(api.url).reconcile([config_map("a")], replacement=Replacement([("", [child])]))
    assert not api.requests.select("DELETE")


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


def _ready(api: FakeApi) -> None:
    api.set_status("CronTab", "default", "one", status())
