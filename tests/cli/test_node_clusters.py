# SPDX-License-Identifier: Apache-2.0
"""`validate` of packages whose servers become a cluster: what would fail at the instantiate, or much later."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.cluster_requests import PARAMETER, all_of_tutorial, judged
from tests.cli.tool import Tool

SAMPLE = Path(__file__).parents[2] / "sample_packages" / "ha_masters"
VNFD, TOP, MASTER = "Definitions/ha_masters.yaml", "BaseHOT/simple/ha_masters.yaml", "BaseHOT/simple/nested/masterNode.yaml"
GROUP = {"username": "ubuntu"}
REQUEST: dict[str, Any] = {
    "script_path": "Scripts/install.sh",
    "master_node": {**GROUP, "vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", "cluster_cp_name": "vip_CP"},
    "worker_node": {**GROUP, "vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "package"))


def change(folder: Path, name: str, how: Callable[[Any], object]) -> None:
    content = yaml.safe_load((folder / name).read_text())
    how(content)
    (folder / name).write_text(yaml.safe_dump(content))


def policy(content: Any, name: str) -> Any:
    return next(one[name] for one in content["topology_template"]["policies"] if name in one)


def test_the_sample_and_a_request_for_it_have_no_mistake(tool: Tool, folder: Path) -> None:
    assert judged(tool, folder) == ([], [])
    assert judged(tool, folder, REQUEST) == ([], [])


OPERATIONS = ("topology_template", "node_templates", "VNF", "interfaces", "Vnflcm")


def operations(content: Any) -> Any:
    for step in OPERATIONS:
        content = content[step]
    return content


@pytest.mark.parametrize(
    ("file", "how", "problem"),
    [
        (VNFD, lambda c: operations(c).update(heal={"implementation": "ha-masters"}), "heal names ha_masters, which has"),
        (
            VNFD,
            lambda c: policy(c, "master_initial")["properties"]["initial_delta"].update(number_of_instances=2),
            "policy master_initial: masterNode has 2 masters; etcd needs an odd number, at least 3",
        ),
        (
            VNFD,
            lambda c: policy(c, "master_levels")["properties"]["levels"]["level_1"].update(number_of_instances=1),
            "policy master_levels: masterNode has 1 masters",
        ),
        (
            VNFD,
            lambda c: policy(c, "worker_deltas")["targets"].append("masterNode"),
            "policy worker_deltas: adds an odd number of masters to masterNode",
        ),
        (
            MASTER,
            lambda c: c["resources"]["masterNode_CP1"]["properties"].pop("allowed_address_pairs"),
            "no port of a VDU has allowed_address_pairs; the masters' port needs the address of the virtual IP there",
        ),
        (
            TOP,
            lambda c: c["resources"]["masterNode"]["properties"].update(virtual_ip={"get_attr": ["nodes", "name"]}),
            "VDU masterNode: no allowed_address_pairs of its port has the address of a port of the top template",
        ),
        (TOP, lambda c: c.clear(), "Flavour simple: BaseHOT/simple: has no template of Heat"),
        (
            VNFD,
            lambda c: c["node_types"]["sample.ha_masters.VNF"]["interfaces"]["Vnflcm"].pop("scale_rollback_start"),
            "scale_rollback_start",
        ),
        (
            VNFD,
            lambda c: [one["virtual_link_external_masters"].pop("occurrences") for one in requirements(c)[:1]],
            'Relationship "virtual_link_external_masters" in template "VNF" has a wrong number of occurrences',
        ),
    ],
)
def test_a_mistake_that_an_instantiate_would_show_is_one_of_the_package(
    tool: Tool, folder: Path, file: str, how: Callable[[Any], object], problem: str
) -> None:
    change(folder, file, how)
    problems, _ = judged(tool, folder, code=1)
    assert any(problem in one for one in problems), problems


def requirements(content: Any) -> Any:
    return content["node_types"]["sample.ha_masters.VNF"]["requirements"]


def test_an_operation_that_does_not_name_the_driver_is_reported_with_what_follows(tool: Tool, folder: Path) -> None:
    change(folder, VNFD, lambda c: operations(c).pop("heal_start"))
    expected = "Flavour simple: heal_start does not name ha_masters, so a master is replaced while etcd counts on it"
    assert judged(tool, folder) == ([], [expected])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"master_node": {"vdu_id": "masterNod"}}, ".master_node.vdu_id: masterNod is no VDU; did you mean masterNode?"),
        ({"worker_node": {"ssh_cp_name": "workerNode_CP"}}, ".worker_node: workerNode_CP is no resource of the template of"),
        ({"master_node": {"cluster_cp_name": "vip"}}, ".master_node: vip is no resource of the top template"),
        ({"master_node": {"username": "a;b"}}, ".master_node.username: must be the name of a user"),
        ({"script_path": "Scripts/instal.sh"}, "Scripts/instal.sh is not in the package"),
    ],
)
def test_a_request_is_checked_with_the_package(tool: Tool, folder: Path, changes: dict[str, Any], problem: str) -> None:
    request = {key: {**value, **changes.get(key, {})} if isinstance(value, dict) else changes.get(key, value)
               for key, value in REQUEST.items()}  # fmt: skip
    problems, _ = judged(tool, folder, request, code=1)
    assert len(problems) == 1 and problem in problems[0], problems


def test_a_request_that_is_no_json_is_a_mistake(tool: Tool, folder: Path) -> None:
    file = folder.parent / "request.json"
    file.write_text("flavourId: simple\n")
    assert "cannot be read as JSON" in tool.run("validate", str(folder), "--request", str(file), code=1).output


def test_the_request_of_the_tutorial_fits_the_sample(tool: Tool, folder: Path) -> None:
    request, repeated = all_of_tutorial("ha_masters")
    (folder / "Files").mkdir()
    (folder / "Files" / "network.yaml").write_text("")
    assert judged(tool, folder, request["additionalParams"][PARAMETER]) == ([], [])
    assert repeated["additionalParams"].items() <= request["additionalParams"].items()
