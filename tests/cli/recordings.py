# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows of the tutorial's commands, as pictures of the documents.

`python -m tests.cli.recordings` records them again on the fake API server and writes those whose words have changed.
"""

from __future__ import annotations

import html
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from rich.console import Console
from rich.text import Text

from tests.cli.tool import kubeconfig
from tests.fake_api import FakeApi, controllers

SOURCE = Path(__file__).parents[2] / "doc" / "source"
FOLDER = SOURCE / "_static" / "terminal"
COLUMNS = 100
COMMANDS = {
    "init": "init crontab --from manifests",
    "run": "run crontab --instance blue",
    "diff": "diff crontab --instance blue",
    "tree": "tree blue",
}
"""File -> the command that it shows, in their order."""
_CONTROL = re.compile(r"(\r|\n|\x1b\[\d*A|\x1b\[2K|\x1b\[\?25[hl])")
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.S)
"""Which a reader's browser would fetch from elsewhere."""
_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
_TIME = re.compile(r"\b(?:\d+m)?\d+(?:\.\d+)? ?s\b|\b\d+m\b")


def copy_manifests(folder: Path) -> None:
    """The manifests that the tutorial begins with, as `manifests` in a folder."""
    shutil.copytree(SOURCE / "tutorial" / "manifests", folder / "manifests")
    shutil.copy(SOURCE / "tutorial/package/Files/kubernetes/definition.yaml", folder / "manifests")


def edit(folder: Path) -> None:
    """The change that the tutorial makes to the package."""
    path = folder / "crontab/Files/kubernetes/crontab.yaml"
    path.write_text(path.read_text().replace("0 3 * * *", "0 4 * * *"))


def recorded() -> Iterator[tuple[str, str]]:
    """Each file with its SVG."""
    with tempfile.TemporaryDirectory() as name, FakeApi() as api:
        folder = Path(name)
        copy_manifests(folder)
        controllers.run_workloads(api)
        (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig(api.url)))
        for file, command in COMMANDS.items():
            if file == "diff":
                edit(folder)
            yield file, _drawn(file, f"k8s-cr {command}", screen(_shown(folder, command.split())))


def words(svg: str) -> list[str]:
    """The lines of a recording, without what differs from one to the next: times."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in _TEXT.findall(svg):
        lines.setdefault(float(y), []).append((float(x), html.unescape(text)))
    joined = (" ".join(text for _, text in sorted(parts)) for _, parts in sorted(lines.items()))
    return [" ".join(_TIME.sub("0s", line).split()) for line in joined]


def screen(output: str) -> list[str]:
    """What a terminal shows at the end, by line: a live table is written over and over."""
    lines, row = [""], 0
    for part in _CONTROL.split(output):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and _CONTROL.fullmatch(part):
            row = max(0, row - int(part[2:-1] or 1))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not _CONTROL.fullmatch(part):
            lines[row] += part
    return lines


def _shown(folder: Path, command: list[str]) -> str:
    """What it writes to a terminal of COLUMNS columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "KUBECONFIG": "kubeconfig", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "40"}
    code = "from k8s_cr_driver.cli import main; main()"
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        cwd=folder,
        env={**environment, "PYTHONPATH": root},
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the end, on Linux
            pass
        finally:
            os.close(ours)
    return shown.decode()


def _drawn(file: str, title: str, lines: list[str]) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True)
    return _FONTS.sub("", console.export_svg(title=title, unique_id=f"terminal-{file}"))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for file, svg in recorded():
        path = FOLDER / f"{file}.svg"
        if not path.exists() or words(path.read_text()) != words(svg):
            path.write_text(svg)
            sys.stdout.write(f"Wrote {path}\n")


if __name__ == "__main__":
    main()
