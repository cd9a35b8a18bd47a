# SPDX-License-Identifier: Apache-2.0
"""What the management drivers of clusters on servers log, as a live view: the last steps, newest at the end."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

_MARK = " INFO k8s_cr_driver.lcm.node_clusters "


class ScriptLog:
    """The file may not be there yet."""

    place = "the last step"

    def __init__(self, file: Path) -> None:
        self._file = file

    def summary(self) -> str:
        return next((step for _, step in reversed(self._steps())), "none")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(3, (options.max_height or console.height) - 8)
        table = Table(title="Steps on the servers", title_justify="left", expand=True)
        table.add_column("operation", no_wrap=True, ratio=1)
        table.add_column("step", no_wrap=True, ratio=5)
        for row in self._steps()[-room:]:
            table.add_row(*row)
        yield table

    def _steps(self) -> list[tuple[str, str]]:
        """Operation and step of each line `TIME PID INFO LOGGER [-] INSTANCE OPERATION: STEP` of theirs."""
        found = []
        for line in self._file.read_text(errors="replace").splitlines() if self._file.exists() else ():
            head, _, step = line.partition(": ")
            if _MARK in head and step:
                found.append((head.rpartition(" ")[2], step))
        return found
