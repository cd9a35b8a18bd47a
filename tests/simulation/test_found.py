# SPDX-License-Identifier: Apache-2.0
"""What lives have found, each as the shortest story in which it happens, on the fake API server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.errors import Contended, NotOurs, Stopped, Superseded
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.stored_form import NOTHING, InventoryContent
from k8s_cr_driver.kube import backoff, watch
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import NAMESPACE, Object, key_of, kind_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import FakeApi, controllers, defaults, deletion, faults
from tests.fake_api.kinds import CRDS
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    CONDITIONS,
    GREEN,
    Instance,
    claim,
    config_map,
    controlled_by,
    created_again,
    crontab,
    crontab_crd,
    job,
    kept,
    obj,
    state,
    stateful_set,
    status,
    wait_for,
)
from tests.times import change_times

HOME = obj("v1", "Namespace", "home")


def in_home(made: Object) -> Object:
    return {**made, "metadata": {**made["metadata"], "namespace": "home"}}


def before_request(api: FakeApi, methods: Collection[str], path: str, act: Callable[[], object]) -> list[Request]:
    """Has `act` called just before the first such request arrives. The requests, once there was one."""
    done: list[Request] = []

    def acts(request: Request) -> bool:
        if request.method in methods and request.path.endswith(path) and not done:
            done.append(request)
            act()
        return False

    api.fail(faults.internal(), when=acts)
    return done


@pytest.mark.parametrize("package", [[stateful_set("db")], [HOME, in_home(stateful_set("db"))]], ids=["alone", "Namespace"])
def test_a_claim_made_after_claims_were_listed_goes_with_the_instance(api: FakeApi, package: list[Object]) -> None:
    """Its controller makes the claims of a StatefulSet one by one, until the StatefulSet itself is deleted.

    Such a claim is nobody else's, so that its Namespace goes, too.
    """
    where = package[-1]["metadata"]["namespace"]

    def make_late_claim() -> None:
        late = claim("data-db-1", app="db")
        api.put({**late, "metadata": {**late["metadata"], "namespace": where}}, manager=controllers.MANAGER)

    controllers.run_workloads(api)
    instance = Instance(api.url)
    instance.reconcile(package)
    before_request(api, ("DELETE",), "/statefulsets/db", make_late_claim)
    instance.terminate()
    assert state(api) == {}


def uninstalled_at(api: FakeApi, path: str, **existing: str) -> None:
    """Somebody deletes an object just before the request that patches it arrives."""

    def deletes(request: Request) -> bool:
        is_there = api.find(existing["kind"], existing.get("namespace"), existing["name"]) is not None
        if request.method == "PATCH" and request.path.endswith(path) and is_there:
            api.delete(existing["kind"], existing.get("namespace"), existing["name"])
        return False

    api.fail(faults.internal(), when=deletes, times=1000)


@pytest.mark.parametrize("is_shared", [False, True], ids=["guest", "shared"])
def test_a_release_does_not_create_a_namespace_that_is_gone_by_then(api: FakeApi, is_shared: bool) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME])
    if is_shared:
        Instance(api.url, GREEN).reconcile([HOME])
    else:
        api.put(in_home(claim("guest")))
    uninstalled_at(api, "/namespaces/home", kind="Namespace", name="home")
    blue.terminate()
    assert not api.find("Namespace", None, "home")


def test_a_release_does_not_create_an_adopted_object_that_is_gone_by_then(api: FakeApi) -> None:
    api.put(config_map("a"))
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("a")])
    uninstalled_at(api, "/configmaps/a", kind="ConfigMap", namespace="default", name="a")
    blue.terminate()
    assert state(api) == {}


def claims(held: Inventory, operation: str, *, unread: bool = False) -> None:
    held.claim(operation, [NAMESPACE], [], create=True, unread=unread)


@pytest.mark.parametrize("unread", [False, True], ids=["read", "unread"])
def test_a_claim_without_response_is_not_repeated_against_a_later_worker(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, unread: bool
) -> None:
    """It was executed, and so the worker that claimed the instance next came after it."""
    change_times(monkeypatch, in_flight=60)
    with Connection(Endpoint(api.url)) as connection:
        first, second = (Inventory(connection, "default", BLUE) for _ in range(2))
        api.fail(faults.reset_after(), method="PATCH")
        with pytest.raises(Exception, match="PATCH"):
            claims(first, "one", unread=unread)
        claims(second, "two")
        with pytest.raises(Superseded, match="took over"):
            claims(first, "one", unread=unread)


def test_a_claim_without_response_creates_no_inventory_long_after(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """By then a rollback may have found it, deleted all, and said COMPLETED."""
    with Connection(Endpoint(api.url)) as connection:
        first = Inventory(connection, "default", BLUE)
        api.fail(faults.reset_after(), method="PATCH")
        with pytest.raises(Exception, match="PATCH"):
            claims(first, "one")
        api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
        change_times(monkeypatch, trusted=-1)
        with pytest.raises(Superseded, match="was deleted"):
            claims(first, "one")


@pytest.mark.parametrize("unread", [False, True], ids=["read", "unread"])
@pytest.mark.parametrize("exists", [False, True], ids=["new", "exists"])
@pytest.mark.parametrize("fault", [faults.reset_before(), faults.reset_after()], ids=["before", "after"])
def test_a_claim_that_was_cut_off_is_repeated(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, fault: faults.Cut, exists: bool, unread: bool
) -> None:
    """One that has not read whether there is an inventory can only create, and does not know whose token it replaces."""
    change_times(monkeypatch, trusted=60, in_flight=60)
    if exists:
        Instance(api.url).reconcile([config_map("a")])
    is_refused = fault == faults.reset_after() and exists and unread  # and answered
    with Connection(Endpoint(api.url)) as connection:
        held = Inventory(connection, "default", BLUE)
        api.fail(fault, method="PATCH")
        if not is_refused:
            with pytest.raises(Exception, match="PATCH"):
                claims(held, "one", unread=unread)
        claims(held, "one", unread=unread)
        assert (stored(Instance(api.url)).token, api.faults_pending) == (held.fence.token, 0)


def test_a_worker_that_was_overtaken_while_it_claimed_disclaims_nothing_of_the_other_one(api: FakeApi) -> None:
    """Both bring the same object. The second one has written it when the first one claims again, and gives up."""
    blue, made = Instance(api.url), key_of(config_map("b"))
    blue.reconcile([config_map("a")])
    with Connection(blue.endpoint) as connection:
        first, second = (Inventory(connection, "default", BLUE) for _ in range(2))
        api.fail(faults.status(409, "Conflict"), method="PATCH")
        with pytest.raises(Contended):
            first.claim("one", [], [], create=True, members=[made])
        second.claim("two", [], [], create=True, members=[made])
        second.wrote(made)
        first.claim("one", [], [], create=True, members=[made])
        first.release()
    assert made in (stored(blue).members or ())


COMPLETE = {
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:00:00Z",
    "conditions": [{"type": "Complete", "status": "True"}],
    "succeeded": 1,
}


def finish(api: FakeApi) -> None:
    api.set_status("Job", "default", "a", COMPLETE)


def run_to_its_end(api: FakeApi, blue: Instance, manifest: Object) -> None:
    run = blue.start([manifest])
    wait_for(api, lambda: api.find("Job", "default", "a") is not None)
    finish(api)
    run.result(10)


def test_the_end_of_a_job_is_recorded_while_the_run_goes_on(api: FakeApi) -> None:
    """A crash would lose it, and its time to live removes the Job: a retry would run it again."""
    api.put(crontab_crd(**CONDITIONS))
    run = Instance(api.url).start([job("a", "one"), crontab("one")])
    wait_for(api, lambda: api.find("Job", "default", "a") is not None)
    finish(api)
    wait_for(api, lambda: "Job" in api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")["data"]["finished"])
    assert not run.done()
    api.set_status("CronTab", "default", "one", status())
    run.result(10)


def test_a_job_that_ends_before_the_response_to_its_creation_is_not_run_again(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, first_backoff=1)
    api.fail(faults.reset_after(), method="PATCH", path="jobs/a")
    run = Instance(api.url).start([job("a", "one")])
    wait_for(api, lambda: api.find("Job", "default", "a") is not None)
    finish(api)
    api.delete("Job", "default", "a")
    run.result(10)
    assert api.names("Job") == []


def stored(instance: Instance) -> InventoryContent:
    """What is remembered of its inventory."""
    with Connection(instance.endpoint) as connection:
        return Inventory(connection, "default", BLUE).read() or NOTHING


def session(api: FakeApi, **options: bool) -> Session:
    operation = Operation("one", BLUE, 30)
    return Session(Endpoint(api.url), Options(**options), operation, inventory_namespace="default")


def roll_back(api: FakeApi, package: list[Object]) -> None:
    with session(api) as rollback:
        rollback.recover_inventory(package)
        rollback.reconcile([], prune=Prune())


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits for a worker that held an instance before."""
    change_times(monkeypatch, trusted=0.1, travel=0.1, in_flight=0.1)


