# SPDX-License-Identifier: Apache-2.0
"""How an object is deleted: in the foreground where something may hang on it, in the background where nothing does."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from k8s_cr_driver.engine.delete.pruner import Pruner
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import ApiError, DriverError
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object, ObjectKey, kind_of, labels
from k8s_cr_driver.objects.marks import is_managed, manager
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.delete import remove
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    GREEN,
    Instance,
    config_map,
    controlled_by,
    created_again,
    crontab,
    crontab_crd,
    job,
    kept,
    obj,
    run_refused,
    state,
    wait_for,
)


def written_by(live: dict[str, Any], *managers: str, **metadata: Any) -> dict[str, Any]:
    fields = [{"manager": name, "operation": "Apply"} for name in managers]
    return {**live, "metadata": {**live["metadata"], "managedFields": fields, **metadata}}


@pytest.mark.parametrize(
    ("live", "policy"),
    [
        (written_by(crontab("a"), manager(BLUE)), "Background"),
        (written_by(crontab("a"), manager(BLUE), "its-controller"), "Foreground"),
        (written_by(crontab("a"), manager(BLUE), "its-controller", finalizers=["example.com/own"]), "Background"),
        (written_by(job("a", "image"), manager(BLUE)), "Foreground"),
        (written_by(config_map("a"), manager(BLUE), "somebody"), "Background"),
    ],
)
def test_propagation(api: FakeApi, live: dict[str, Any], policy: str) -> None:
    api.put(crontab_crd())
    made = api.put({**live, "metadata": {name: live["metadata"][name] for name in ("name", "namespace")}})
    live["metadata"].update({name: made["metadata"][name] for name in ("uid", "resourceVersion")})
    with Connection(Endpoint(api.url)) as connection:
        client = Client(connection, discover(connection))
        target = WriteContext(client, Inventory(connection, "default", BLUE))
        resource = client.resources.find(kind_of(live))
        assert resource is not None
        remove(target, resource_for(live), resource, live, None)
    assert api.requests[-1].body["propagationPolicy"] == policy


def test_a_foreground_deletion_stays_one_when_it_is_asked_for_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.start([job("a", "one")])
    blue.wait_until_reported("a", "Waiting")
    child = config_map("child")
    owner = controlled_by(api.get("Job", "default", "a"))
    child["metadata"].update(ownerReferences=[{**owner, "blockOwnerDeletion": True}], finalizers=["example.com/hold"])
    api.put(child)
    for number in (1, 2):
        terminating = Instance(api.url)
        run = terminating.start([])
        wait_for(api, lambda number=number: len(api.requests.select("DELETE", "jobs/a")) == number)
        terminating.end()
        with pytest.raises(NotReady):
            run.result(10)
    policies = [request.body["propagationPolicy"] for request in api.requests.select("DELETE", "jobs/a")]
    assert policies == ["Foreground", "Foreground"]


def test_a_deletion_that_a_webhook_denies_is_repeated_while_others_go(api: FakeApi) -> None:
    denied = faults.status(403, "Forbidden", 'admission webhook "v.example.com" denied the request: a is in use')
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("user")])
    api.edit("ConfigMap", "default", "user", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    is_used = lambda request: api.find("ConfigMap", "default", "user") is not None  # noqa: E731
    api.fail(denied, method="DELETE", path="configmaps/a$", when=is_used, times=1000)
    run = blue.start([])
    blue.wait_until_reported("user", "deleting")
    wait_for(api, lambda: len(api.requests.select("DELETE", "configmaps/a")) > 1)
    api.release("ConfigMap", "default", "user")
    run.result(10)
    assert state(api) == {}


def test_a_deletion_that_a_webhook_denies_when_nothing_else_goes_ends_the_run(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    denied = faults.status(403, "Forbidden", 'admission webhook "v.example.com" denied the request: a is in use')
    api.fail(denied, method="DELETE", path="configmaps/a$", times=1000)
    with pytest.raises(ApiError, match="a is in use"):
        blue.terminate()
    assert len(api.requests.select("DELETE")) == 1


@pytest.mark.parametrize("manifest", [config_map("a"), obj("v1", "Namespace", "home")], ids=["ConfigMap", "Namespace"])
def test_an_object_that_loses_its_label_while_it_is_held_is_not_gone(api: FakeApi, manifest: Object) -> None:
    blue, where = Instance(api.url), manifest["metadata"].get("namespace", "")
    blue.reconcile([manifest])
    hold = {"finalizers": ["example.com/hold"]}
    api.edit(manifest["kind"], where, manifest["metadata"]["name"], lambda live: live["metadata"].update(hold))
    run = blue.start([])
    wait_for(api, lambda: "deletionTimestamp" in api.get(manifest["kind"], where, manifest["metadata"]["name"])["metadata"])
    api.edit(manifest["kind"], where, manifest["metadata"]["name"], lambda live: live["metadata"].pop("labels", None))
    with pytest.raises(TimeoutError):
        run.result(1.5)
    api.release(manifest["kind"], where, manifest["metadata"]["name"])
    run.result(10)
    assert api.find(manifest["kind"], where, manifest["metadata"]["name"]) is None


def test_a_late_answer_that_an_object_is_gone_does_not_hide_another_that_somebody_has_created_under_its_name(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kubectl replace --force` waits until the object is gone, as the run does."""
    blue, held = Instance(api.url), config_map("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    blue.reconcile([held, config_map("b")])
    is_read, may_answer, read, sent = threading.Event(), threading.Event(), Client.read, Pruner._sent

    def late(client: Client, resource: Resource, key: ObjectKey) -> Object:
        try:
            return read(client, resource, key)
        except ApiError:
            if key.name == "a" and not is_read.is_set():
                is_read.set()
                assert may_answer.wait(10)
            raise

    def answered(pruner: Pruner, *about: Any) -> None:
        sent(pruner, *about)
        if is_read.is_set():  # by now it is the deletion of the other one
            may_answer.set()

    monkeypatch.setattr(Client, "read", late)
    monkeypatch.setattr(Pruner, "_sent", answered)
    run = blue.start([config_map("b")])
    wait_for(api, lambda: "deletionTimestamp" in api.get("ConfigMap", "default", "a")["metadata"])
    live = api.get("ConfigMap", "default", "a")
    api.release("ConfigMap", "default", "a")
    assert is_read.wait(10)
    metadata = {name: live["metadata"][name] for name in ("name", "namespace", "labels", "finalizers")}
    api.put({**live, "metadata": metadata}, manager="kubectl-replace")
    assert may_answer.wait(10)
    with pytest.raises(TimeoutError):
        run.result(1)
    api.release("ConfigMap", "default", "a")
    run.result(10)
    assert api.find("ConfigMap", "default", "a") is None


def test_a_deletion_that_a_webhook_denies_after_the_last_user_has_gone_is_repeated(api: FakeApi) -> None:
    """The webhook sees the cluster through a cache."""
    user = config_map("user")
    user["metadata"]["annotations"] = {"config.kubernetes.io/depends-on": "/namespaces/default/ConfigMap/a"}
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), user])
    denied = faults.status(403, "Forbidden", 'admission webhook "v.example.com" denied the request: a is in use')
    api.fail(denied, method="DELETE", path="configmaps/a$", times=2)
    blue.terminate()
    assert state(api) == {}


