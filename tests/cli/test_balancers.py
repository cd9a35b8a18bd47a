# SPDX-License-Identifier: Apache-2.0
"""`validate` of packages whose load balancers are servers outside the masters."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sample_packages import balancers
from tests.cli.cluster_requests import judged
from tests.cli.test_node_clusters import REQUEST, SAMPLE, TOP, VNFD, change, policy
from tests.cli.tool import Tool

SECTION = {"vdu_id": "balancerNode", "ssh_cp_name": "balancerNode_CP1", "ssh_username": "ubuntu"}
OUTSIDE: dict[str, Any] = {**REQUEST, "external_lb_param": SECTION}
BALANCER = "BaseHOT/simple/nested/balancerNode.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = Path(shutil.copytree(SAMPLE, tmp_path / "package"))
    balancers.add(made)
    return made


def test_the_variant_of_the_sample_and_a_request_for_it_have_no_mistake(tool: Tool, folder: Path) -> None:
    assert judged(tool, folder) == ([], [])
    assert judged(tool, folder, OUTSIDE) == ([], [])


def count(content: Any, name: str, number: int) -> None:
    policy(content, name)["properties"]["initial_delta"].update(number_of_instances=number)


@pytest.mark.parametrize(
    ("file", "how", "problem"),
    [
        (VNFD, lambda c: count(c, "balancer_initial", 1), "policy balancer_initial: balancerNode has 1 load balancers; the"),
        (VNFD, lambda c: count(c, "master_initial", 2), "policy master_initial: masterNode has 2 masters; etcd needs an odd"),
        (
            VNFD,
            lambda c: policy(c, "worker_deltas")["targets"].append("balancerNode"),
            "policy worker_deltas: scales balancerNode; the number of load balancers stays",
        ),
        (
            BALANCER,
            lambda c: c["resources"]["balancerNode_CP1"]["properties"].pop("allowed_address_pairs"),
            "VDU balancerNode: no allowed_address_pairs of its port has the address of a port of the top template",
        ),
        (
            TOP,
            lambda c: c["resources"]["balancerNode"]["properties"].update(virtual_ip={"get_attr": ["nodes", "name"]}),
            "VDU balancerNode: no allowed_address_pairs of its port has the address of a port of the top template",
        ),
    ],
)
def test_a_mistake_of_the_package_is_found_with_the_request(
    tool: Tool, folder: Path, file: str, how: Callable[[Any], object], problem: str
) -> None:
    change(folder, file, how)
    problems, _ = judged(tool, folder, OUTSIDE, code=1)
    assert any(problem in one for one in problems), problems


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"vdu_id": "balancerNod"}, "external_lb_param.vdu_id: balancerNod is no VDU; did you mean balancerNode?"),
        ({"ssh_cp_name": "vip_CP"}, "external_lb_param: vip_CP is no resource of the template of balancerNode"),
        ({"script_path": "Scripts/balancer.sh"}, "Scripts/balancer.sh is not in the package"),
        ({"vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1"}, "external_lb_param.vdu_id: is that of worker_node"),
    ],
)
def test_a_request_is_checked_with_the_package(tool: Tool, folder: Path, changes: dict[str, str], problem: str) -> None:
    problems, _ = judged(tool, folder, {**REQUEST, "external_lb_param": {**SECTION, **changes}}, code=1)
    assert any(problem in one for one in problems), problems


def test_masters_that_balance_themselves_need_the_pair(tool: Tool, folder: Path) -> None:
    """The request does without the servers that the package has for that."""
    problems, _ = judged(tool, folder, REQUEST, code=1)
    assert problems == [
        "Flavour simple: VDU masterNode: no allowed_address_pairs of its port has the address of a port of the top template; "
        "give it that of the virtual IP"
    ]
