# SPDX-License-Identifier: Apache-2.0
"""The verbs for a Cluster with a topology, of which several VDUs are parts."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.driver import Driver
from k8s_cr_driver.objects.keys import GroupKind, Object
from tests.capi import clusters
from tests.fake_api import FakeApi
from tests.instance import obj
from tests.lcm.instance import Instance, grant
from tests.lcm.synced import Synced

VDUS = {"Web": "md-0", "Db": "md-1", "ControlPlane": "controlPlane"}
ASPECTS = {"web": ["Web"], "db": ["Db"], "control-plane": ["ControlPlane"]}


@pytest.fixture
def blue(api: FakeApi, tmp_path: Path) -> Instance:
    """A control plane of one Machine, and two sets of workers: of two Machines the VDU `Web`, of three `Db`."""
    return instantiated(api, tmp_path, clusters.cluster(1, **{"md-0": 2, "md-1": 3}))


def instantiated(api: FakeApi, folder: Path, cluster: Object, type_: type[Instance] = Instance, **package: Any) -> Any:
    clusters.run_topology(api)
    blue = type_(api, folder / "blue", [cluster], vdus=VDUS, aspects=ASPECTS, **package)
    if type_ is Instance:
        blue.instantiate()
    return blue


def counts(api: FakeApi) -> dict[str, int]:
    return clusters.counts(api.get("Cluster", "default", "blue"))


def recorded(blue: Instance) -> dict[str, dict[str, int]]:
    """VDU -> the counts in its manifest in the record."""
    found = blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]
    return {vdu: clusters.counts(manifest) for vdu, manifest in found.items()}


def vnfcs(blue: Instance, vdu: str) -> list[str]:
    return sorted(one.id for one in blue.inst.instantiatedVnfInfo.vnfcResourceInfo if one.vduId == vdu)


def scale(blue: Instance, aspect: str, type_: str = "SCALE_OUT", steps: int = 1) -> None:
    req = objects.ScaleVnfRequest.from_dict({"type": type_, "aspectId": aspect, "numberOfSteps": steps})
    Driver().scale(req, blue.inst, grant("1"), None, blue.vnfd)


def test_the_vnfcs_of_a_part_are_its_machines(api: FakeApi, blue: Instance) -> None:
    assert vnfcs(blue, "Web") == clusters.machines(api, "md-0")
    assert vnfcs(blue, "Db") == clusters.machines(api, "md-1")
    assert vnfcs(blue, "ControlPlane") == clusters.machines(api, "controlPlane")
    assert [len(vnfcs(blue, vdu)) for vdu in VDUS] == [2, 3, 1]


def test_an_instantiation_level_sets_the_counts_of_all_parts(api: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(api, tmp_path, clusters.cluster(1, **{"md-0": 2, "md-1": 2}), levels={"default": 3})
    assert counts(api) == {"controlPlane": 3, "md-0": 3, "md-1": 3}
    assert recorded(blue) == dict.fromkeys(VDUS, counts(api))


def test_a_scale_changes_one_count_and_keeps_those_of_earlier_scales(api: FakeApi, blue: Instance) -> None:
    scale(blue, "web")
    scale(blue, "control-plane")
    scale(blue, "db", "SCALE_IN")
    assert counts(api) == {"controlPlane": 3, "md-0": 4, "md-1": 1}
    assert recorded(blue) == dict.fromkeys(VDUS, counts(api))
    assert [len(vnfcs(blue, vdu)) for vdu in VDUS] == [4, 1, 3]


def test_a_failed_scale_is_rolled_back_to_the_counts_of_all_parts(api: FakeApi, blue: Instance) -> None:
    scale(blue, "db")
    stored = blue.inst.obj_clone()
    scale(blue, "web")
    blue.inst = stored  # Tacker saves the instance only after success
    req = objects.ScaleVnfRequest.from_dict({"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 1})
    Driver().scale_rollback(req, blue.inst, grant(), None, blue.vnfd)
    assert counts(api) == {"controlPlane": 1, "md-0": 2, "md-1": 5}


def test_a_part_whose_count_is_refused_is_named(api: FakeApi, blue: Instance) -> None:
    manifest = clusters.cluster(1, **{"md-0": 2, "md-1": 3})
    blue.vnfd = blue.package([manifest], vdus=VDUS, aspects=ASPECTS, delta=1)
    api.requests.clear()
    words = r"default/blue controlPlane, spec\.topology\.controlPlane\.replicas: cannot be 2: etcd"
    with pytest.raises(sol_ex.SolException, match=words):
        scale(blue, "control-plane")
    assert not api.requests.writes


def test_a_scale_in_removes_the_machines_that_the_grant_names(api: FakeApi, blue: Instance) -> None:
    scale(blue, "web")
    chosen = vnfcs(blue, "Web")[:2]
    blue.scale("SCALE_IN", requested=chosen, granted=chosen)
    assert not set(chosen) & set(clusters.machines(api, "md-0"))
    assert vnfcs(blue, "Web") == clusters.machines(api, "md-0")
    assert counts(api) == {"controlPlane": 1, "md-0": 2, "md-1": 3}


def test_a_heal_replaces_the_chosen_machine(api: FakeApi, blue: Instance) -> None:
    chosen, other = vnfcs(blue, "Web")
    others = vnfcs(blue, "Db")
    blue.heal(chosen)
    assert chosen not in vnfcs(blue, "Web") and other in vnfcs(blue, "Web") and len(vnfcs(blue, "Web")) == 2
    assert vnfcs(blue, "Db") == others


def test_a_heal_of_the_only_machine_of_a_control_plane_is_refused(blue: Instance) -> None:
    [chosen] = vnfcs(blue, "ControlPlane")
    request = grant(chosen)
    request.removeResources[0].resourceTemplateId = "ControlPlane"
    req = objects.HealVnfRequest.from_dict({"vnfcInstanceId": [f"ControlPlane-{chosen}"], "additionalParams": {}})
    with pytest.raises(sol_ex.SolException, match=r"default/blue controlPlane, of whose 1 VNFCs at most 0 may be unavailable"):
        Driver().heal(req, blue.inst, request, None, blue.vnfd)


def test_a_pool_without_machines_has_a_vnfc_for_each_replica_and_recreate_keeps_its_cluster(
    api: FakeApi, tmp_path: Path
) -> None:
    clusters.run_topology(api)
    manifest = clusters.cluster(1)
    manifest["spec"]["topology"]["workers"] = {"machinePools": [{"name": "mp-0", "class": "pool", "replicas": 2}]}
    blue = Instance(api, tmp_path / "blue", [manifest], vdus={"Web": "mp-0"})
    blue.instantiate()
    assert vnfcs(blue, "Web") == ["blue-mp-0-0", "blue-mp-0-1"]
    before = api.get("Cluster", "default", "blue")["metadata"]["uid"]
    blue.heal("blue-mp-0-0", recreate=True)
    assert api.get("Cluster", "default", "blue")["metadata"]["uid"] == before
    blue.scale("SCALE_OUT")
    assert len(vnfcs(blue, "Web")) == 4


def test_a_change_of_package_keeps_the_counts_of_all_parts_and_its_rollback_restores_them(api: FakeApi, blue: Instance) -> None:
    scale(blue, "web")
    scale(blue, "db")
    stored = blue.inst.obj_clone()
    new = clusters.cluster(1, **{"md-0": 1, "md-1": 1, "md-2": 1})
    blue.change(blue.package([new], vdus=VDUS, aspects=ASPECTS))
    assert counts(api) == {"controlPlane": 1, "md-0": 4, "md-1": 5, "md-2": 1}
    blue.inst = stored
    blue.roll_back_change()
    assert counts(api) == {"controlPlane": 1, "md-0": 4, "md-1": 5}


def test_a_version_is_not_skipped_by_two_changes_of_which_the_first_has_not_reached_the_machines(
    api: FakeApi, blue: Instance
) -> None:
    """The topology has the new version already, and its control plane has Machines of the former one."""
    new, newer = (clusters.cluster(1, version, **{"md-0": 2, "md-1": 3}) for version in ("v1.36.0", "v1.37.0"))
    reference = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "blue-controlplane"}
    for one in (new, newer):
        one["spec"]["controlPlaneRef"] = reference
    blue.change(blue.package([new], vdus=VDUS, aspects=ASPECTS))
    reached = [{"version": "v1.36.0", "replicas": 1}, {"version": "v1.35.0", "replicas": 2}]
    api.set_status("KubeadmControlPlane", "default", "blue-controlplane", {"versions": reached})
    api.requests.clear()
    with pytest.raises(sol_ex.SolException, match=r"spec\.topology\.version cannot change from v1\.35\.0 to v1\.37\.0"):
        blue.change(blue.package([newer], vdus=VDUS, aspects=ASPECTS))
    assert not api.requests.writes


@pytest.mark.parametrize("spec", [{"kubernetesVersions": ["v1.35.0", "v1.36.0", "v1.37.0"]}, {}])
def test_a_version_is_skipped_if_the_class_on_the_cluster_lists_all_in_between(
    api: FakeApi, blue: Instance, spec: Object
) -> None:
    classes = GroupKind("cluster.x-k8s.io", "ClusterClass")
    api.put(clusters.crd(classes))
    api.put(obj("cluster.x-k8s.io/v1", "ClusterClass", "quick-start", "default", spec=spec))
    new = clusters.cluster(1, "v1.37.0", **{"md-0": 2, "md-1": 3})
    api.requests.clear()
    allowed = contextlib.nullcontext() if spec else pytest.raises(sol_ex.SolException, match="by one minor version")
    with allowed:
        blue.change(blue.package([new], vdus=VDUS, aspects=ASPECTS))
    assert [one.method for one in api.requests if one.path.endswith("/quick-start")] == ["GET"]
    assert bool(api.requests.writes) is bool(spec)


def test_counts_that_somebody_has_changed_are_synchronized(api: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(api, tmp_path, clusters.cluster(1, **{"md-0": 2, "md-1": 3}), Synced)
    assert not blue.differs()

    def more(live: Object) -> None:
        live["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] = 4

    api.edit("Cluster", "default", "blue", more)
    assert blue.differs()
    blue.sync()
    assert blue.levels() == {"web": 2}
    assert len(vnfcs(blue, "Web")) == 4
    assert counts(api) == {"controlPlane": 1, "md-0": 4, "md-1": 3}
    assert recorded(blue) == dict.fromkeys(VDUS, counts(api))
    assert not blue.differs()


def test_a_machine_that_was_replaced_is_synchronized(api: FakeApi, tmp_path: Path) -> None:
    blue = instantiated(api, tmp_path, clusters.cluster(1, **{"md-0": 2, "md-1": 3}), Synced)
    api.delete("Machine", "default", vnfcs(blue, "Db")[0])
    assert blue.differs()
    blue.sync()
    assert vnfcs(blue, "Db") == clusters.machines(api, "md-1")


def test_the_counts_stay_that_the_in_tree_driver_does_not_know(api: FakeApi, blue: Instance) -> None:
    """It finds no VNFCs of a Cluster, and writes those that it finds without the mark of this driver."""
    info = blue.inst.instantiatedVnfInfo
    info.vnfcResourceInfo = info.vnfcResourceInfo[:1]
    info.vnfcResourceInfo[0].metadata = {}
    scale(blue, "web")
    assert counts(api) == {"controlPlane": 1, "md-0": 4, "md-1": 3}


def test_a_record_with_parts_is_of_a_version_that_older_drivers_refuse(blue: Instance) -> None:
    own = blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]
    assert own["version"] == 2
    workers = "machineDeployments"
    assert own["vdu-parts"] == {"Web": f"{workers}/md-0", "Db": f"{workers}/md-1", "ControlPlane": "controlPlane"}


def test_a_part_that_the_autoscaler_scales_is_not_scaled(api: FakeApi, tmp_path: Path) -> None:
    manifest = clusters.cluster(1, **{"md-0": 2, "md-1": 3})
    [entry, _] = manifest["spec"]["topology"]["workers"]["machineDeployments"]
    del entry["replicas"]
    entry["metadata"] = {"annotations": {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "5"}}
    blue = instantiated(api, tmp_path, manifest, levels={"default": 3})
    assert counts(api) == {"controlPlane": 3, "md-0": None, "md-1": 3}
    with pytest.raises(sol_ex.SolException, match=r"md-0\. Its count cannot be scaled: the cluster autoscaler"):
        scale(blue, "web")