def test_an_adopted_object_is_released_though_a_field_stays(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    """An immutable ConfigMap stays immutable."""
    api.put(config_map("theirs", x="1"), manager="kubectl-create")
    blue = Instance(api.url, adopt=True)
    blue.reconcile([{**config_map("theirs", x="1"), "immutable": True}])
    blue.terminate()
    live = api.get("ConfigMap", "default", "theirs")
    assert not is_managed(live, BLUE)
    assert not labels(live)
    assert "keeps the fields of VNF instance" in caplog.text


@pytest.mark.parametrize("code", [400, 403, 406])
def test_an_adopted_object_is_released_though_a_webhook_denies_that_a_field_goes(api: FakeApi, code: int) -> None:
    """Without the instance's fields it would be invalid."""
    api.put(config_map("theirs", x="1"), manager="kubectl-create")
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("theirs", x="1", y="2")])
    denied = faults.denied("data: Required value", code, "NotAcceptable")
    api.fail(denied, method="PATCH", path="configmaps/theirs$", when=is_apply, times=99)
    blue.terminate()
    live = api.get("ConfigMap", "default", "theirs")
    assert not is_managed(live, BLUE)
    assert (live["data"], labels(live)) == ({"x": "1", "y": "2"}, {})


@pytest.mark.parametrize("code", [409, 429, 503])
def test_an_adopted_object_is_released_once_a_webhook_that_cannot_say_yet_admits_it(api: FakeApi, code: int) -> None:
    api.put(config_map("theirs", x="1"), manager="kubectl-create")
    blue = Instance(api.url, adopt=True)
    blue.reconcile([config_map("theirs", x="1", y="2")])
    api.fail(faults.denied("not now", code, "Busy"), method="PATCH", path="configmaps/theirs$", when=is_apply, times=2)
    blue.terminate()
    assert api.get("ConfigMap", "default", "theirs")["data"] == {"x": "1"}


def is_apply(request: Request) -> bool:
    return "apply-patch" in request.content_type


def test_an_object_is_not_gone_because_a_webhook_denies_its_deletion_with_404(api: FakeApi) -> None:
    """A webhook that looks the object up in a cache may say its name."""
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    named = {"name": "a", "kind": "configmaps"}
    api.fail(faults.denied("a not found", 404, "NotFound", details=named), method="DELETE", path="configmaps/a$", times=2)
    blue.terminate()
    assert state(api) == {}


