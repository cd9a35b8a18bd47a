# SPDX-License-Identifier: Apache-2.0
"""`validate` of a package whose cluster kubespray makes, with a request for it."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tool import Tool

ROOT = Path(__file__).parents[2]
PARAMETER = "k8s_cluster_installation_param"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "sample_packages" / "kubespray", tmp_path / "package"))


def parameter() -> Any:
    """That of the tutorial's request."""
    tutorial = (ROOT / "doc" / "source" / "tutorial" / "kubespray.rst").read_text()
    blocks = re.findall(r"code-block:: json\n\n((?:   .*\n|\n)+)", tutorial)
    return json.loads(textwrap.dedent(blocks[0]))["additionalParams"][PARAMETER]


def found(tool: Tool, folder: Path, given: Any, code: int = 0) -> tuple[list[str], list[str]]:
    file = folder.parent / "request.json"
    file.write_text(json.dumps({"additionalParams": {PARAMETER: given}}))
    said = tool.json("validate", str(folder), "--request", str(file), code=code)
    return said["problems"], said["warnings"]


def test_the_request_of_the_tutorial_fits_the_sample(tool: Tool, folder: Path) -> None:
    assert found(tool, folder, parameter()) == ([], [])


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
    given = parameter()
    given[section][field] = value
    problems, _ = found(tool, folder, given, code=1)
    assert any(problem in one for one in problems), problems