def test_a_member_that_others_made_again_goes_though_the_inventory_was_lost(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package names the members; the object has the instance's label, and no field manager of it."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    blue.remembered = stored(blue)
    created_again(api, "ConfigMap", "default", "a")
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    shorten(monkeypatch)
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("made", [config_map("a"), kept(config_map("a"))], ids=["plain", "kept"])
def test_an_object_that_neither_its_label_nor_the_inventory_names_is_nobodys(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, made: Object
) -> None:
    blue = Instance(api.url)
    blue.reconcile([made, config_map("b")])
    blue.remembered = stored(blue)._replace(members=None)
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].pop("labels"))
    before = api.get("ConfigMap", "default", "a")
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    shorten(monkeypatch)
    blue.terminate()
    assert api.objects("ConfigMap", "default") == [before]


@pytest.mark.parametrize("is_refused", [True, False], ids=["sent again", "arrives"])
def test_a_finished_job_that_vanishes_before_it_is_applied_again_is_settled(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    """Before its apply is sent again, or before that arrives."""
    change_times(monkeypatch, first_backoff=1)
    blue = Instance(api.url)
    run_to_its_end(api, blue, job("a", "one", note="1"))
    api.edit("Job", "default", "a", lambda live: live["metadata"]["annotations"].pop("note"))  # so that it is applied again
    if is_refused:
        api.fail(faults.unavailable(), method="PATCH", path="jobs/a")
    else:
        uninstalled_at(api, "/jobs/a", kind="Job", namespace="default", name="a")
    again = blue.start([job("a", "one", note="1")])
    if is_refused:
        wait_for(api, lambda: not api.faults_pending)
        api.delete("Job", "default", "a")
    again.result(10)
    assert api.names("Job") == []


def test_a_late_report_of_the_job_before_does_not_run_the_job_again(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch fell silent; the response to the first creation was lost; both Jobs have finished and vanished since."""
    change_times(monkeypatch, first_backoff=0.5)
    api.put(crontab_crd(**CONDITIONS))
    api.fail(faults.half_open(after=1), method="GET", path="/apis/batch/v1/jobs", query={"watch": "true"})
    api.fail(faults.reset_after(), method="PATCH", path="/jobs/a")
    blue = Instance(api.url)
    run = blue.start([job("a", "one"), crontab("waits")])
    wait_for(api, lambda: api.find("Job", "default", "a") is not None)
    finish(api)
    api.delete("Job", "default", "a")
    blue.wait_until_reported("a", "Waiting")
    finish(api)
    api.delete("Job", "default", "a")
    wait_for(api, lambda: api.find("CronTab", "default", "waits") is not None)
    api.drop_connections()
    wait_for(api, lambda: "Job" in api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")["data"]["finished"])
    api.set_status("CronTab", "default", "waits", status())
    run.result(20)
    assert len([one for one in api.requests.writes if one.path.endswith("/jobs/a")]) == 2


def test_the_end_of_a_job_that_cannot_be_recorded_is_sent_less_and_less_often(api: FakeApi) -> None:
    """A webhook that fails for a quarter of an hour got three requests a second."""
    blue = Instance(api.url, seconds=3.0)
    run = blue.start([job("a", "one"), crontab_crd(**CONDITIONS), crontab("waits")])
    wait_for(api, lambda: api.find("Job", "default", "a") is not None)
    before = len(api.requests.writes)
    inventory = f"/configmaps/k8s-cr-driver-{BLUE}"
    api.fail(faults.unavailable(), method="PATCH", path=inventory, times=1000)
    finish(api)
    with pytest.raises(NotReady):
        run.result(20)
    assert 2 < len([one for one in api.requests.writes[before:] if inventory in one.path]) < 8


def test_a_namespace_whose_deletion_fails_is_tried_less_and_less_often(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each try all kinds are listed that may hold guests: 3,000 requests in twenty minutes."""
    change_times(monkeypatch, first_backoff=0.01)
    monkeypatch.setattr(backoff, "LAST", 0.05)
    blue = Instance(api.url, seconds=3.0)
    blue.reconcile([HOME])
    api.fail(faults.webhook_down(), method="DELETE", path="/namespaces/home", times=1000)
    before = len(api.requests.writes)
    with pytest.raises(NotReady):
        blue.terminate()
    assert 1 < len([one for one in api.requests.writes[before:] if one.method == "DELETE"]) < 12


def test_a_worker_that_claims_after_the_rollback_has_begun_leaves_nothing(api: FakeApi) -> None:
    """The rollback has found no inventory, so it could not stop this worker by a token."""
    blue, asked = Instance(api.url), iter([True])  # before its claim
    blue.is_current = lambda: next(asked, False)
    with pytest.raises(Superseded, match="rolled back before this worker had claimed"):
        blue.reconcile([config_map("a")])
    assert state(api) == {}


def test_a_worker_that_was_overtaken_before_its_claim_does_not_claim(api: FakeApi) -> None:
    """Several of them would keep each other from deleting the inventory that the first has created."""
    blue = Instance(api.url)
    blue.is_current = lambda: False
    with pytest.raises(Superseded, match="rolled back before this worker had claimed"):
        blue.reconcile([config_map("a")])
    assert not [one for one in api.requests.writes if "/configmaps" in one.path]


def test_a_claim_does_not_create_an_inventory_that_is_gone_by_then(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    name = f"k8s-cr-driver-{BLUE}"
    uninstalled_at(api, f"/configmaps/{name}", kind="ConfigMap", namespace="default", name=name)
    with Connection(blue.endpoint) as connection, pytest.raises(Contended):
        claims(Inventory(connection, "default", BLUE), "one")
    assert not api.find("ConfigMap", "default", name)


def test_a_job_that_goes_after_its_end_is_not_run_again(api: FakeApi) -> None:
    """Its time to live is over, and it goes after its Pods; the worker that created it has crashed before it saw its end."""
    blue = Instance(api.url)
    first = blue.start([job("a", "one")])
    wait_for(api, lambda: api.find("Job", "default", "a") is not None)
    blue.stop.set()
    with pytest.raises(Stopped):
        first.result(10)
    finish(api)
    api.edit("Job", "default", "a", lambda live: live["metadata"].update(finalizers=["example.com/pods"]))
    api.delete("Job", "default", "a")
    blue = Instance(api.url)
    again = blue.start([job("a", "one")])
    blue.wait_until_reported("a", "Waiting")
    api.release("Job", "default", "a")
    again.result(10)
    assert api.names("Job") == []


def test_a_run_that_finds_no_inventory_waits_for_a_worker_that_still_has_one(api: FakeApi) -> None:
    """Somebody has deleted it. The first worker trusts its token for seconds, so what it writes late is found and deleted."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    remembered = stored(blue)
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    with Connection(blue.endpoint) as connection:
        held = Inventory(connection, "default", BLUE, remembered)
        held.claim("terminate", [], [], create=False)
    assert held.fence.has_former


def test_a_rollback_without_inventory_finds_an_object_that_has_lost_its_label(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside one that has it: where no object has the label, nothing is looked for."""
    package = [config_map("a"), obj("rbac.authorization.k8s.io/v1", "ClusterRole", "role", rules=[])]
    Instance(api.url).reconcile(package)
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    api.edit("ClusterRole", None, "role", lambda live: live["metadata"].pop("labels"))
    shorten(monkeypatch)
    roll_back(api, package)
    assert state(api) == {}


@pytest.mark.parametrize(
    "package",
    [[crontab_crd(), crontab("a")], [HOME, in_home(obj("v1", "PersistentVolumeClaim", "a", "home", spec={}))]],
    ids=["CRD", "Namespace"],
)
def test_a_refused_instantiate_leaves_to_the_rollback_what_it_had_before_its_inventory_was_lost(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, package: list[Object]
) -> None:
    """Others have created a member again: for the clean-up after the refusal that is theirs, and keeps what it is in."""
    Instance(api.url).reconcile(package)
    created_again(api, package[1]["kind"], package[1]["metadata"]["namespace"], "a")
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    shorten(monkeypatch)
    with session(api) as blue, pytest.raises(NotOurs):
        blue.reconcile(blue.place(package), prune=Prune(), first=True)
    roll_back(api, package)
    assert state(api) == {}


def test_an_object_that_somebody_else_made_before_our_apply_arrives_is_left_to_them(api: FakeApi) -> None:
    """Of the same name: what was read, and is ours, is gone by then."""

    def replace() -> None:
        api.delete("ConfigMap", "default", "a")
        api.put(config_map("a", mine="yes"))

    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    before_request(api, ("PATCH",), "/configmaps/a", replace)
    with pytest.raises(NotOurs):
        blue.reconcile([config_map("a", a="2")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"mine": "yes"}


def test_a_claim_of_an_inventory_that_has_gone_since_it_was_read_is_made(api: FakeApi) -> None:
    """A worker that was overtaken deletes the one that it has created; a rollback that has read it has something to do."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    with Connection(blue.endpoint) as connection:
        held = Inventory(connection, "default", BLUE)
        assert held.read()
        api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
        assert held.claim("rollback", [], [], create=False)
        assert kind_of(config_map("a")) in held.content.kinds


@pytest.mark.parametrize(
    ("verb", "path"),
    [("change", "/configmaps/a"), ("change", "/clusterroles/new"), ("terminate", "/configmaps/a")],
    ids=["change", "before the prune of a change", "terminate"],
)
def test_a_member_that_others_create_again_during_a_prune_goes(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, verb: str, path: str
) -> None:
    """Its watch lags: it reports the deletion, and that there is another one only after the operation."""
    old, new = (obj("rbac.authorization.k8s.io/v1", "ClusterRole", name, rules=[]) for name in ("old", "new"))
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), old if verb == "change" else new])
    done = before_request(api, ("PATCH", "DELETE"), path, lambda: created_again(api, "ConfigMap", "default", "a"))
    api.fail(faults.half_open(after=3), path="^/api/v1/configmaps$")
    monkeypatch.setattr(watch, "IDLE_LIMIT", 1)
    blue.reconcile([new] if verb == "change" else [])
    assert done
    assert "a" not in api.names("ConfigMap")


def test_a_member_that_others_create_again_does_not_keep_its_crd(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its watch lags: it has reported the deletion alone when the CRD is to go."""
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("a")])
    done = before_request(api, ("DELETE",), "/crontabs/a", lambda: created_again(api, "CronTab", "default", "a"))
    api.fail(faults.half_open(after=3), path="/crontabs$")
    monkeypatch.setattr(watch, "IDLE_LIMIT", 1)
    blue.terminate()
    assert done
    assert state(api) == {}


def test_an_object_deleted_during_the_last_request_of_a_change_is_created_again(api: FakeApi) -> None:
    """The watch has reported it by the time that the request has its response."""

    def deletes(request: Request) -> bool:
        is_list = request.method == "GET" and request.path == "/api/v1/configmaps"
        if not is_list or request.watch or done:
            return False
        done.append(request)
        api.delete("ConfigMap", "default", "a")
        return True

    done: list[Request] = []
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    api.delete("ConfigMap", "default", "b")  # others may create it again, so all is listed once more in the end
    api.fail(faults.held(0.5), when=deletes)
    blue.reconcile([config_map("a")])
    assert done
    assert "a" in api.names("ConfigMap")


def test_claims_older_than_their_stateful_set_and_the_inventory_go(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have deleted the inventory while a change was rolled back. Tacker's record has when the instance began."""
    controllers.run_workloads(api)
    blue = Instance(api.url)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        blue.reconcile([stateful_set("db"), config_map("b")])
        api.put(claim("data-db-0", app="db"), manager=controllers.MANAGER)
    blue.remembered = stored(blue)
    blue.reconcile([config_map("a")])
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    shorten(monkeypatch)
    blue.reconcile([stateful_set("db")])
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("is_copy", [False, True], ids=["released", "made again"])
def test_only_what_was_released_and_no_object_made_again_under_its_name_is_released_from_owners(
    api: FakeApi, is_copy: bool
) -> None:
    """It has the marks of the release, copied. The terminate that failed has released it, and the next one goes on."""
    blue = Instance(api.url)
    blue.reconcile([kept(config_map("a")), config_map("b")])
    owner = controlled_by(api.get("ConfigMap", "default", "b"))
    blue.seconds = 1
    api.fail(faults.internal(), method="DELETE", path="/configmaps/b", times=1000)
    with pytest.raises(NotReady):
        blue.terminate()
    assert INSTANCE_LABEL not in labels(api.get("ConfigMap", "default", "a"))
    if is_copy:
        marks = api.get("ConfigMap", "default", "a")["metadata"]["annotations"]
        api.delete("ConfigMap", "default", "a")
        again = config_map("a")
        api.put({**again, "metadata": {**again["metadata"], "annotations": marks}}, manager="kubectl-replace")
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(ownerReferences=[owner]))
    api.clear_faults()
    api.requests.clear()
    blue.seconds = 60
    blue.terminate()
    is_written = any(one.path.endswith("/configmaps/a") for one in api.requests.writes)
    assert is_written is not is_copy


def test_claims_are_deleted_when_their_stateful_set_is_gone(api: FakeApi) -> None:
    """Until then its controller creates them again: nobody's claims, once the StatefulSet and the inventory are gone."""

    def is_early(request: Request) -> bool:
        is_claim = request.method == "DELETE" and "persistentvolumeclaims" in request.path
        return is_claim and api.find("StatefulSet", "default", "db") is not None

    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([stateful_set("db")])
    api.edit("StatefulSet", "default", "db", lambda live: live["metadata"].update(finalizers=["example.com/a"]))
    api.fail(faults.status(403, "Forbidden"), when=is_early)
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get("StatefulSet", "default", "db")["metadata"])
    api.release("StatefulSet", "default", "db")
    run.result(10)
    assert state(api) == {}


def remembered_anew(api: FakeApi, blue: Instance, package: list[Object], **options: bool) -> None:
    """Its inventory is deleted; then its instantiate, of which there is no record yet, is retried and succeeds."""
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    with session(api, **options) as retry:
        retry.reconcile(retry.place(package), prune=Prune(), first=True)
        blue.remembered = retry.inventory.content


def replaces_stateful_set(blue: Instance) -> None:
    """One change of package takes it out, and the next one brings it again."""
    blue.reconcile([config_map("a")])
    blue.reconcile([stateful_set("db")])


def test_claims_go_with_a_stateful_set_that_one_change_has_taken_and_another_has_brought_again(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are younger than the instance, which had the first StatefulSet of that name from its beginning."""
    controllers.run_workloads(api)
    blue = Instance(api.url)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        blue.reconcile([stateful_set("db")])
        api.put(claim("data-db-0", app="db"), manager=controllers.MANAGER)
    replaces_stateful_set(blue)
    blue.terminate()
    assert state(api) == {}


def test_a_restored_stateful_set_takes_no_claims_from_before_the_instance(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its `managedFields` have times of long ago; when it was created the API server says."""
    controllers.run_workloads(api)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    blue = Instance(api.url)
    blue.reconcile([stateful_set("db")])
    fields = api.get("StatefulSet", "default", "db")["metadata"]["managedFields"]
    created_again(api, "StatefulSet", "default", "db")
    backup = [{**fields[0], "manager": "kubectl", "time": "2019-01-01T00:00:00Z"}, *fields]
    api.edit("StatefulSet", "default", "db", lambda live: live["metadata"].update(managedFields=backup))
    shorten(monkeypatch)
    remembered_anew(api, blue, [stateful_set("db")])
    replaces_stateful_set(blue)
    blue.terminate()
    assert "data-db-1" in api.names("PersistentVolumeClaim", "default")


def test_an_adopted_stateful_set_takes_no_claims_from_before_the_instance(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inventory that was lost had recorded the adoption; the request of the retry still says that there may be one."""
    controllers.run_workloads(api)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        api.put(stateful_set("db"))
        api.put(claim("data-db-1", app="db"), manager=controllers.MANAGER)
    blue = Instance(api.url, adopt=True)
    blue.reconcile([stateful_set("db")])
    shorten(monkeypatch)
    remembered_anew(api, blue, [stateful_set("db")], adopt_existing=True)
    api.delete("StatefulSet", "default", "db")
    replaces_stateful_set(blue)
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0", "data-db-1"]


def test_no_custom_resource_is_created_again_while_its_crd_goes(api: FakeApi) -> None:
    """The API server would delete it again and again, and the CRD never go."""

    def counts(request: Request) -> bool:
        if request.method == "PATCH" and request.path.endswith("/crontabs/a"):
            creations.append(request)
            if len(creations) > 3:
                is_fought_for.set()
        return False

    name = crontab_crd()["metadata"]["name"]
    creations: list[Request] = []
    is_fought_for = threading.Event()
    api.fail(faults.internal(), when=counts)
    blue = Instance(api.url)
    run = blue.start([crontab_crd(), crontab("a"), job("a", "one")])
    wait_for(api, lambda: bool(creations) and api.find("Job", "default", "a") is not None)
    api.cluster.knobs.stalled_crds.add(name)
    api.delete("CustomResourceDefinition", None, name)
    blue.wait_until_reported(name, "Waiting", "is being deleted")
    assert not is_fought_for.wait(0.5)
    api.cluster.knobs.stalled_crds.clear()
    deletion.settle(api.cluster, CRDS, ("", name))
    finish(api)
    run.result(10)
    assert api.names("CronTab", "default") == ["a"]


def claimed(api: FakeApi, package: list[Object]) -> None:
    """What a worker leaves that is killed between its claim and its first write."""
    with Connection(Endpoint(api.url)) as connection:
        keys = [key_of(one) for one in package]
        kinds, namespaces = {key.group_kind for key in keys}, {key.namespace for key in keys} - {""}
        Inventory(connection, "default", BLUE).claim("one", kinds, namespaces, create=True, members=keys)


def test_an_object_that_only_the_inventory_of_a_killed_worker_names_stays_and_is_reported(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Others have made it again, and deleted the first inventory. It may as well be a backup from before the claim."""
    package = [config_map("a"), config_map("b")]
    Instance(api.url).reconcile(package)
    created_again(api, "ConfigMap", "default", "a")
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    shorten(monkeypatch)
    claimed(api, package)
    roll_back(api, package)
    assert api.names("ConfigMap", "default") == ["a"]
    assert "ConfigMap default/a stays" in caplog.text