@pytest.mark.parametrize("code", [403, 404, 406, 409])
def test_a_trial_of_a_deletion_shows_a_denial_with_any_code(api: FakeApi, code: int) -> None:
    live = api.put(config_map("a"))
    api.fail(faults.denied("a is in use", code, "InUse"), method="DELETE")
    with Connection(Endpoint(api.url)) as connection, pytest.raises(DriverError, match="a is in use"):
        client = Client(connection, discover(connection))
        resource = client.resources.find(kind_of(live))
        assert resource
        client.try_deletion(resource, live)


def test_namespaces_that_go_at_one_time_leave_the_inventory_by_few_writes(api: FakeApi) -> None:
    """A write costs as much as the inventory is long."""
    blue = Instance(api.url)
    blue.reconcile([obj("v1", "Namespace", f"n{number}") for number in range(40)])
    api.requests.clear()
    api.fail(faults.held(0.5), method="PATCH", path="configmaps/k8s-cr-driver-", when=lambda _: len(api.requests) > 60)
    blue.terminate()
    assert state(api) == {}
    assert len(api.requests.select("PATCH", "configmaps/k8s-cr-driver-")) < 12


def test_no_namespace_is_deleted_after_a_refusal_during_its_withdrawal(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue, names = Instance(api.url), [f"home-{number:02}" for number in range(30)]
    blue.reconcile([*(obj("v1", "Namespace", name) for name in names), config_map("c"), config_map("stays")])
    api.requests.clear()
    api.fail(faults.status(403, "Forbidden"), method="DELETE", path="/configmaps/c$", times=5)
    writes: list[Request] = []

    def is_second(request: Request) -> bool:
        writes.append(request)
        return len(writes) == 2

    held = faults.held(end=run_refused(monkeypatch))
    api.fail(held, method="PATCH", path="/configmaps/k8s-cr-driver-", when=is_second)
    with pytest.raises(DriverError):
        blue.reconcile([config_map("stays")])
    assert not api.requests.select("DELETE", "/namespaces/home-[0-9]*$")


def account_of_a_namespace(api: FakeApi) -> str:
    """The uid of the account that kube-controller-manager puts into each Namespace."""

    def act(live: Object) -> None:
        name = live["metadata"]["name"]
        if not live["metadata"].get("deletionTimestamp") and api.find("ServiceAccount", name, "default") is None:
            api.put(obj("v1", "ServiceAccount", "default", name), manager="kube-controller-manager")

    api.react("Namespace", act)
    Instance(api.url).reconcile([obj("v1", "Namespace", "home"), ACCOUNT, config_map("a", "home")])
    return str(api.get("ServiceAccount", "home", "default")["metadata"]["uid"])


ACCOUNT = obj("v1", "ServiceAccount", "default", "home", imagePullSecrets=[{"name": "registry"}])


def test_the_account_of_all_pods_of_a_namespace_outlives_the_instance(api: FakeApi) -> None:
    """Their tokens are bound to its uid."""
    uid = account_of_a_namespace(api)
    Instance(api.url, GREEN).reconcile([obj("v1", "Namespace", "home"), config_map("green", "home")])
    Instance(api.url).terminate()
    assert api.get("ServiceAccount", "home", "default")["metadata"]["uid"] == uid
    Instance(api.url, GREEN).terminate()
    assert api.find("Namespace", None, "home") is None


def test_a_change_that_drops_the_account_of_all_pods_of_a_namespace_releases_it(api: FakeApi) -> None:
    uid = account_of_a_namespace(api)
    Instance(api.url).reconcile([obj("v1", "Namespace", "home"), config_map("a", "home")])
    live = api.get("ServiceAccount", "home", "default")
    assert (live["metadata"]["uid"], live.get("imagePullSecrets")) == (uid, None)
    assert not is_managed(live, BLUE)
    Instance(api.url).terminate()
    assert api.find("Namespace", None, "home") is None


def test_a_kept_account_keeps_its_fields_and_its_namespace(api: FakeApi) -> None:
    account_of_a_namespace(api)
    blue, home = Instance(api.url), obj("v1", "Namespace", "home")
    blue.reconcile([home, kept(ACCOUNT), config_map("a", "home")])
    blue.reconcile([home, config_map("a", "home")])
    blue.terminate()
    assert api.get("ServiceAccount", "home", "default")["imagePullSecrets"] == [{"name": "registry"}]


def test_an_account_that_others_have_created_again_with_our_label_is_released(api: FakeApi) -> None:
    account_of_a_namespace(api)
    created_again(api, "ServiceAccount", "home", "default")
    Instance(api.url).reconcile([obj("v1", "Namespace", "home"), config_map("a", "home")])
    assert not api.get("ServiceAccount", "home", "default")["metadata"].get("labels")
    Instance(api.url).terminate()
    assert api.find("Namespace", None, "home") is None
