# SPDX-License-Identifier: Apache-2.0
"""`validate` of a package whose cluster has persistent volumes, with a request for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.cluster_requests import PARAMETER, judged, of_tutorial
from tests.cli.tool import Tool

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = Path(shutil.copytree(ROOT / "sample_packages" / "persistent_volumes", tmp_path / "package"))
    (found / "Files" / "network.yaml").write_text("")
    return found


def test_the_request_of_the_tutorial_fits_the_sample_whose_cluster_has_one_master(tool: Tool, folder: Path) -> None:
    assert judged(tool, folder, of_tutorial("persistent_volumes")) == ([], [])


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
    given = of_tutorial("persistent_volumes")
    given[section][field] = value
    [one], _ = judged(tool, folder, given, code=1)
    assert f"{PARAMETER}.{problem}" in one


def test_a_volume_and_a_manifest_that_are_not_there_are_reported(tool: Tool, folder: Path) -> None:
    given = of_tutorial("persistent_volumes")
    given["storage_server"]["cinder_volume_setup_params"][0]["volume_resource_id"] = "data"
    given["pv_registration_params"][0]["pv_manifest_file_path"] = "Files/volumes/none.yaml"
    problems, _ = judged(tool, folder, given, code=1)
    assert any("storage_server: data is no resource of a template" in one for one in problems)
    assert any("Files/volumes/none.yaml is not in the package" in one for one in problems)
    assert len(problems) == 2
