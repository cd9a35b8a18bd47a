# SPDX-License-Identifier: Apache-2.0
"""Guests: a Namespace or CRD that objects of others need stays, whoever they are; else it goes with its contents."""

from __future__ import annotations

import json

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import CREATED_BY_US, INSTANCE_LABEL, KEEP
from k8s_cr_driver.writes import guests
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import (
    BLUE,
    GREEN,
    Instance,
    claim,
    config_map,
    controlled_by,
    crontab,
    crontab_crd,
    deployment,
    obj,
    state,
    wait_for,
)
from tests.times import change_times

HOME = obj("v1", "Namespace", "home")
POD = obj("v1", "Pod", "guest", "home", spec={"containers": [{"name": "c", "image": "i"}]})


def at_home(manifest: Object, **labels: str) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "home", "labels": labels}}


GUESTS = {
    "a Pod": POD,
    "a volume claim": at_home(claim("guest")),
    "a Helm release": at_home(obj("v1", "Secret", "sh.helm.release.v1.guest.v1"), owner="helm"),
    "an object of the in-tree driver": at_home(deployment("guest"), **{INSTANCE_LABEL: GREEN}),
    **{
        kind: obj(f"{group}/v1", kind, "guest", "home", spec={})
        for group, kinds in (("apps", ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")), ("batch", ("Job", "CronJob")))
        for kind in kinds
    },
}


@pytest.mark.parametrize("guest", GUESTS.values(), ids=GUESTS)
def test_a_namespace_with_a_guest_stays_unlabelled(api: FakeApi, caplog: pytest.LogCaptureFixture, guest: Object) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, config_map("ours", "home")])
    api.put(guest)
    blue.terminate()
    assert api.find(guest["kind"], "home", guest["metadata"]["name"])
    assert api.names("ConfigMap", "home") == []
    assert f"used-by.k8s-cr-driver/{BLUE}" not in (api.get("Namespace", None, "home")["metadata"].get("labels") or {})
    assert "Namespace home is released and stays: it holds objects of others" in caplog.text


@pytest.mark.parametrize("options", [{}, {"delete_guests": True}], ids=["", "delete-guests"])
def test_a_namespace_that_was_released_is_used_again_and_never_deleted(api: FakeApi, options: dict[str, bool]) -> None:
    """Users may have put anything into it meanwhile."""
    blue = Instance(api.url)
    blue.reconcile([HOME])
    api.put(POD)
    blue.terminate()
    assert CREATED_BY_US not in api.get("Namespace", None, "home")["metadata"]["annotations"]
    api.delete("Pod", "home", POD["metadata"]["name"])
    api.put(at_home(config_map("theirs")))
    labelled = {**HOME, "metadata": {"name": "home", "labels": {"app": "web"}}}
    for id in (BLUE, GREEN):
        later = Instance(api.url, id, **options)
        later.reconcile([labelled, config_map("ours", "home")])
        assert api.get("Namespace", None, "home")["metadata"]["labels"]["app"] == "web"
        later.terminate()
        assert api.names("ConfigMap", "home") == ["theirs"]
        assert api.get("Namespace", None, "home")["metadata"]["labels"] == {"app": "web"}


def test_a_crd_that_was_released_is_upgraded_by_the_package_of_another_instance(api: FakeApi) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    blue.reconcile([crontab_crd()])
    api.put(crontab("guest"))
    blue.terminate()
    newer = crontab_crd()
    newer["spec"]["names"]["singular"] = "newer"
    green.reconcile([newer])
    live = api.get("CustomResourceDefinition", None, "crontabs.stable.example.com")
    assert live["spec"]["names"]["singular"] == "newer"
    green.terminate()
    assert api.names("CronTab") == ["guest"]


