# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr init` of a kustomization, and what Helm keeps when a release is deleted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.cli.onboarding import onboard
from tests.cli.test_init import manifests, written
from tests.cli.tool import Tool
from tests.instance import claim, config_map, deployment

PROGRAM = """#!/bin/sh
[ "$*" = "{arguments}" ] || {{ echo "unknown: $*" >&2; exit 1; }}
cat "{output}"
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: str, output: Path) -> None:
    """A program in the only folder of PATH besides those of a shell, which prints `output` for these arguments alone."""
    folder.mkdir()
    program = folder / name
    program.write_text(PROGRAM.format(arguments=arguments, output=output))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    for needed in ("cat", "sh"):
        (folder / needed).symlink_to(Path("/bin", needed))
    monkeypatch.setitem(os.environ, "PATH", str(folder))


@pytest.mark.parametrize(("name", "command"), [("kubectl", "kustomize {}"), ("kustomize", "build {}")])
def test_a_kustomization_is_rendered_by_what_is_installed(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str
) -> None:
    source = tmp_path / "overlay"
    source.mkdir()
    (source / "kustomization.yaml").write_text("resources: [../base]\n")
    rendered = written(tmp_path / "rendered.yaml", deployment("blue-web"), config_map("blue-settings"))
    install(tmp_path / "bin", monkeypatch, name, command.format(source), rendered)
    tool.run("init", str(tmp_path / "p"), "--from", str(source))
    assert [one["metadata"]["name"] for one in manifests(tmp_path / "p")] == ["blue-web", "blue-settings"]
    tool.run("package", str(tmp_path / "p"), "-o", str(tmp_path / "p.csar"))
    assert onboard(tmp_path / "p.csar", tmp_path)[0]["product_name"] == "p"


def test_what_helm_keeps_a_terminate_keeps(tool: Tool, tmp_path: Path) -> None:
    kept = claim("data")
    kept["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep", "other": "x"}
    source = written(tmp_path / "all.yaml", kept, config_map("a"))
    shown = tool.run("init", str(tmp_path / "p"), "--from", str(source)).stdout
    [one, other] = manifests(tmp_path / "p")
    assert one["metadata"]["annotations"] == {"other": "x", "k8s-cr-driver/keep": "true"}
    assert "annotations" not in other["metadata"]
    assert "helm.sh/resource-policy: keep" in shown
