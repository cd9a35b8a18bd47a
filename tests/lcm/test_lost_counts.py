# SPDX-License-Identifier: Apache-2.0
"""The count of a custom resource survives an operation that cannot read where the count is, or the operation fails."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.instance import config_map, obj
from tests.lcm.instance import Instance, instantiated, make_vnfd
from tests.lcm.synced import Synced

CRD = "/customresourcedefinitions/olds.stable.example.com"


def crd(kind: str) -> Object:
    plural = f"{kind.lower()}s"
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    }
    named = {"plural": plural, "singular": kind.lower(), "kind": kind}
    spec = {"group": "stable.example.com", "scope": "Namespaced", "names": named, "versions": [version]}
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.stable.example.com", spec=spec)


def web(kind: str, **annotations: str) -> Object:
    made = obj("stable.example.com/v1", kind, "web", "default", spec={"size": 1})
    made["metadata"]["annotations"] = annotations
    return made


def size(api: FakeApi, kind: str = "Old") -> int:
    return int(api.get(kind, "default", "web")["spec"]["size"])


@pytest.fixture
def scaled(api: FakeApi, tmp_path: Path) -> Instance:
    """From 1 to 5."""
    blue = instantiated(api, tmp_path / "old", [crd("Old"), web("Old"), config_map("a")])
    blue.scale("SCALE_OUT", 2)
    return blue


@pytest.mark.parametrize("fault", [faults.page_not_found, faults.not_found])
@pytest.mark.parametrize("is_packaged", [True, False])
def test_a_change_does_not_believe_one_404_of_the_crd(
    api: FakeApi, tmp_path: Path, fault: Callable[[], faults.Answer], is_packaged: bool
) -> None:
    if not is_packaged:
        api.put(crd("Old"))
    blue = instantiated(api, tmp_path / "old", [crd("Old")] * is_packaged + [web("Old", **{"k8s-cr-driver/vdu": "Web"})])
    blue.scale("SCALE_OUT", 2)
    api.fail(fault(), method="GET", path=CRD)
    blue.change(blue.vnfd)
    assert api.faults_pending == 0
    assert size(api) == 5


def test_a_change_is_refused_that_cannot_set_the_count(api: FakeApi, tmp_path: Path) -> None:
    api.put(crd("Old"))
    blue = instantiated(api, tmp_path / "old", [web("Old", **{"k8s-cr-driver/vdu": "Web"})])
    blue.scale("SCALE_OUT", 2)
    api.fail(faults.status(403, "Forbidden"), method="GET", path=CRD)
    with pytest.raises(sol_ex.SolException, match=r"Its count of 5 cannot be set.*get customresourcedefinitions"):
        blue.change(blue.vnfd)
    assert size(api) == 5


@pytest.mark.parametrize("status", [404, 403])
def test_an_instantiation_level_is_set_or_refused(api: FakeApi, tmp_path: Path, status: int) -> None:
    api.put(crd("Old"))
    blue = Instance(api, tmp_path, [web("Old", **{"k8s-cr-driver/vdu": "Web"})], levels={"small": 1, "big": 4})
    api.fail(faults.page_not_found() if status == 404 else faults.status(403, "Forbidden"), method="GET", path=CRD)
    if status == 403:
        with pytest.raises(sol_ex.SolException, match="Its count of 4 cannot be set"):
            blue.instantiate("big")
        assert not api.find("Old", "default", "web")
    else:
        blue.instantiate("big")
        assert size(api) == 4


def test_a_synchronization_does_not_store_a_count_that_it_cannot_see(api: FakeApi, tmp_path: Path) -> None:
    blue = Synced(api, tmp_path, [crd("Old"), web("Old")])
    stored = len(blue.vnfcs())
    api.edit("Old", "default", "web", lambda live: live["spec"].update(size=3))
    api.fail(faults.status(403, "Forbidden"), method="GET", path=CRD)
    with pytest.raises(Exception, match="whose count is not known"):
        blue.sync()
    assert len(blue.vnfcs()) == stored


def test_a_synchronization_without_the_crd_stores_that_nothing_is_left(api: FakeApi, tmp_path: Path) -> None:
    blue = Synced(api, tmp_path, [crd("Old"), web("Old")])
    api.delete("Old", "default", "web")
    api.delete("CustomResourceDefinition", None, "olds.stable.example.com")
    blue.sync()
    assert blue.vnfcs() == set()


def test_a_rollback_is_possible_for_an_account_that_never_could_read_the_crd(api: FakeApi, tmp_path: Path) -> None:
    """Its record has no count, and the level has that of the manifest."""
    api.put(crd("Old"))
    annotations = {"k8s-cr-driver/vdu": "Web", "k8s-cr-driver/ready-when": "stored"}
    blue = instantiated(api, tmp_path, [web("Old", **annotations)], levels={"small": 1})
    del blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["counts"]
    api.knobs.denied.add(("get", "apiextensions.k8s.io", "customresourcedefinitions", "*"))
    blue.change(blue.vnfd)
    blue.roll_back_change()
    assert size(api) == 1


@pytest.mark.parametrize("verb", ["retry", "rollback"])
def test_a_change_that_has_deleted_the_crd_keeps_the_count(api: FakeApi, tmp_path: Path, scaled: Instance, verb: str) -> None:
    """Another object of the old package, which a finalizer holds, has the first try fail."""
    api.edit("ConfigMap", "default", "a", lambda live: live["metadata"].update(finalizers=["example.com/held"]))
    stored = scaled.inst.obj_clone()
    new = make_vnfd(tmp_path / "new", [crd("New"), web("New")])
    with pytest.raises(sol_ex.SolException):
        scaled.change(new, **{"wait-timeout": 2})
    assert not api.find("CustomResourceDefinition", None, "olds.stable.example.com")
    api.release("ConfigMap", "default", "a")
    scaled.inst = stored
    if verb == "retry":
        scaled.change(new)
        assert size(api, "New") == 5
    else:
        scaled.roll_back_change()
        assert size(api) == 5


def test_a_heal_without_the_crd_does_not_forget_the_count(api: FakeApi, scaled: Instance) -> None:
    before = copy.deepcopy(scaled.inst.instantiatedVnfInfo.metadata["k8s_cr"]["counts"])
    api.fail(faults.status(403, "Forbidden"), method="GET", path=CRD)
    scaled.heal()
    assert scaled.inst.instantiatedVnfInfo.metadata["k8s_cr"]["counts"] == before == {"Web": 5}


def refuse_last(api: FakeApi) -> None:
    """The writes of the ConfigMap `last` fail, not the dry run that comes before all writes."""
    refusal = faults.status(400, "BadRequest", "no")
    api.fail(refusal, path="/configmaps/last", when=lambda one: "dryRun" not in one.query, times=5)


def unnamed(api: FakeApi, folder: Path, size: int | None = None, *more: Any) -> Any:
    """A package with a kind whose count nothing names: its controller takes none for as many as it likes."""
    made = obj("stable.example.com/v1", "Old", "web", "default", spec={} if size is None else {"size": size})
    made["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web", "k8s-cr-driver/ready-when": "stored"}
    return make_vnfd(folder, [crd("Old"), made, *more])


def test_a_count_of_one_that_an_earlier_version_has_recorded_of_none_is_not_applied(api: FakeApi, tmp_path: Path) -> None:
    blue = Instance(api, tmp_path, [])
    blue.vnfd = unnamed(api, tmp_path / "old")
    blue.instantiate()
    blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["counts"] = {"Web": 1}
    blue.change(blue.vnfd)
    assert api.get("Old", "default", "web")["spec"] == {}


def test_a_rollback_to_a_package_that_names_no_count_removes_that_of_the_failed_one(api: FakeApi, tmp_path: Path) -> None:
    blue = Instance(api, tmp_path, [])
    blue.vnfd = unnamed(api, tmp_path / "old")
    blue.instantiate()
    stored, last = blue.inst.obj_clone(), config_map("last")
    last["metadata"]["annotations"] = {DEPENDS_ON: "stable.example.com/namespaces/default/Old/web"}
    refuse_last(api)
    with pytest.raises(sol_ex.SolException, match="no"):
        blue.change(unnamed(api, tmp_path / "new", 5, last))
    assert api.get("Old", "default", "web")["spec"] == {"size": 5}
    blue.inst = stored
    blue.roll_back_change()
    assert api.get("Old", "default", "web")["spec"] == {}


def test_a_rollback_of_a_change_that_has_moved_the_count_restores_a_count_of_one(api: FakeApi, tmp_path: Path) -> None:
    """The CRD of the failed change has the count in another field, where the former manifest names none."""
    moved, last = crd("Old"), config_map("last")
    version = moved["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["count"] = {"type": "integer"}
    version["subresources"]["scale"]["specReplicasPath"] = ".spec.count"
    blue = Instance(api, tmp_path, [])
    blue.vnfd = unnamed(api, tmp_path / "old", 5)
    blue.instantiate()
    blue.scale("SCALE_IN", 2)
    assert size(api) == 1
    stored = blue.inst.obj_clone()
    last["metadata"]["annotations"] = {DEPENDS_ON: "stable.example.com/namespaces/default/Old/web"}
    changed = web("Old", **{"k8s-cr-driver/vdu": "Web", "k8s-cr-driver/ready-when": "stored"})
    refuse_last(api)
    with pytest.raises(sol_ex.SolException, match="no"):
        blue.change(blue.package([moved, {**changed, "spec": {"count": 5}}, last]))
    blue.inst = stored
    blue.roll_back_change()
    assert size(api) == 1
