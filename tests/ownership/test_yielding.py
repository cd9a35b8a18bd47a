# SPDX-License-Identifier: Apache-2.0
"""A rollback leaves what others have set since: nobody can give it force-conflicts, and the change has not caused it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from k8s_cr_driver.errors import ApiError, Conflict, Refused
from k8s_cr_driver.objects.fields import pod_spec
from k8s_cr_driver.objects.keys import Object, annotations_of, labels
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, KEEP, PART_OF_LABEL, is_managed, used_by
from k8s_cr_driver.ownership.yielding import without, yielded
from tests.fake_api import FakeApi, controllers
from tests.instance import BLUE, GREEN, Instance, config_map, crontab_crd, deployment, kept, obj

HOME = obj("v1", "Namespace", "home")


def web(replicas: int, image: str) -> Object:
    made = deployment()
    made["spec"]["replicas"] = replicas
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return made


KINDS: list[tuple[Object, Object, Any]] = [
    (config_map("web", x="1", y="1"), config_map("web", x="1", y="2"), lambda live: live["data"].update(x="theirs")),
    (web(1, "1"), web(1, "2"), lambda live: live["spec"]["template"]["spec"]["containers"][0].update(image="theirs")),
    (web(1, "1"), web(2, "1"), lambda live: live["spec"].update(replicas=3)),
]


def content(live: Object) -> Object:
    return {name: value for name, value in live.items() if name not in ("metadata", "status")}


@pytest.mark.parametrize(("former", "newer", "edit"), KINDS, ids=["data", "an entry of a list", "a count"])
def test_a_rollback_leaves_fields_of_others(
    api: FakeApi, caplog: pytest.LogCaptureFixture, former: Object, newer: Object, edit: Any
) -> None:
    controllers.run_workloads(api)
    blue, kind = Instance(api.url), former["kind"]
    blue.reconcile([former])
    api.edit(kind, "default", "web", edit, manager="kubectl-edit")
    theirs = content(api.get(kind, "default", "web"))
    with pytest.raises(Conflict, match="kubectl-edit"):
        blue.reconcile([newer, config_map("new")])
    Instance(api.url, yields=True).reconcile([former])
    live = api.get(kind, "default", "web")
    assert content(live) == theirs
    assert is_managed(live, BLUE)
    assert "a rollback leaves what others have set: ." in caplog.text and "kubectl-edit" in caplog.text
    assert api.find("ConfigMap", "default", "new") is None


def test_a_rollback_restores_what_others_have_not_set(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a", x="1", y="1")])
    blue.reconcile([config_map("a", x="1", y="2", z="2")])
    api.edit("ConfigMap", "default", "a", lambda live: live["data"].update(x="theirs"), manager="kubectl-edit")
    Instance(api.url, yields=True).reconcile([config_map("a", x="1", y="1")])
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "theirs", "y": "1"}
    Instance(api.url).terminate()
    assert api.find("ConfigMap", "default", "a") is None


def test_a_rollback_leaves_the_versions_of_a_crd_that_a_user_has_changed(api: FakeApi) -> None:
    crd = crontab_crd()
    name = crd["metadata"]["name"]
    Instance(api.url).reconcile([crd])

    def widen(live: Object) -> None:
        live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["more"] = {"type": "string"}

    api.edit("CustomResourceDefinition", None, name, widen, manager="kubectl-edit")
    Instance(api.url, yields=True).reconcile([crd])
    version = api.get("CustomResourceDefinition", None, name)["spec"]["versions"][0]
    assert "more" in version["schema"]["openAPIV3Schema"]["properties"]


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


def refused(*paths: str) -> ApiError:
    causes = [("FieldManagerConflict", path, 'conflict with "kubectl-edit"') for path in paths]
    return ApiError("PATCH", 409, "Conflict", "Apply failed", causes)


PORTS = [{"port": 53, "targetPort": 1}, {"port": 53, "protocol": "UDP", "targetPort": 2}]


@pytest.mark.parametrize(("manifest", "paths", "left"), [
    ({"a": 1, "b": 2}, [".a"], {"b": 2}),
    ({"a": {"b": 1}}, [".a.b"], {}),
    ({"a": {"b": 1, "c": {}}}, [".a.b"], {"a": {"c": {}}}),
    ({"a": {"b.c/d": 1, "b": {"c/d": 2}}}, [".a.b.c/d"], {"a": {"b": {"c/d": 2}}}),
    ({"a": {"b": {"c": 2}}}, [".a.b.c"], {}),
    ({"a": {"x[=y]": 1, "z": 1}}, [".a.x[=y]"], {"a": {"z": 1}}),
    ({"l": PORTS}, ['.l[port=53,protocol="TCP"].targetPort'], {"l": [{"port": 53}, PORTS[1]]}),
    ({"l": PORTS}, ['.l[port=53,protocol="UDP"].targetPort'], {"l": [PORTS[0], {"port": 53, "protocol": "UDP"}]}),
    ({"l": PORTS}, ['.l[port=53,protocol="TCP"]', '.l[port=53,protocol="UDP"]'], {}),
    ({"l": [PORTS[0], PORTS[0]]}, ['.l[port=53,protocol="TCP"].targetPort'], {"l": [PORTS[0], PORTS[0]]}),
    ({"l": [{"name": 'a"]b'}, {"name": "c"}]}, ['.l[name="a\\"]b"]'], {"l": [{"name": "c"}]}),
    ({"l": [{"on": True, "v": 1}, {"on": 1, "v": 1}]}, [".l[on=true].v"], {"l": [{"on": True}, {"on": 1, "v": 1}]}),
    ({"l": [{"v": 1}]}, ['.l[name="a"].v'], {"l": [{"v": 1}]}),
    ({"l": [{"port": 80.0, "v": 1}]}, [".l[port=80].v"], {"l": [{"port": 80.0}]}),
    ({"l": [{"name": "a\u00a0\x7fb", "v": 1}]}, ['.l[name="a\\u00a0\\x7fb"].v'], {"l": [{"name": "a\u00a0\x7fb"}]}),
    ({"l": [{"name": "a", "v": 1}]}, ['.l[name="a\\q\\x"].v', ".l[name=a].v"], {"l": [{"name": "a", "v": 1}]}),
    ({"l": [{"v": 1}]}, [".l[" + ",".join(f"k{n}={n}" for n in range(200)) + "].v"], {"l": [{"v": 1}]}),
    ({"l": [1, 2]}, [".l[0]", '.l[="x"]', ".l[=1]"], {"l": [1, 2]}),
    ({"a": 1}, ["", ".", "a", ".b", ".a.b", ".a[0]", "[", "]", ".a["], {"a": 1}),
])  # fmt: skip
def test_a_manifest_without_the_fields_of_a_conflict(manifest: Object, paths: list[str], left: Object) -> None:
    before = copy.deepcopy(manifest)
    assert without(manifest, paths) == left
    assert manifest == before


def test_others_set_one_more_field_at_any_time() -> None:
    written: list[Object] = []

    def write(manifest: Object) -> Object:
        written.append(manifest["data"])
        if len(written) == 1:
            raise refused(".data.y")
        return manifest

    made = config_map("a", x="1", y="1", z="1")
    assert yielded(made, refused(".data.x"), BLUE, write)["data"] == {"z": "1"}
    assert written == [{"y": "1", "z": "1"}, {"z": "1"}]


def test_the_own_label_is_never_left_and_the_error_says_what_to_do() -> None:
    with pytest.raises(Conflict, match=r"tacker_vnf_instance_id.*given up, or set them as the manifest does"):
        yielded(config_map("a"), refused(f".metadata.labels.{INSTANCE_LABEL}"), BLUE, lambda manifest: manifest)


def test_the_label_of_the_apply_set_is_left_to_others(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a", x="1")])
    theirs = {PART_OF_LABEL: "theirs"}
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"]["labels"].update(theirs), manager="kubectl-apply")
    Instance(api.url, yields=True).reconcile([config_map("a", x="1")])
    assert labels(api.get("ConfigMap", "default", "a"))[PART_OF_LABEL] == "theirs"


def test_what_others_own_as_an_empty_map_is_no_conflict(api: FakeApi) -> None:
    """`kubectl create` owns `securityContext: {}` and `resources: {}`, by their defaults."""
    controllers.run_workloads(api)

    def secured(user: int, **container: Any) -> Object:
        made = deployment(securityContext={"runAsUser": user} if user else {})
        made["spec"]["replicas"] = 1
        pod_spec(made)["containers"][0].update(container)
        return made

    api.put(secured(0, image="1", resources={}), manager="kubectl-create")
    for user in (1, 2):
        Instance(api.url, adopt=True).reconcile([secured(user, image="1", resources={"limits": {"memory": "1Gi"}})])

    def edit(live: Object) -> None:
        pod_spec(live)["containers"][0]["image"] = "theirs"

    api.edit("Deployment", "default", "web", edit, manager="kubectl-edit")
    Instance(api.url, yields=True).reconcile([secured(1, image="1", resources={"limits": {"memory": "1Gi"}})])
    found = pod_spec(api.get("Deployment", "default", "web"))
    assert found["securityContext"] == {"runAsUser": 1}
    assert found["containers"][0]["resources"] == {"limits": {"memory": "1Gi"}}
    assert found["containers"][0]["image"] == "theirs"


def test_fields_that_nobody_owns_are_not_left(api: FakeApi) -> None:
    """They may be the change's. The API server names `before-first-apply` in such a conflict."""
    for number in ("1", "2"):
        Instance(api.url).reconcile([config_map("a", x=number)])
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(managedFields=[{}]))
    with pytest.raises(Conflict, match="before-first-apply"):
        Instance(api.url, yields=True).reconcile([config_map("a", x="1")])


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
