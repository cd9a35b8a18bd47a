# SPDX-License-Identifier: Apache-2.0
"""A shared object that another instance has brought gets the label of this one, and nothing else of it changes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.errors import Conflict, NotOurs, Superseded
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.objects.keys import Object, labels
from k8s_cr_driver.objects.marks import CREATED_BY_US, INSTANCE_LABEL, KEEP, KEPT_BY, RELEASED_BY, manager, used_by, users
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import preflight
from k8s_cr_driver.writes import apply, conflicts
from k8s_cr_driver.writes.context import WriteContext
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, GREEN, RED, Instance, config_map, crontab_crd, kept, labelled, obj, state

CRD = ("CustomResourceDefinition", None, "crontabs.stable.example.com")
HOME = obj("v1", "Namespace", "home")


def crd_with(**spec: Any) -> Object:
    crd = crontab_crd()
    return {**crd, "spec": {**crd["spec"], **spec}}


def other_type() -> Object:
    crd = copy.deepcopy(crontab_crd())
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["cronSpec"]["type"] = "integer"
    return crd


def second_version() -> Object:
    crd = copy.deepcopy(crontab_crd())
    crd["spec"]["versions"].append({**copy.deepcopy(crd["spec"]["versions"][0]), "name": "v2", "storage": False})
    return crd


WEBHOOK = crd_with(
    conversion={
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://evil.example.com"}},
    }
)


def without_label(live: Object, instance: str) -> Object:
    """All of an object that another writer of a label leaves as it is."""
    live = copy.deepcopy(live)
    for part in ("resourceVersion", "managedFields"):
        live["metadata"].pop(part)
    live["metadata"].get("labels", {}).pop(used_by(instance), None)
    return live


@pytest.mark.parametrize(
    ("greens", "blues"),
    [
        (crontab_crd(), crontab_crd()),
        (crontab_crd(), labelled(crontab_crd(), app="blue")),
        (labelled(HOME, team="green"), HOME),
        (HOME, labelled(HOME, **{"pod-security.kubernetes.io/enforce": "privileged"})),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_a_co_user_adds_its_label_and_nothing_else(api: FakeApi, greens: Object, blues: Object, force: bool) -> None:
    Instance(api.url, GREEN).reconcile([greens])
    kind, name = greens["kind"], greens["metadata"]["name"]
    before = api.get(kind, None, name)
    for _ in range(2):
        Instance(api.url, BLUE, force=force).reconcile([blues])
        after = api.get(kind, None, name)
        assert after["metadata"]["labels"][used_by(BLUE)] == ""
        assert without_label(after, BLUE) == without_label(before, BLUE)
    [entry] = [one for one in after["metadata"]["managedFields"] if one["manager"] == manager(BLUE)]
    assert entry["fieldsV1"] == {"f:metadata": {"f:labels": {f"f:{used_by(BLUE)}": {}}}}


@pytest.mark.parametrize("blues", [other_type(), second_version(), WEBHOOK], ids=["type", "version", "webhook"])
@pytest.mark.parametrize("force", [False, True])
def test_a_crd_of_another_instance_is_never_changed(api: FakeApi, blues: Object, force: bool) -> None:
    Instance(api.url, GREEN).reconcile([crontab_crd()])
    before = api.get(*CRD)
    with pytest.raises(Conflict, match="Other VNF instances use it, so it is not changed") as raised:
        Instance(api.url, BLUE, force=force).reconcile([blues])
    assert GREEN not in str(raised.value)
    assert api.get(*CRD) == before


def act(api: FakeApi, shared: Object, who: str, does: str, label: str = "") -> None:
    """One step of a story. An instance uses, keeps, adopts or drops the object, in a change of package, or leaves."""
    place = shared["kind"], None, shared["metadata"]["name"]
    if who == "user":
        edits = {
            "unkeeps": lambda live: live["metadata"]["annotations"].pop(KEEP) and None,
            "unlabels": lambda live: live["metadata"]["labels"].pop(used_by(BLUE)) and None,
        }
        if does == "makes":
            api.put(shared, manager="kubectl-create")
        elif does == "deletes":
            api.delete(*place)
        else:
            api.edit(*place, edits[does], manager="kubectl")
        return
    one = Instance(api.url, {"blue": BLUE, "green": GREEN, "red": RED}[who], adopt=does.startswith("adopts"))
    brought = labelled(shared, **{label: ""}) if label else shared
    package = [config_map(who), *({"drops": []}.get(does, [kept(brought) if does.endswith("keeps") else brought]))]
    if does == "is-refused":
        with pytest.raises(NotOurs):
            one.reconcile(package)
    else:
        one.reconcile([] if does == "leaves" else package)


STORIES = [
    # what a package brings with the annotation `keep` stays, until no package has it any more
    ("blue uses, green keeps, blue leaves, green uses, green leaves", None, ""),
    ("green uses, blue keeps, blue leaves, green leaves", None, ""),
    ("green keeps, blue uses, green leaves, blue leaves", "", ""),
    ("green keeps, blue uses, green leaves, blue uses, blue leaves", "", ""),
    ("green uses, blue keeps, green leaves, blue keeps, blue leaves", "", ""),
    ("green keeps, blue keeps, green uses, green leaves, blue keeps, blue leaves", "", ""),
    ("green keeps, green leaves, user unkeeps, blue uses, blue leaves", "", ""),
    # others use it then and change nothing of it; who has kept it may
    ("green keeps x, green leaves, blue uses, blue uses", "blue", "x"),
    ("green keeps, blue keeps, green drops, blue leaves, green keeps", "green", ""),
    ("blue keeps, blue leaves, green uses, green leaves, green uses, green leaves, blue keeps x", "blue", "x"),
    ("blue keeps, blue leaves, green uses, blue keeps, green leaves, blue keeps x, green uses, blue keeps y",
     "blue green", "y"),
    ("blue uses, green keeps, green leaves, green keeps x", "blue green", ""),
    ("blue uses x, green keeps, user unlabels, green drops, blue uses x, green keeps y", "blue green", "x"),
    ("blue keeps, blue drops, user unkeeps, red uses x, green keeps, green leaves, blue keeps y", "blue red", "x"),
    # what a user has made is a user's again when its adopter and all others have left it
    ("user makes, blue adopts-and-keeps x, green uses, blue leaves, green leaves, green is-refused", "", "x"),
    ("user makes, red adopts x, green uses, red leaves, green uses y, green leaves, blue is-refused", "", "y"),
    ("user makes, green adopts x, blue uses x, green leaves, blue uses y, blue leaves", "", "y"),
    ("user makes, green adopts x, user deletes, blue uses, green uses x", "blue green", ""),
]  # fmt: skip


@pytest.mark.parametrize("shared", [HOME, crontab_crd()], ids=["Namespace", "CRD"])
@pytest.mark.parametrize(("story", "left", "label"), STORIES, ids=[story for story, *_ in STORIES])
def test_who_has_a_shared_object_and_whose_label_it_has(
    api: FakeApi, shared: Object, story: str, left: str | None, label: str
) -> None:
    """`left`: its users in the end; None if it no longer exists."""
    for step in story.split(", "):
        act(api, shared, *step.split())
    live = api.find(shared["kind"], None, shared["metadata"]["name"])
    ids = {"blue": BLUE, "green": GREEN, "red": RED}
    assert (None if live is None else users(live)) == (None if left is None else {ids[one] for one in left.split()})
    assert live is None or labels(live).keys() & {"x", "y"} == set(label)


def test_not_even_who_has_brought_it_takes_fields_by_force_while_others_use_it(api: FakeApi) -> None:
    green = Instance(api.url, GREEN, force=True)
    green.reconcile([labelled(HOME, team="green")])
    Instance(api.url, BLUE).reconcile([HOME])
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["labels"].update(team="admin"), manager="kubectl")
    with pytest.raises(Conflict, match="not changed"):
        green.reconcile([labelled(HOME, team="green")])
    assert api.get("Namespace", None, "home")["metadata"]["labels"]["team"] == "admin"


@pytest.mark.parametrize("brought", [WEBHOOK, labelled(HOME, **{"pod-security.kubernetes.io/enforce": "restricted"})])
def test_what_an_instance_has_brought_stays_as_it_is_while_others_use_it(api: FakeApi, brought: Object) -> None:
    """Also after that instance has left: another user brings less, and the last one needs all of it."""
    kind, name = brought["kind"], brought["metadata"]["name"]
    less = crontab_crd() if brought is WEBHOOK else HOME
    blue, green, red = Instance(api.url), Instance(api.url, GREEN), Instance(api.url, RED)
    blue.reconcile([brought])
    green.reconcile([less])
    red.reconcile([brought])
    before = api.get(kind, None, name)
    blue.terminate()
    green.reconcile([less])
    after = api.get(kind, None, name)
    assert without_label(after, BLUE) == without_label(before, BLUE)
    assert used_by(BLUE) not in after["metadata"]["labels"]
    assert manager(BLUE) not in {entry["manager"] for entry in after["metadata"]["managedFields"]}
    for one in (red, green):
        one.terminate()
    assert state(api) == {}


def test_what_its_last_user_joined_stays_for_good_if_it_holds_guests(api: FakeApi) -> None:
    green, blue = Instance(api.url, GREEN), Instance(api.url)
    for one in (green, blue):
        one.reconcile([HOME])
    green.terminate()
    pod = api.put(obj("v1", "Pod", "guest", "home", spec={"containers": [{"name": "c", "image": "i"}]}))
    blue.terminate()
    api.delete("Pod", "home", pod["metadata"]["name"])
    green.reconcile([HOME])
    green.terminate()
    assert api.find("Namespace", None, "home")


def test_the_last_user_may_change_what_another_has_brought(api: FakeApi) -> None:
    green, blue = Instance(api.url, GREEN), Instance(api.url, BLUE)
    green.reconcile([crontab_crd()])
    blue.reconcile([crontab_crd()])
    green.terminate()
    with Connection(blue.endpoint) as connection:
        context = WriteContext(Client(connection, discover(connection)), Inventory(connection, "default", blue.id))
        preflight.check(context, [resource_for(second_version())])
    blue.reconcile([second_version()])
    assert [version["name"] for version in api.get(*CRD)["spec"]["versions"]] == ["v1", "v2"]
    blue.terminate()
    assert state(api) == {}


def test_a_user_of_an_adopted_namespace_changes_it_neither_then_nor_later(api: FakeApi) -> None:
    before = api.put(labelled(HOME, team="admin"))
    green, blue = Instance(api.url, GREEN, adopt=True), Instance(api.url, BLUE)
    green.reconcile([HOME])
    blue.reconcile([HOME])
    green.terminate()
    blue.reconcile([labelled(HOME, team="admin", extra="blue")])
    assert "extra" not in api.get("Namespace", None, "home")["metadata"]["labels"]
    blue.terminate()
    assert without_label(api.get("Namespace", None, "home"), BLUE) == without_label(before, BLUE)


@pytest.mark.parametrize("mark", [{CREATED_BY_US: "true"}, {RELEASED_BY: GREEN}], ids=["created", "released"])
@pytest.mark.parametrize("before", [[], [config_map("a")]], ids=["instantiate", "change"])
def test_a_copied_annotation_does_not_make_a_namespace_that_of_an_instance(
    api: FakeApi, before: list[Object], mark: dict[str, str]
) -> None:
    blue = Instance(api.url)
    blue.reconcile(before)
    copied = obj("v1", "Namespace", "users")
    api.put({**copied, "metadata": {**copied["metadata"], "annotations": mark}}, manager="kubectl-create")
    with pytest.raises(NotOurs):
        blue.reconcile([*before, copied])


def test_a_label_that_a_shared_namespace_does_not_get_is_named(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    Instance(api.url).reconcile([HOME, config_map("a", "home")])
    Instance(api.url, GREEN).reconcile([labelled(HOME, **level), config_map("b", "home")])
    assert not level.keys() & api.get("Namespace", None, "home")["metadata"]["labels"].keys()
    assert "does not get these labels: pod-security.kubernetes.io/enforce" in caplog.text


@pytest.mark.parametrize("shared", [HOME, crontab_crd()], ids=["Namespace", "CRD"])
@pytest.mark.parametrize("spoiled", ["cleared", "co-owned"])
def test_an_instance_leaves_what_others_have_taken_its_marks_from(api: FakeApi, shared: Object, spoiled: str) -> None:
    """`managedFields` may be emptied, and another applier may own the instance's label, too."""
    name = shared["metadata"]["name"]
    green, blue = Instance(api.url, GREEN), Instance(api.url, BLUE)
    green.reconcile([shared])
    blue.reconcile([shared])

    def spoil(live: Object) -> None:
        fields = {"f:metadata": {"f:labels": {f"f:{used_by(BLUE)}": {}}}}
        [entry, *_] = live["metadata"]["managedFields"]
        other = {**entry, "manager": "gitops", "fieldsV1": fields}
        live["metadata"]["managedFields"] = [*live["metadata"]["managedFields"], other] if spoiled == "co-owned" else [{}]

    api.edit(shared["kind"], None, name, spoil)
    blue.terminate()
    assert users(api.get(shared["kind"], None, name)) == {GREEN}


