# SPDX-License-Identifier: Apache-2.0
"""Which scripts of a package may run on the conductor, and their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.package import scripts

PYTHON = "tosca.artifacts.Implementation.Python"


def definitions(artifacts: dict[Any, Any], **operations: Any) -> list[dict[str, Any]]:
    node = {"artifacts": artifacts, "interfaces": {"Vnflcm": operations}}
    return [{"tosca_definitions_version": "any"}, {"topology_template": {"node_templates": {"VNF": node}}}]


@pytest.mark.parametrize(
    ("artifacts", "operations", "found"),
    [
        ({"a": {"type": PYTHON, "file": "../Scripts/a.py"}}, {}, {"Scripts/a.py": []}),
        (
            {"a": {"type": PYTHON, "file": "../Scripts/a.py"}},
            {"heal_end": {"implementation": "a"}, "scale_end": {"implementation": "b"}, "scale_start": []},
            {"Scripts/a.py": ["heal_end"]},
        ),
        ({1: {"type": PYTHON, "file": "a.py"}}, {"heal_end": {"implementation": 1}}, {"Definitions/a.py": ["heal_end"]}),
        ({"a": {"type": PYTHON, "file": "../../x.py"}}, {}, {"../x.py": []}),
        ({"b": {"type": PYTHON, "file": "/x.py"}}, {}, {"/x.py": []}),
        ({"a": {"type": "tosca.artifacts.Implementation.Bash", "file": "../a.sh"}}, {}, {"a.sh": []}),
        ({"a": {"type": "tosca.artifacts.nfv.SwImage", "file": "../a.img"}}, {}, {}),
        ({"b": {"type": PYTHON, "file": 1}, "c": "x"}, {}, {}),
    ],
)
def test_each_script_that_an_artifact_names_is_found(
    artifacts: dict[Any, Any], operations: dict[str, Any], found: dict[str, list[str]]
) -> None:
    assert scripts.named(definitions(artifacts, **operations)) == found


def test_what_a_script_can_import_of_its_package_counts_as_one(tmp_path: Path) -> None:
    names = ("Scripts/a.py", "Scripts/json.py", "Scripts/k8s_cr_driver/lcm/hook.py", "Scripts/__pycache__/b.cpython-311.pyc")
    for name in (*names, "Scripts/c.abi3.so", "Scripts/a.yaml", "Files/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    found = scripts.programs(tmp_path, ["Scripts/a.py"])
    assert found == {name: hashlib.sha256(name.encode()).hexdigest() for name in (*names, "Scripts/c.abi3.so")}


@pytest.mark.parametrize("path", ["../x.py", "/etc/passwd", "Scripts", "Scripts/none.py", "a\0b", "a" * 5000])
def test_what_is_no_file_of_the_package_has_no_digest(tmp_path: Path, path: str) -> None:
    (tmp_path / "package" / "Scripts").mkdir(parents=True)
    (tmp_path / "x.py").write_text("")
    assert scripts.programs(tmp_path / "package", [path]) == {path: ""}


def test_the_scripts_of_packages_that_were_onboarded_stay_this_projects_own() -> None:
    """A script whose text changes leaves its former digest in `digests`."""
    assert "c5cc21df7deb7ddafe459e0162178e7cc859ce7be115a8fac71ec0a2fa6e1106" in scripts.digests()
    assert scripts.digests() >= {hashlib.sha256(scripts.text(name).encode()).hexdigest() for name in scripts.OWN}