def test_a_namespace_of_an_instance_with_its_inventory_elsewhere_stays(api: FakeApi) -> None:
    api.put(obj("v1", "Namespace", "other-tacker"))
    blue = Instance(api.url)
    blue.reconcile([HOME])
    Instance(api.url, GREEN, inventory_namespace="other-tacker").reconcile([config_map("guest", "home")])
    blue.terminate()
    assert api.names("ConfigMap", "home") == ["guest"]


@pytest.mark.parametrize("verb", ["terminate", "change"])
def test_a_guest_of_the_instances_crd_keeps_its_namespace(api: FakeApi, verb: str) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, crontab_crd(), crontab("ours", "home"), config_map("b")])
    api.put(crontab("theirs", "home"))
    blue.reconcile([config_map("b"), crontab_crd()] if verb == "change" else [])
    assert api.names("CronTab", "home") == ["theirs"]


def test_a_namespace_goes_with_other_contents_and_with_what_has_an_owner(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, config_map("ours", "home")])
    owner = controlled_by(api.get("ConfigMap", "home", "ours"))
    child = {**POD, "metadata": {**POD["metadata"], "ownerReferences": [owner]}}
    api.put(child)
    for name in ("theirs", "kube-root-ca.crt"):
        api.put(at_home(config_map(name)))
    blue.terminate()
    assert state(api) == {}


def test_a_crd_with_a_custom_resource_of_a_user_stays(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("ours")])
    api.put(crontab("users"))
    blue.terminate()
    assert api.names("CronTab") == ["users"]
    assert "it holds objects of others: CronTab.stable.example.com default/users" in caplog.text


@pytest.mark.parametrize("times", [1, 10**6], ids=["once", "always"])
def test_a_crd_stays_whose_kind_a_server_does_not_know(api: FakeApi, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """One that lags behind the others: neither lists nor discovery find the kind. There are objects of it all the same."""
    change_times(monkeypatch, guests_fail=0)
    blue = Instance(api.url)
    blue.reconcile([crontab_crd()])
    api.put(crontab("users"))
    none = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "stable.example.com/v1", "resources": []}
    api.fail(faults.not_found(), path="stable.example.com/v1/crontabs$", when=lambda one: not one.watch, times=times)
    api.fail(faults.lie(json.dumps(none).encode()), path="^/apis/stable.example.com/v1$", times=times)
    blue.terminate()
    api.clear_faults()
    assert api.names("CronTab") == ["users"]


@pytest.mark.parametrize("shared, guest", [(HOME, POD), (crontab_crd(), crontab("users"))], ids=["Namespace", "CRD"])
def test_delete_guests_takes_all(api: FakeApi, shared: Object, guest: Object) -> None:
    Instance(api.url).reconcile([shared])
    api.put(guest)
    Instance(api.url, delete_guests=True).terminate()
    assert state(api) == {}


def test_delete_guests_takes_nothing_of_another_instance(api: FakeApi) -> None:
    Instance(api.url).reconcile([HOME])
    api.put(at_home(deployment("theirs"), **{INSTANCE_LABEL: GREEN}))
    api.put(POD)
    Instance(api.url, delete_guests=True).terminate()
    assert api.names("Deployment", "home") == ["theirs"] and api.names("Pod", "home") == ["guest"]


def test_delete_guests_takes_nothing_that_an_object_of_another_instance_owns(api: FakeApi) -> None:
    green = Instance(api.url, GREEN)
    green.reconcile([crontab_crd(), config_map("owner")])
    Instance(api.url).reconcile([crontab_crd()])
    green.reconcile([config_map("owner")])
    made = crontab("made")
    made["metadata"]["ownerReferences"] = [controlled_by(api.get("ConfigMap", "default", "owner"))]
    api.put(made)
    Instance(api.url, delete_guests=True).terminate()
    assert api.names("CronTab") == ["made"]