@pytest.mark.parametrize("fault", [faults.internal(), faults.unavailable(), faults.too_many()])
def test_a_dry_run_that_fails_is_repeated_before_the_label_is_written(api: FakeApi, fault: faults.Action) -> None:
    Instance(api.url, GREEN).reconcile([crontab_crd()])
    api.fail(fault, method="PATCH", path="customresourcedefinitions/", query={"dryRun": "All"})
    with pytest.raises(Conflict):
        Instance(api.url).reconcile([other_type()])


@pytest.mark.parametrize("brought", [WEBHOOK, labelled(HOME, team="green")], ids=["CRD", "Namespace"])
def test_what_an_adopter_has_added_stays_while_others_use_it(api: FakeApi, brought: Object) -> None:
    kind, name = brought["kind"], brought["metadata"]["name"]
    api.put(crontab_crd() if kind == "CustomResourceDefinition" else HOME, manager="user")
    green, blue = Instance(api.url, GREEN, adopt=True), Instance(api.url, BLUE)
    for one in (green, blue):
        one.reconcile([brought])
    before = api.get(kind, None, name)
    green.terminate()
    assert without_label(api.get(kind, None, name), GREEN) == without_label(before, GREEN)
    blue.terminate()
    assert users(api.get(kind, None, name)) == set()


