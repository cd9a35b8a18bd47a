# SPDX-License-Identifier: Apache-2.0
"""The documents for package authors: the package that one shows whole is right, and their commands print what they show."""

from __future__ import annotations

import re
import shutil
import textwrap
from pathlib import Path

import pytest
from toscaparser.tosca_template import ToscaTemplate

from tests.cli.tool import Tool

TUTORIAL = Path(__file__).parents[2] / "doc" / "source" / "tutorial"
SMALLEST = (TUTORIAL / "smallest.rst").read_text()
CAPTION = re.compile(r"\.\. code-block:: yaml\n   :caption: (\S+)\n\n((?:   .*\n|\n)+)")
COMMAND = re.compile(r"   \$ k8s-cr (.+)\n((?:   (?!\$).+\n)*)")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the packages that the documents have their reader write."""
    for name, text in CAPTION.findall(SMALLEST):
        path = tmp_path / "smallest" / name
        path.parent.mkdir(parents=True)
        path.write_text(textwrap.dedent(text))
    shutil.copytree(TUTORIAL / "package", tmp_path / "crontab")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_smallest_package_fits_the_types_of_sol001(tool: Tool, home: Path) -> None:
    assert {path.name for path in home.glob("smallest/*/*")} >= {"TOSCA.meta", "vnfd.yaml"}
    tool.run("package", "smallest", "-o", "smallest.csar")
    shutil.unpack_archive("smallest.csar", "unpacked", "zip")
    ToscaTemplate(str(home / "unpacked/Definitions/vnfd.yaml"))


@pytest.mark.parametrize("document", ["smallest", "index"])
def test_the_commands_of_a_tutorial_print_what_it_shows(tool: Tool, home: Path, document: str) -> None:
    commands = COMMAND.findall((TUTORIAL / f"{document}.rst").read_text())
    assert len(commands) > 1
    for command, shown in commands:
        code = 1 if command.startswith("diff") else 0
        assert tool.run(*command.split(), code=code).output == textwrap.dedent(shown)