@pytest.mark.parametrize(
    "shared, greens", [(HOME, config_map("a", "home")), (crontab_crd(), crontab("a"))], ids=["Namespace", "CRD"]
)
def test_delete_guests_takes_nothing_that_the_inventory_of_another_instance_names(
    api: FakeApi, shared: Object, greens: Object
) -> None:
    """Also if somebody has taken all marks of that instance off."""
    Instance(api.url).reconcile([shared])
    Instance(api.url, GREEN).reconcile([shared, greens])
    live = api.get(shared["kind"], None, shared["metadata"]["name"])
    del live["metadata"]["labels"][f"used-by.k8s-cr-driver/{GREEN}"]
    api.put(live)
    api.delete(greens["kind"], greens["metadata"]["namespace"], "a")
    api.put(greens)
    Instance(api.url, delete_guests=True).terminate()
    assert api.find(greens["kind"], greens["metadata"]["namespace"], "a")


def test_delete_guests_names_all_that_goes_before_anything_goes(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    Instance(api.url).reconcile([HOME, config_map("ours", "home"), crontab_crd()])
    for number in range(4):
        api.put({**POD, "metadata": {"name": f"guest-{number}", "namespace": "home"}})
    api.put(crontab("users"))
    said: list[str] = []
    api.react("ConfigMap", lambda live: said.append(caplog.text) if "deletionTimestamp" in live["metadata"] else None)
    held = api.get("ConfigMap", "home", "ours")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.put(held)
    run = Instance(api.url, delete_guests=True).start([])
    wait_for(api, lambda: bool(said))
    api.release("ConfigMap", "home", "ours", ["example.com/hold"])
    run.result(60)
    pods = ", ".join(f"Pod home/guest-{number}" for number in range(4))
    assert f"Namespace home is to be deleted with objects of others: {pods}\n" in said[0]
    assert "is to be deleted with objects of others: CronTab.stable.example.com default/users\n" in said[0]
    assert state(api) == {}


@pytest.mark.parametrize("code", [400, 406, 500, 503, 504])
def test_a_namespace_stays_if_a_kind_cannot_be_listed(api: FakeApi, caplog: pytest.LogCaptureFixture, code: int) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, config_map("ours", "home")])
    api.fail(faults.status(code, "", "out of order"), method="GET", path="/namespaces/home/secrets$", times=10**6)
    blue.terminate()
    assert api.names("ConfigMap", "home") == []
    assert f"used-by.k8s-cr-driver/{BLUE}" not in (api.get("Namespace", None, "home")["metadata"].get("labels") or {})
    assert f"cannot list: LIST /api/v1/namespaces/home/secrets: {code}" in caplog.text.replace("GET", "LIST")