@pytest.mark.parametrize("has_left", [False, True], ids=["maker there", "maker left"])
def test_users_of_a_namespace_use_it_on_when_somebody_has_taken_all_marks_off(api: FakeApi, has_left: bool) -> None:
    green, blue = Instance(api.url, GREEN), Instance(api.url)
    for one in (green, blue):
        one.reconcile([HOME, config_map(f"of-{one.id[-1]}", "home")])
    if has_left:
        green.terminate()
    api.edit("Namespace", None, "home", lambda live: live["metadata"].update(labels={}, annotations={}))
    blue.reconcile([HOME, config_map("of-1", "home")])
    assert users(api.get("Namespace", None, "home")) == {BLUE}


def test_a_last_user_by_label_changes_nothing_while_another_inventory_names_the_namespace(api: FakeApi) -> None:
    """A user has removed the label of that instance."""
    mine = labelled(HOME, team="green")
    green, blue, red = Instance(api.url, GREEN), Instance(api.url), Instance(api.url, RED)
    green.reconcile([mine])
    blue.reconcile([HOME, config_map("b", "home")])
    red.reconcile([mine, config_map("r", "home")])
    green.terminate()
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["labels"].pop(used_by(RED)))
    blue.reconcile([HOME, config_map("b", "home")])
    assert labels(api.get("Namespace", None, "home"))["team"] == "green"
    red.terminate()
    blue.reconcile([HOME, config_map("b", "home")])
    assert "team" not in labels(api.get("Namespace", None, "home"))


