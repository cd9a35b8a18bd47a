# SPDX-License-Identifier: Apache-2.0
"""What Tacker's own functional tests, its management drivers, and an operator who goes back to its driver rely on."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.fake_api import FakeApi
from tests.instance import BLUE, config_map
from tests.lcm.instance import Instance
from tests.lcm.web import deployment


def test_the_stored_objects_of_vdus_carry_the_label_by_which_tackers_driver_knows_its_own(
    cluster: FakeApi, tmp_path: Path
) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)])
    blue.instantiate()
    for change in (lambda: None, lambda: blue.scale("SCALE_OUT")):
        change()
        stored = blue.inst.instantiatedVnfInfo.metadata["vdu_reses"]["Web"]
        assert stored["metadata"]["labels"]["tacker_vnf_instance_id"] == BLUE


def test_files_that_a_management_driver_has_put_in_place_of_others_are_taken(cluster: FakeApi, tmp_path: Path) -> None:
    """As container_update_mgmt_v2 does in a MODIFY of the package."""
    blue = Instance(cluster, tmp_path, [deployment(1), config_map("a")])
    blue.instantiate()
    other = "Files/kubernetes/other.yaml"
    (tmp_path / other).write_text(yaml.safe_dump_all([deployment(1), config_map("a", b="2")]))
    blue.inst.instantiatedVnfInfo.metadata["lcm-kubernetes-def-files"] = [other]
    blue.heal()
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"b": "2"}


def test_a_request_for_a_part_of_the_manifests_makes_the_vdus_that_are_in_it(cluster: FakeApi, tmp_path: Path) -> None:
    blue = Instance(cluster, tmp_path, [deployment(1)], vdus={"Web": "web", "Db": "db"})
    (tmp_path / "Files/kubernetes/db.yaml").write_text("{}")
    blue.instantiate()
    assert {one.vduId for one in blue.inst.instantiatedVnfInfo.vnfcResourceInfo} == {"Web"}
