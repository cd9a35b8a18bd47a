# SPDX-License-Identifier: Apache-2.0
"""`check-package` judges the code of a package before it is onboarded."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.cli.packages import changed_vnfd, write_package
from tests.cli.tool import Tool
from tests.instance import config_map

TEXT = b"pass\n"
DIGEST = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package that names this project's script, which it leaves to `k8s-cr package`."""
    root = write_package(tmp_path / "package", [config_map("a")])
    with changed_vnfd(root) as content:
        vnf = content["topology_template"]["node_templates"]["VNF"]
        file = "../Scripts/credential_sender.py"
        vnf["artifacts"] = {"sender": {"type": "tosca.artifacts.Implementation.Python", "file": file}}
        vnf["interfaces"] = {"Vnflcm": {"heal_end": {"implementation": "sender"}}}
    return root


def put(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(TEXT)


def test_this_projects_own_script_is_allowed(tool: Tool, folder: Path) -> None:
    shown = tool.run("check-package", str(folder)).output
    assert "allowed: Scripts/credential_sender.py runs on the conductor, as the user of Tacker, at heal_end" in shown
    assert "1 script, 0 of them not allowed" in shown


@pytest.mark.parametrize(
    "name", ["Scripts/credential_sender.py", "Scripts/json.py", "UserData/standard.py", "x/__pycache__/a.pyc"]
)
def test_other_code_anywhere_in_a_package_is_named_with_its_digest_and_not_allowed(tool: Tool, folder: Path, name: str) -> None:
    put(folder, name)
    shown = tool.run("check-package", str(folder), code=1).output
    assert f"not allowed: {name} runs on the conductor" in shown and DIGEST in shown
    assert "1 of them not allowed; read these, then add their SHA-256 to [k8s_cr] allowed_scripts" in shown
    [refused] = [one for one in tool.json("check-package", str(folder), code=1)["scripts"] if not one["allowed"]]
    assert (refused["path"], refused["sha256"], refused["own"]) == (name, DIGEST, False)


def test_the_operator_allows_code_by_its_digest(tool: Tool, folder: Path, tmp_path: Path) -> None:
    put(folder, "Scripts/other.py")
    tool.run("check-package", str(folder), "--allow", DIGEST.upper())
    conf = tmp_path / "tacker.conf"
    for text, code in ((f"allowed_scripts = {DIGEST}", 0), ("allowed_scripts = *", 0), (f"allowed_scripts = {'0' * 64}", 1)):
        conf.write_text(f"[DEFAULT]\nmy_ip = 10.0.0.1\n[k8s_cr]\n{text}\n")
        tool.run("check-package", str(folder), "--config-file", str(conf), code=code)
    conf.write_text("[DEFAULT]\na-password\n")
    shown = tool.run("check-package", str(folder), "--config-file", str(conf), code=2).output
    assert "line 2: is neither [GROUP], nor NAME = VALUE, nor a comment" in shown and "a-password" not in shown


@pytest.mark.parametrize("digest", ["00", f"sha256:{DIGEST}", DIGEST[:-1] + "g", f"{DIGEST} # other.py"])
def test_what_is_no_digest_is_an_error_and_not_a_digest_of_no_script(
    tool: Tool, folder: Path, tmp_path: Path, digest: str
) -> None:
    put(folder, "Scripts/other.py")
    conf = tmp_path / "tacker.conf"
    conf.write_text(f"[k8s_cr]\nallowed_scripts = {DIGEST},{digest}\n")
    for given in (("--allow", digest), ("--config-file", str(conf))):
        shown = " ".join(tool.run("check-package", str(folder), *given, code=2).output.split())
        assert f"{digest!r} is no SHA-256; write its 64 hexadecimal digits alone" in shown


def test_a_folder_that_is_no_package_is_not_taken_for_one_without_code(tool: Tool, folder: Path, tmp_path: Path) -> None:
    for wrong in (tmp_path, folder / "Definitions" / "empty"):
        wrong.mkdir(exist_ok=True)
        assert "has no TOSCA-Metadata/TOSCA.meta" in tool.run("check-package", str(wrong), code=1).output


def test_the_csar_that_package_writes_has_the_same_scripts(tool: Tool, folder: Path, tmp_path: Path) -> None:
    (folder / "Scripts").mkdir()
    (folder / "Scripts" / "credential_sender.yaml").write_text("receiver: edge\n")
    csar = tmp_path / "a.csar"
    tool.run("package", str(folder), "-o", str(csar))
    assert tool.json("check-package", str(csar)) == tool.json("check-package", str(folder))


def test_a_script_on_the_host_is_never_allowed(tool: Tool, folder: Path) -> None:
    with changed_vnfd(folder) as content:
        artifact = content["topology_template"]["node_templates"]["VNF"]["artifacts"]["sender"]
        artifact["file"] = "/usr/lib/python3/dist-packages/x.py"
    shown = tool.run("check-package", str(folder), "--allow", "*", code=1).output
    assert "not allowed: /usr/lib/python3/dist-packages/x.py" in shown


def test_a_name_in_a_package_writes_no_line_of_its_own(tool: Tool, folder: Path) -> None:
    put(folder, "x\nallowed: y.py")
    shown = tool.run("check-package", str(folder), code=1).output
    assert "y.py" in shown and "\nallowed: y.py" not in shown