def test_force_spares_what_another_instance_uses_by_its_inventory(api: FakeApi) -> None:
    blue = Instance(api.url, force=True)
    blue.reconcile([labelled(HOME, team="blue")])
    Instance(api.url, GREEN).reconcile([HOME])

    def edit(live: Object) -> None:
        live["metadata"]["labels"]["team"] = "theirs"
        del live["metadata"]["labels"][used_by(GREEN)]

    api.edit("Namespace", None, "home", edit, manager="kubectl-edit")
    with pytest.raises(Conflict, match="Other VNF instances use it"):
        blue.reconcile([labelled(HOME, team="newer")])


def race(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, happens: Callable[[], None]) -> None:
    """Has it happen once, after the function has returned."""
    original, done = getattr(module, name), []

    def racing(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        if not done:
            done.append(True)
            happens()
        return result

    monkeypatch.setattr(module, name, racing)


def test_force_spares_what_another_instance_begins_to_use(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    Instance(api.url).reconcile([labelled(HOME, team="blue")])
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["labels"].update(team="theirs"), manager="kubectl-edit")
    race(monkeypatch, conflicts, "claimed_by_others", lambda: Instance(api.url, GREEN).reconcile([HOME]))
    with pytest.raises(Conflict, match="Other VNF instances use it"):
        Instance(api.url, force=True).reconcile([labelled(HOME, team="newer")])
    assert labels(api.get("Namespace", None, "home"))["team"] == "theirs"


def test_a_rollback_spares_what_another_instance_begins_to_use(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    red, mine = Instance(api.url, RED), labelled(HOME, x="1", y="1")
    for one in (red, Instance(api.url)):
        one.reconcile([mine])
    red.terminate()
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["labels"].update(x="theirs"), manager="kubectl-edit")
    race(monkeypatch, apply, "claimed_by_others", lambda: Instance(api.url, GREEN).reconcile([HOME]))
    Instance(api.url, yields=True).reconcile([labelled(HOME, x="1", y="1")])
    live = api.get("Namespace", None, "home")
    assert users(live) == {BLUE, GREEN} and (labels(live)["x"], labels(live)["y"]) == ("theirs", "1")


def test_a_worker_that_is_superseded_during_its_dry_run_joins_nothing(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    Instance(api.url, GREEN).reconcile([HOME])
    Instance(api.url).reconcile([config_map("a")])
    race(monkeypatch, apply, "_check_brought", Instance(api.url).terminate)
    with pytest.raises(Superseded):
        Instance(api.url).reconcile([config_map("a"), HOME])
    assert users(api.get("Namespace", None, "home")) == {GREEN}


def test_a_user_keeps_its_own_fields_while_another_inventory_names_the_object(api: FakeApi) -> None:
    """Of a former instance there are fields, too."""
    blue = Instance(api.url)
    blue.reconcile([labelled(HOME, team="blue")])
    Instance(api.url, RED).reconcile([config_map("c", "home")])

    def edit(live: Object) -> None:
        fields = {"f:metadata": {"f:annotations": {f"f:{CREATED_BY_US}": {}}}}
        first = live["metadata"]["managedFields"][0]
        live["metadata"]["managedFields"].append({**first, "manager": KEPT_BY, "fieldsV1": fields})

    api.edit("Namespace", None, "home", edit)
    blue.reconcile([labelled(HOME, team="blue")])
    assert labels(api.get("Namespace", None, "home"))["team"] == "blue"


def test_a_namespace_of_the_name_with_the_label_of_another_instance_is_not_used(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([HOME, config_map("a")])
    api.delete("Namespace", None, "home")
    api.put(labelled(HOME, **{INSTANCE_LABEL: RED}), manager="OpenAPI-Generator")
    with pytest.raises(NotOurs, match="belongs to another VNF instance"):
        blue.reconcile([HOME, config_map("a")])
