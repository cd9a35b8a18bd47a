# SPDX-License-Identifier: Apache-2.0
"""The documents for package authors: the package that one shows whole is right, and their commands print what they show."""

from __future__ import annotations

import re
import shutil
import textwrap
from pathlib import Path

import pytest
from toscaparser.tosca_template import ToscaTemplate

from tests.cli import recordings
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
    monkeypatch.chdir(tmp_path)
    recordings.copy_manifests(tmp_path)
    return tmp_path


def test_the_smallest_package_fits_the_types_of_sol001(tool: Tool, home: Path) -> None:
    assert {path.name for path in home.glob("smallest/*/*")} >= {"TOSCA.meta", "vnfd.yaml"}
    tool.run("package", "smallest", "-o", "smallest.csar")
    shutil.unpack_archive("smallest.csar", "unpacked", "zip")
    ToscaTemplate(str(home / "unpacked/Definitions/vnfd.yaml"))


@pytest.mark.parametrize(("document", "before"), [("smallest", ""), ("index", recordings.COMMANDS["init"])])
def test_the_commands_of_a_tutorial_print_what_it_shows(tool: Tool, home: Path, document: str, before: str) -> None:
    if before:
        tool.run(*before.split())
    commands = COMMAND.findall((TUTORIAL / f"{document}.rst").read_text())
    assert commands
    for command, shown in commands:
        code = 1 if command.startswith("diff") else 0
        assert tool.run(*command.split(), code=code).output == textwrap.dedent(shown)


def test_a_recorded_terminal_shows_what_the_command_prints_now() -> None:
    """If not: `python -m tests.cli.recordings`."""
    kept = {path.stem: recordings.words(path.read_text()) for path in recordings.FOLDER.glob("*.svg")}
    assert kept == {file: recordings.words(svg) for file, svg in recordings.recorded()}


def test_a_recording_fetches_nothing_and_stands_in_the_documents() -> None:
    documents = "".join(path.read_text() for path in recordings.SOURCE.rglob("*.rst"))
    for path in recordings.FOLDER.glob("*.svg"):
        assert not re.search(r"url\(.?http|href", path.read_text())
        assert f"/_static/terminal/{path.name}\n   :alt: k8s-cr {recordings.COMMANDS[path.stem]}\n" in documents


def test_the_screen_is_what_a_terminal_shows_at_the_end() -> None:
    table = "one\r\ntwo\r\n" + "\r\x1b[1A\x1b[2K" * 2 + "\x1b[1mthree\x1b[0m\r\n\x1b[?25h"
    assert recordings.screen(table) == ["\x1b[1mthree\x1b[0m", "", ""]
