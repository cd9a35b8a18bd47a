# SPDX-License-Identifier: Apache-2.0
"""A package with the credential sender: what `validate` reports, what `package` adds, and that Tacker takes the fragment."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.credentials import operations
from k8s_cr_driver.package import scripts
from tests.cli.packages import changed_vnfd, write_package
from tests.cli.tool import Tool
from tests.instance import config_map

SENDER = Path(__file__).parents[2] / "mgmt" / "credential_sender"
FRAGMENT = re.search(r"```yaml\n(.*?)```", (SENDER / "README.md").read_text(), re.S)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package that follows the README."""
    root = write_package(tmp_path / "package", [config_map("a")])
    (root / "Scripts").mkdir()
    (root / "Scripts" / "credential_sender.yaml").write_text((SENDER / "credential_sender.yaml").read_text())
    fragment = yaml.safe_load(FRAGMENT)
    change(root, lambda vnf: vnf.update(fragment["topology_template"]["node_templates"]["VNF"]))
    with changed_vnfd(root) as content:
        content["node_types"]["sample.VNF"].update(fragment["node_types"]["sample.VNF"])
    return root


def change(root: Path, how: Callable[[dict[str, Any]], object]) -> None:
    with changed_vnfd(root) as content:
        how(content["topology_template"]["node_templates"]["VNF"])


def test_a_package_as_the_readme_has_it_has_no_mistake(tool: Tool, folder: Path) -> None:
    assert tool.judged(folder) == ([], [])


def test_package_adds_the_script_where_the_vnfd_names_it(tool: Tool, folder: Path, tmp_path: Path) -> None:
    tool.run("package", str(folder), "-o", str(tmp_path / "a.csar"))
    with zipfile.ZipFile(tmp_path / "a.csar") as csar:
        assert csar.read("Scripts/credential_sender.py") == (SENDER / "credential_sender.py").read_bytes()
        assert b"Scripts/credential_sender.py" in csar.read("TOSCA-Metadata/TOSCA.meta")
    tool.run("validate", str(tmp_path / "a.csar"))
    (folder / "Scripts" / "credential_sender.py").write_text("# of the author\n")
    tool.run("package", str(folder), "-o", str(tmp_path / "b.csar"))
    with zipfile.ZipFile(tmp_path / "b.csar") as csar:
        assert csar.read("Scripts/credential_sender.py") == b"# of the author\n"


def test_the_script_that_stands_in_mgmt_is_the_one_that_is_added() -> None:
    """Of each management driver of this project: adding one is its line in `scripts.OWN`."""
    folders = {path.name: path for path in SENDER.parent.iterdir() if path.is_dir()}
    assert folders.keys() == scripts.OWN.keys()
    for name, path in folders.items():
        assert (path / f"{name}.py").read_text() == scripts.text(name)


def test_validate_and_package_name_every_script_with_whose_it_is(tool: Tool, folder: Path, tmp_path: Path) -> None:
    (folder / "Scripts" / "other.py").write_text("pass\n")
    artifact = {"type": "tosca.artifacts.Implementation.Python", "file": "../Scripts/other.py"}
    change(folder, lambda vnf: vnf["artifacts"].update(other=artifact))
    change(folder, lambda vnf: vnf["interfaces"]["Vnflcm"].update(instantiate_start={"implementation": "other"}))
    digest = hashlib.sha256(b"pass\n").hexdigest()
    own, other = tool.json("validate", str(folder))["scripts"]
    assert own["path"] == "Scripts/credential_sender.py" and own["own"] and own["operations"] == sorted(operations.HANDLED)
    assert other == {"path": "Scripts/other.py", "sha256": digest, "operations": ["instantiate_start"], "own": False}
    for command in (("validate", str(folder)), ("package", str(folder), "-o", str(tmp_path / "a.csar"))):
        shown = tool.run(*command).output
        runs = "runs on the conductor, as the user of Tacker, at"
        assert f"note: Scripts/credential_sender.py {runs} " in shown
        assert f"note: Scripts/other.py {runs} instantiate_start: SHA-256 {digest}" in shown
    (folder / "Scripts" / "other.py").unlink()
    assert f"{runs} instantiate_start: not in the package" in tool.run("validate", str(folder), code=1).output