def test_lists_of_a_server_in_trouble_that_fail_by_turns_keep_no_namespace(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them fails often enough to be given up, and succeeds between."""
    change_times(monkeypatch, guests_fail=0)
    change_times(monkeypatch, first_backoff=0.01)
    blue = Instance(api.url)
    blue.reconcile([HOME])
    failing = ["secrets", "pods"]

    def is_its_turn(request: Request) -> bool:
        if not request.path.endswith(f"/namespaces/home/{failing[0]}"):
            return False
        failing.reverse()
        return True

    api.fail(faults.unavailable(), method="GET", when=is_its_turn, times=2 * guests.TRIES)
    blue.terminate()
    assert state(api) == {}


def test_a_config_map_with_the_label_of_an_inventory_keeps_no_namespace(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME])
    odd = config_map("odd", members="no JSON")
    odd["metadata"]["labels"] = {"k8s-cr-driver/inventory": GREEN}
    odd["metadata"]["annotations"] = {"applyset.kubernetes.io/additional-namespaces": "home"}
    api.put(odd)
    blue.terminate()
    assert [key.name for key in state(api)] == ["odd"]


@pytest.mark.parametrize("shared", [HOME, crontab_crd()], ids=["namespace", "crd"])
@pytest.mark.parametrize("name", ["contains-group-kinds", "additional-namespaces"])
@pytest.mark.parametrize("text", [None, "a b", "\n"])
def test_an_inventory_that_makes_no_sense_is_a_guest(
    api: FakeApi, caplog: pytest.LogCaptureFixture, shared: Object, name: str, text: str | None
) -> None:
    def spoil(live: Object) -> None:
        annotations = live["metadata"]["annotations"]
        annotations.pop(f"applyset.kubernetes.io/{name}")
        annotations.update({f"applyset.kubernetes.io/{name}": text} if text is not None else {})

    blue = Instance(api.url)
    blue.reconcile([shared])
    Instance(api.url, GREEN).reconcile([config_map("greens")])
    api.edit("ConfigMap", "default", f"k8s-cr-driver-{GREEN}", spoil)
    blue.terminate()
    assert api.find(shared["kind"], None, shared["metadata"]["name"])
    assert "another instance, whose inventory makes no sense, may use it" in caplog.text


def test_a_crd_of_which_no_version_is_served_stays(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd()])
    api.put(crontab("users"))
    crd = ("CustomResourceDefinition", None, "crontabs.stable.example.com")
    api.edit(*crd, lambda live: live["spec"]["versions"][0].update(served=False))
    blue.terminate()
    assert api.find(*crd)
    assert "no version of it is served" in caplog.text


@pytest.mark.parametrize("owner", ["kept", "adopted"])
def test_a_custom_resource_whose_owner_is_only_released_keeps_its_crd(api: FakeApi, owner: str) -> None:
    """The owner's release may come after the CRD's turn, so that it still looks like an object that is deleted."""
    blue, base = Instance(api.url, adopt=True), config_map("base")
    if owner == "kept":
        base["metadata"]["annotations"] = {KEEP: "true"}
    else:
        api.put(base)
    blue.reconcile([crontab_crd(), base])
    guest = crontab("users")
    guest["metadata"]["ownerReferences"] = [controlled_by(api.get("ConfigMap", "default", "base"))]
    api.put(guest)
    api.fail(faults.too_many(1), method="PATCH", path="configmaps/base")
    blue.terminate()
    assert api.names("CronTab") == ["users"]


@pytest.mark.parametrize("fault", [faults.status(403, "Forbidden", "no"), faults.internal()])
@pytest.mark.parametrize("what", ["Namespace", "CRD"])
def test_a_kept_object_of_a_kind_that_is_abandoned_keeps_what_holds_it(
    api: FakeApi, what: str, fault: faults.Answer
) -> None:
    holder, precious = (HOME, config_map("precious", "home")) if what == "Namespace" else (crontab_crd(), crontab("precious"))
    precious["metadata"]["annotations"] = {KEEP: "true"}
    blue = Instance(api.url)
    blue.reconcile([holder, precious])
    blue.abandon, blue.seconds = True, 2
    path = "/configmaps$" if what == "Namespace" else "/crontabs$"
    api.fail(fault, method="GET", path=path, when=lambda request: not of_inventory(request), times=10**6)
    with pytest.raises(NotReady):
        blue.terminate()
    api.clear_faults()
    assert api.find(precious["kind"], precious["metadata"]["namespace"], "precious")


def of_inventory(request: Request) -> bool:
    return "k8s-cr-driver/inventory" in request.query.get("labelSelector", "")


@pytest.mark.parametrize("shared", [HOME, crontab_crd()], ids=["Namespace", "CRD"])
def test_inventories_of_others_are_listed_after_the_contents(api: FakeApi, shared: Object) -> None:
    """An instance claims its inventory before it writes any object."""
    blue = Instance(api.url)
    blue.reconcile([shared])
    blue.terminate()
    plurals = ("configmaps", "persistentvolumeclaims", "crontabs")
    lists = [one for one in api.requests if one.method == "GET" and one.path.endswith(plurals) and not one.watch]
    assert of_inventory(lists[-1])


def test_a_claim_that_is_created_while_other_kinds_are_listed_keeps_its_namespace(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME])

    def created(request: Request) -> bool:
        api.put(at_home(claim("guest")))
        return False

    api.fail(faults.internal(), method="GET", path="/namespaces/home/deployments$", when=created)
    blue.terminate()
    assert api.names("PersistentVolumeClaim", "home") == ["guest"]


def test_a_namespace_with_the_inventory_of_another_instance_stays(api: FakeApi) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN, inventory_namespace="home")
    blue.reconcile([HOME, config_map("a", "home")])
    green.reconcile([config_map("b")])
    blue.terminate()
    assert api.find("Namespace", "", "home") is not None
    green.terminate()
    assert api.find("ConfigMap", "default", "b") is None


@pytest.mark.parametrize("trouble", ["the inventory is lost", "a change has dropped the CRD"])
def test_a_namespace_stays_with_a_users_object_of_a_crd_that_the_inventory_does_not_name(api: FakeApi, trouble: str) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, crontab_crd(), config_map("a", "home")])
    theirs = api.put(crontab("users", "home"))
    if trouble == "the inventory is lost":
        blue.record()
        api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    else:
        blue.reconcile([HOME, config_map("a", "home")])
    blue.terminate()
    assert api.get("CronTab", "home", "users")["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert api.names("ConfigMap", "home") == []


def test_the_objects_of_users_in_crds_of_others_go_with_the_namespace(api: FakeApi) -> None:
    api.put(crontab_crd())
    blue = Instance(api.url)
    blue.reconcile([HOME, config_map("a", "home")])
    api.put(crontab("users", "home"))
    blue.terminate()
    assert api.find("Namespace", None, "home") is None


@pytest.mark.parametrize("is_released", [False, True])
def test_a_namespace_stays_with_a_users_object_of_a_dropped_crd_that_others_use(api: FakeApi, is_released: bool) -> None:
    blue, green = Instance(api.url), Instance(api.url, GREEN)
    blue.reconcile([HOME, crontab_crd(), config_map("a", "home")])
    green.reconcile([crontab_crd()])
    theirs = api.put(crontab("users", "home"))
    blue.reconcile([HOME, config_map("a", "home")])
    if is_released:
        green.terminate()
    blue.terminate()
    assert api.get("CronTab", "home", "users")["metadata"]["uid"] == theirs["metadata"]["uid"]


@pytest.mark.parametrize("pods", [10, 600], ids=["few", "more than the pages of the Namespaces"])
def test_several_namespaces_are_looked_into_together(api: FakeApi, pods: int) -> None:
    blue, spaces = Instance(api.url), [obj("v1", "Namespace", name) for name in ("one", "two")]
    blue.reconcile(spaces)
    for number in range(pods):
        api.put({**POD, "metadata": {"name": f"p-{number}", "namespace": "default"}})
    api.put({**POD, "metadata": {"name": "guest", "namespace": "two"}})
    blue.terminate()
    assert [one for one in ("one", "two") if api.find("Namespace", None, one)] == ["two"]


@pytest.mark.parametrize("group, plural", [("apps", "deployments"), ("batch", "jobs"), ("", "pods")])
def test_a_namespace_of_which_a_kind_may_not_be_listed_stays(
    api: FakeApi, caplog: pytest.LogCaptureFixture, group: str, plural: str
) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME])
    api.knobs.denied.add(("list", group, plural, "*"))
    blue.terminate()
    assert api.find("Namespace", None, "home")
    assert "it may hold objects of others, which the driver cannot list" in caplog.text


def test_an_account_that_may_not_list_secrets_finds_no_helm_releases(api: FakeApi) -> None:
    """Whoever may list Secrets may read them."""
    blue = Instance(api.url)
    blue.reconcile([HOME])
    api.knobs.denied.add(("list", "", "secrets", "*"))
    blue.terminate()
    assert state(api) == {}
