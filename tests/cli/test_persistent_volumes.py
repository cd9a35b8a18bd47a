# SPDX-License-Identifier: Apache-2.0
"""`validate` of a package whose cluster has persistent volumes, with a request for it."""

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
    found = Path(shutil.copytree(ROOT / "sample_packages" / "persistent_volumes", tmp_path / "package"))
    (found / "Files" / "network.yaml").write_text("")
    return found


def parameter() -> Any:
    """That of the tutorial's request."""
    tutorial = (ROOT / "doc" / "source" / "tutorial" / "persistent_volumes.rst").read_text()
    blocks = re.findall(r"code-block:: json\n\n((?:   .*\n|\n)+)", tutorial)
    return json.loads(textwrap.dedent(blocks[0]))["additionalParams"][PARAMETER]


def found(tool: Tool, folder: Path, given: Any, code: int = 0) -> tuple[list[str], list[str]]:
    file = folder.parent / "request.json"
    file.write_text(json.dumps({"additionalParams": {PARAMETER: given}}))
    said = tool.json("validate", str(folder), "--request", str(file), code=code)
    return said["problems"], said["warnings"]


def test_the_request_of_the_tutorial_fits_the_sample_whose_cluster_has_one_master(tool: Tool, folder: Path) -> None:
    assert found(tool, folder, parameter()) == ([], [])


@pytest.mark.parametrize(
    ("section", "field", "value", "problem"),
    [
        ("storage_server", "ssh_cp_name", "storageServer_CP", "storage_server: storageServer_CP is no resource of a template"),
        ("master_node", "cluster_cp_name", "master_CP1", "master_node: master_CP1 is no resource of the top template"),
    ],
)
def test_a_name_that_no_template_has_is_reported(
    tool: Tool, folder: Path, section: str, field: str, value: str, problem: str
) -> None:
    given = parameter()
    given[section][field] = value
    [one], _ = found(tool, folder, given, code=1)
    assert f"{PARAMETER}.{problem}" in one


def test_a_volume_and_a_manifest_that_are_not_there_are_reported(tool: Tool, folder: Path) -> None:
    given = parameter()
    given["storage_server"]["cinder_volume_setup_params"][0]["volume_resource_id"] = "data"
    given["pv_registration_params"][0]["pv_manifest_file_path"] = "Files/volumes/none.yaml"
    problems, _ = found(tool, folder, given, code=1)
    assert any("storage_server: data is no resource of a template" in one for one in problems)
    assert any("Files/volumes/none.yaml is not in the package" in one for one in problems)
    assert len(problems) == 2
