# SPDX-License-Identifier: Apache-2.0
"""Somebody has deleted an instance's inventory: Tacker's record and the package are enough to find all objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, defaults, faults
from tests.instance import BLUE, config_map, crontab, crontab_crd, obj, state
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.web import deployment

INVENTORY = f"k8s-cr-driver-{BLUE}"
KINDS = "applyset.kubernetes.io/contains-group-kinds"
NEVER_READY = crontab_crd(phase={"type": "string"})


def lose_inventory(api: FakeApi) -> None:
    api.delete("ConfigMap", "default", INVENTORY)


def kinds(api: FakeApi) -> set[str]:
    return set(api.get("ConfigMap", "default", INVENTORY)["metadata"]["annotations"][KINDS].split(","))


def left(api: FakeApi) -> list[str]:
    """All but the ReplicaSet, which `cluster` never collects."""
    return [key.name for key in state(api) if key.kind != "ReplicaSet"]


def test_terminate_deletes_everything_of_ours_and_nothing_that_was_adopted(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(config_map("theirs"))
    blue = Instance(cluster, tmp_path, [deployment(1), crontab_crd(), crontab("tab"), config_map("a"), config_map("theirs")])
    blue.instantiate(**{"adopt-existing": True, "force-conflicts": True})
    lose_inventory(cluster)
    blue.terminate()
    assert left(cluster) == ["theirs"]


def test_what_was_made_again_in_place_of_an_adopted_object_is_deleted(cluster: FakeApi, tmp_path: Path) -> None:
    """The record has the uid of the object that was adopted; the inventory, which knew of the new one, is lost, too."""
    cluster.put(config_map("theirs"))
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("theirs")])
    blue.instantiate(**{"adopt-existing": True, "force-conflicts": True})
    cluster.delete("ConfigMap", "default", "theirs")
    lose_inventory(cluster)
    b: dict[str, Any] = {"method": "PATCH", "path": "/b$", "times": 10**6}
    cluster.fail(faults.denied("no"), when=lambda _: "theirs" in left(cluster), **b)
    cluster.fail(faults.unavailable(), **b)
    with pytest.raises(sol_ex.SolException, match="denied"):
        blue.change(make_vnfd(tmp_path / "next", [deployment(1), config_map("theirs"), config_map("b")]))
    assert "theirs" in left(cluster)
    cluster.clear_faults()
    lose_inventory(cluster)
    blue.terminate()
    assert left(cluster) == []


@pytest.mark.parametrize("uids", [[], ["abcd", "abcd"], [1], [["abcd"]], None])
def test_uids_in_a_record_that_somebody_has_edited_block_nothing(cluster: FakeApi, tmp_path: Path, uids: Any) -> None:
    """The key alone says then that an object was adopted."""
    cluster.put(config_map("theirs"))
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("theirs")])
    blue.instantiate(**{"adopt-existing": True, "force-conflicts": True})
    blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]["inventory"]["adopted-uids"] = uids
    lose_inventory(cluster)
    blue.terminate()
    assert left(cluster) == ["theirs"]


def test_the_record_has_when_the_first_inventory_was_made(
    cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        blue.instantiate()
    lose_inventory(cluster)
    blue.scale("SCALE_OUT")
    record = blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]
    assert record["inventory"]["created"] == "2020-01-01T00:00:00Z"


def scale(blue: Instance, folder: Path) -> None:
    blue.scale("SCALE_OUT")


def heal(blue: Instance, folder: Path) -> None:
    blue.heal(blue.inst.instantiatedVnfInfo.vnfcResourceInfo[0].id)


def change(blue: Instance, folder: Path) -> None:
    blue.change(make_vnfd(folder, [deployment(1), config_map("b")]))


@pytest.mark.parametrize("verb", [scale, heal, change])
def test_any_verb_creates_it_again(cluster: FakeApi, tmp_path: Path, verb: Callable[[Instance, Path], None]) -> None:
    secret = obj("v1", "Secret", "dropped-by-change", data={"a": "Yg=="})
    blue = Instance(cluster, tmp_path / "old", [deployment(1), config_map("a"), secret])
    blue.instantiate()
    lose_inventory(cluster)
    verb(blue, tmp_path / "new")
    assert kinds(cluster) == {"Deployment.apps", "ConfigMap", *(() if verb is change else ("Secret",))}
    assert bool(cluster.names("Secret")) == (verb is not change)
    blue.terminate()
    assert left(cluster) == []


def test_rollback_of_instantiate_finds_what_the_package_says(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1), obj("v1", "Namespace", "blue"), NEVER_READY, crontab("tab")])
    with pytest.raises(sol_ex.SolException, match="not ready"):
        blue.instantiate(**{"wait-timeout": 2})
    lose_inventory(cluster)
    blue.roll_back_instantiate()
    assert left(cluster) == []


def test_rollback_of_an_instantiate_that_has_written_nothing_writes_nothing(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.knobs.denied |= {("create", "", "configmaps", "*"), ("list", "", "configmaps", "*")}
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a")])
    with pytest.raises(sol_ex.SolException, match="nothing was written"):
        blue.instantiate()
    cluster.requests.clear()
    blue.roll_back_instantiate()
    assert not cluster.requests.writes
    assert len(cluster.requests) <= 7


def test_rollback_completes_for_a_package_that_cannot_be_loaded(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [{"apiVersion": "v1", "kind": "ConfigMap"}])
    with pytest.raises(sol_ex.SolException):
        blue.instantiate()
    blue.roll_back_instantiate()
    assert not cluster.requests.writes


def without_namespace(made: Object) -> Object:
    return {**made, "metadata": {name: value for name, value in made["metadata"].items() if name != "namespace"}}


def test_a_rollback_without_inventory_looks_where_the_request_has_put_the_objects(cluster: FakeApi, tmp_path: Path) -> None:
    cluster.put(obj("v1", "Namespace", "blue"))
    cluster.put(crontab_crd(phase={"type": "string"}))
    of_vdu = without_namespace(config_map("web"))
    of_vdu["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web"}
    blue = Instance(cluster, tmp_path, [of_vdu, without_namespace(crontab("tab"))])
    for group, plural in (("", "configmaps"), ("stable.example.com", "crontabs")):
        cluster.knobs.denied |= {(verb, group, plural, "") for verb in ("list", "watch")}
    with pytest.raises(sol_ex.SolException, match="not ready"):
        blue.instantiate(**{"wait-timeout": 2, "namespace": "blue"})
    cluster.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    blue.roll_back_instantiate()
    assert cluster.names("CronTab") == [] and cluster.find("ConfigMap", "blue", "web") is None
