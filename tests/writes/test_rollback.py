# SPDX-License-Identifier: Apache-2.0
"""A rollback takes over what others have set since, and leaves Namespaces and CRDs to others that use them."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.errors import Conflict, Refused
from k8s_cr_driver.objects.keys import Object, annotations_of, labels
from k8s_cr_driver.objects.marks import KEEP, used_by
from tests.fake_api import FakeApi, controllers
from tests.instance import BLUE, GREEN, Instance, config_map, crontab_crd, deployment, kept, labelled, obj

HOME = obj("v1", "Namespace", "home")


def web(replicas: int, image: str) -> Object:
    made = deployment()
    made["spec"]["replicas"] = replicas
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return made


def _contains(live: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(live, dict) and all(name in live and _contains(live[name], value) for name, value in part.items())
    if isinstance(part, list):
        return len(live) == len(part) and all(map(_contains, live, part))
    return bool(live == part)


KINDS: list[tuple[Object, Object, Any]] = [
    (config_map("web", x="1", y="1"), config_map("web", x="1", y="2"), lambda live: live["data"].update(x="theirs")),
    (web(1, "1"), web(1, "2"), lambda live: live["spec"]["template"]["spec"]["containers"][0].update(image="theirs")),
    (web(1, "1"), web(2, "1"), lambda live: live["spec"].update(replicas=3)),
]


@pytest.mark.parametrize(("former", "newer", "edit"), KINDS, ids=["data", "an entry of a list", "a count"])
def test_a_rollback_takes_over_what_others_have_set(
    api: FakeApi, caplog: pytest.LogCaptureFixture, former: Object, newer: Object, edit: Any
) -> None:
    controllers.run_workloads(api)
    blue, kind = Instance(api.url), former["kind"]
    blue.reconcile([former])
    api.edit(kind, "default", "web", edit, manager="kubectl-edit")
    with pytest.raises(Conflict, match="kubectl-edit"):
        blue.reconcile([newer, config_map("new")])
    Instance(api.url, yields=True).reconcile([former])
    assert _contains(api.get(kind, "default", "web"), {name: former[name] for name in ("data", "spec") if name in former})
    assert "fields of other managers are taken by force: ." in caplog.text and "kubectl-edit" in caplog.text
    assert api.find("ConfigMap", "default", "new") is None


def test_a_rollback_leaves_a_namespace_that_others_use_as_it_is(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    blue = Instance(api.url)
    blue.reconcile([labelled(HOME, team="blue")])
    Instance(api.url, GREEN).reconcile([HOME])
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["labels"].update(team="theirs"), manager="kubectl-edit")
    Instance(api.url, yields=True).reconcile([labelled(HOME, team="blue")])
    assert labels(api.get("Namespace", None, "home"))["team"] == "theirs"
    assert "A rollback leaves it as it is" in caplog.text


def test_a_rollback_takes_fields_that_nobody_owns(api: FakeApi) -> None:
    """Somebody has cleared `managedFields`."""
    for number in ("1", "2"):
        Instance(api.url).reconcile([config_map("a", x=number)])
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(managedFields=[{}]))
    Instance(api.url, yields=True).reconcile([config_map("a", x="1")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "1"}


def test_a_rollback_goes_on_using_what_its_maker_has_changed(api: FakeApi) -> None:
    green, blue = Instance(api.url, GREEN), Instance(api.url)
    for one in (green, blue):
        one.reconcile([crontab_crd()])
    green.reconcile([crontab_crd(runs={"type": "integer"})])
    with pytest.raises(Conflict, match="Other VNF instances use it"):
        blue.reconcile([crontab_crd(runs={"type": "string"}), config_map("new")])
    Instance(api.url, yields=True).reconcile([crontab_crd()])


def test_a_rollback_takes_no_other_refusal_for_a_conflict(api: FakeApi) -> None:
    made = {**config_map("a", x="1"), "immutable": True}
    Instance(api.url).reconcile([made])
    with pytest.raises(Refused, match="immutable"):
        Instance(api.url, yields=True).reconcile([{**made, "data": {"x": "2"}}])


def test_a_new_user_of_a_shared_object_is_checked_in_a_rollback_as_well(api: FakeApi) -> None:
    Instance(api.url, GREEN).reconcile([crontab_crd(runs={"type": "integer"})])
    with pytest.raises(Conflict):
        Instance(api.url, yields=True).reconcile([crontab_crd(runs={"type": "string"})])


def test_a_rollback_keeps_no_shared_object_that_a_user_keeps_no_more(api: FakeApi) -> None:
    green = Instance(api.url, GREEN)
    Instance(api.url).reconcile([HOME])
    green.reconcile([kept(HOME)])
    api.edit("Namespace", None, "home", lambda live: live["metadata"]["annotations"].update({KEEP: "false"}), manager="kubectl")
    with pytest.raises(Conflict, match="keep"):
        green.reconcile([kept(HOME)])
    Instance(api.url, GREEN, yields=True).reconcile([kept(HOME)])
    assert annotations_of(api.get("Namespace", None, "home"))[KEEP] == "false"


def test_a_rollback_goes_on_using_what_has_lost_its_label(api: FakeApi) -> None:
    green = Instance(api.url, GREEN)
    for one in (green, Instance(api.url)):
        one.reconcile([crontab_crd()])
    green.reconcile([crontab_crd(runs={"type": "integer"})])
    kind, name = "CustomResourceDefinition", crontab_crd()["metadata"]["name"]
    api.edit(kind, None, name, lambda live: live["metadata"]["labels"].pop(used_by(BLUE)))
    Instance(api.url, yields=True).reconcile([crontab_crd()])
    assert used_by(BLUE) in labels(api.get(kind, None, name))