def test_a_script_with_the_name_of_this_projects_and_another_text_is_a_warning(
    tool: Tool, folder: Path, tmp_path: Path
) -> None:
    (folder / "Scripts" / "credential_sender.py").write_text("# of the author\n")
    [warning] = tool.json("validate", str(folder))["warnings"]
    assert warning.startswith("Scripts/credential_sender.py: has the name of a script of this project, but another text;")
    shown = tool.run("package", str(folder), "-o", str(tmp_path / "a.csar")).output
    assert "warning: Scripts/credential_sender.py: has the name of a script of this project" in shown


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("../../etc/x.py", "../etc/x.py: is the file of an artifact, and leads out of the package; Tacker would run a file"),
        ("/etc/x.py", "/etc/x.py: is the file of an artifact, and leads out of the package"),
        ("../Scripts/x.py", "Scripts/x.py: is the file of an artifact, and is not in the package"),
    ],
)
def test_a_script_that_is_no_file_of_the_package_is_a_mistake(tool: Tool, folder: Path, file: str, problem: str) -> None:
    artifact = {"type": "tosca.artifacts.Implementation.Python", "file": file}
    change(folder, lambda vnf: vnf["artifacts"].update(other=artifact))
    assert any(one.startswith(problem) for one in tool.json("validate", str(folder), code=1)["problems"])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("url: https://a/\nhmac-key: {file: /k}\n", "hmac-key names a file on the conductor's host, which only the operator"),
        ("url: http://a/\nhmac-key: {secret: a/b/c}\n", "Scripts/credential_sender.yaml: url must be https;"),
        ("hmac-key: {secret: a/b/c}\n", "hmac-key is in a Secret of the management cluster, which terminate_end cannot read"),
        (None, "Scripts/credential_sender.yaml: is missing; the settings of the credential sender must be there"),
    ],
)
def test_mistakes_in_the_settings_are_reported(tool: Tool, folder: Path, settings: str | None, problem: str) -> None:
    path = folder / "Scripts" / "credential_sender.yaml"
    path.unlink() if settings is None else path.write_text(settings)
    [found] = tool.judged(folder, code=1)[0]
    assert problem in found


def test_an_artifact_that_leads_into_another_folder_is_reported(tool: Tool, folder: Path) -> None:
    change(folder, lambda vnf: vnf["artifacts"]["credential-sender"].update(file="Scripts/credential_sender.py"))
    [problem] = tool.judged(folder, code=1)[0]
    assert problem == (
        "Flavour simple: the artifact of the credential sender is Definitions/Scripts/credential_sender.py; write "
        "file: ../Scripts/credential_sender.py, seen from Definitions"
    )


def test_settings_that_no_operation_reads_are_reported(tool: Tool, folder: Path) -> None:
    change(folder, lambda vnf: [vnf.pop(part) for part in ("artifacts", "interfaces")])
    [problem] = tool.judged(folder, code=1)[0]
    assert problem == (
        "Scripts/credential_sender.yaml: has no effect: the VNF must name Scripts/credential_sender.py in its artifacts and "
        "interfaces; else remove the file"
    )


def test_operations_that_it_does_not_serve_and_those_left_out_are_reported(tool: Tool, folder: Path) -> None:
    def swap(vnf: dict[str, Any]) -> None:
        operations = vnf["interfaces"]["Vnflcm"]
        operations["heal_start"] = operations.pop("terminate_end")

    change(folder, swap)
    assert tool.judged(folder, code=1) == (
        ["Flavour simple: heal_start names the credential sender, which has nothing to do there; remove it"],
        ["Flavour simple: terminate_end does not name the credential sender, so it is not reported to the receiver"],
    )


def test_an_operation_that_is_missing_in_the_node_type_is_reported(tool: Tool, folder: Path) -> None:
    """Those that SOL001's type of the interface does not have: Tacker refuses the package when it is onboarded."""
    with changed_vnfd(folder) as content:
        del content["node_types"]["sample.VNF"]["interfaces"]["Vnflcm"]["scale_rollback_end"]
    [problem] = tool.judged(folder, code=1)[0]
    assert problem.startswith("Tacker's TOSCA parser refuses the package: UnknownFieldError: ")
    assert "scale_rollback_end" in problem


def test_the_fragment_of_the_readme_names_all_operations() -> None:
    found = scripts.operations(yaml.safe_load(FRAGMENT)["topology_template"])
    assert set(found.values()) == {"Scripts/credential_sender.py"} and found.keys() == set(operations.HANDLED)
