# SPDX-License-Identifier: Apache-2.0
"""`validate` of a package whose cluster kubespray makes, with a request for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.cluster_requests import judged, of_tutorial
from tests.cli.tool import Tool

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "sample_packages" / "kubespray", tmp_path / "package"))


def test_the_request_of_the_tutorial_fits_the_sample(tool: Tool, folder: Path) -> None:
    assert judged(tool, folder, of_tutorial("kubespray")) == ([], [])


@pytest.mark.parametrize(
    ("section", "field", "value", "problem"),
    [
        ("external_lb_param", "ssh_cp_name", "externalLB_CP", "external_lb_param: externalLB_CP is no resource of a templ"),
        ("external_lb_param", "script_path", "Scripts/lb.sh", "Scripts/lb.sh is not in the package"),
        ("ansible", "ip_address", "0.0.0.0", "ansible.ip_address: must be the IP address of a server"),
        ("worker_node", "ssh_cp_name", "workerNode_CP9", "worker_node: workerNode_CP9 is no resource of the template of"),
    ],
)
def test_what_the_package_does_not_have_is_reported(
    tool: Tool, folder: Path, section: str, field: str, value: str, problem: str
) -> None:
    given = of_tutorial("kubespray")
    given[section][field] = value
    problems, _ = judged(tool, folder, given, code=1)
    assert any(problem in one for one in problems), problems
