# SPDX-License-Identifier: Apache-2.0
"""The objects of an operation while it runs: a live table on a terminal, else a line for each change of a state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.table import Table
from rich.text import Text

from k8s_cr_driver.cli.output import COLOURS, echo, is_terminal, lasting, line
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.redaction import foreign
from k8s_cr_driver.resources.health import State

PENDING = "Pending"
"""Not applied yet: it waits for others, or for its turn."""
_WORDS = {"deleting": "Deleting", "deleted": "Deleted", "left": "Released"}
_COLOURS = {**{state.value: colour for state, colour in COLOURS.items()}, "Deleting": "yellow", "Released": "cyan"}
_STANDING = {state.value for state in State} | {"Deleting"}
_SETTLED = (State.READY.value, State.SUSPENDED.value, "Deleted", "Released")
_WORST_FIRST = (State.FAILED.value, State.WAITING.value, "Deleting", PENDING, *_SETTLED)
_SHORT = {"CustomResourceDefinition": "CRD"}
_ECHO = 2
"""Columns that are left to the `^C` that a terminal writes: on another line it would move the table."""
_BESIDE = 3
"""Lines of the screen that are not for objects."""


@dataclass(frozen=True)
class Row:
    """The state of an object, why it is not ready, and when it has entered the state (time.monotonic())."""

    key: ObjectKey
    state: str
    why: str
    since: float


def chosen(rows: Sequence[Row], limit: int) -> list[Row]:
    """At most `limit` rows in their order; of more those that are not ready come first, then those that have changed last."""
    if len(rows) <= limit:
        return list(rows)
    worst = sorted(rows, key=lambda row: (_WORST_FIRST.index(row.state), -row.since))[:limit]
    return [row for row in rows if row in worst]


@dataclass
class Board:
    """`progress` is the engine's; the thread that draws the table reads a copy."""

    _rows: dict[ObjectKey, Row] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _is_live: bool = False

    def expect(self, keys: Iterable[ObjectKey]) -> None:
        """These are to be applied, in this order."""
        for key in keys:
            self._rows[key] = Row(key, PENDING, "", time.monotonic())

    def progress(self, key: ObjectKey, state: str, message: str) -> None:
        """The object has entered a state, or has another message in it."""
        state = _WORDS.get(state, state)
        why = "" if state in (State.READY.value, "Deleted") else line(foreign(message))
        before = self._rows.get(key)
        entered = before is None or before.state != state
        since = time.monotonic() if before is None or entered else before.since
        self._rows[key] = Row(key, state, why, since)
        if entered and not self._is_live:
            echo(f"{since - self._began:6.1f} s  {state:<9} {key}" + (f": {why}" if why else ""))

    def forget(self) -> None:
        """Nothing of the operation stands any more."""
        self._rows.clear()

    def counts(self) -> Counter[str]:
        """The objects by their states."""
        return Counter(row.state for row in list(self._rows.values()))

    @property
    def standing(self) -> int:
        """How many objects were applied, and not deleted."""
        return sum(count for state, count in self.counts().items() if state in _STANDING)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """A table while this lasts, which stays with all objects at the end; nothing where the output is no terminal."""
        if not is_terminal():
            yield
            return
        self._is_live, console = True, Console()

        def drawn(limit: int | None) -> RenderableType:
            return Constrain(self._drawn(limit), console.width - _ECHO)

        live = Live(console=console, vertical_overflow="crop", get_renderable=lambda: drawn(console.height - _BESIDE))
        with live:
            try:
                yield
            finally:
                self._is_live = False
                live.get_renderable = lambda: drawn(None)  # type: ignore[method-assign]

    def _drawn(self, limit: int | None) -> RenderableType:
        """A line for each of at most `limit` objects, else all objects with all that is known of them."""
        rows, now = list(self._rows.values()), time.monotonic()
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("kind", no_wrap=True)
        table.add_column("name", overflow="fold")
        table.add_column("state", no_wrap=True)
        table.add_column("since", no_wrap=True, justify="right")
        table.add_column("why")
        shown = rows if limit is None else chosen(rows, max(1, limit))
        how: dict[str, Any] = {} if limit is None else {"no_wrap": True, "overflow": "ellipsis"}
        for row in shown:
            table.add_row(
                _SHORT.get(row.key.kind, row.key.kind),
                Text(line(f"{row.key.namespace}/{row.key.name}" if row.key.namespace else row.key.name), **how),
                Text(row.state, _COLOURS.get(row.state, "")),
                lasting(now - row.since),
                Text(row.why, **how),
            )
        if len(shown) == len(rows):
            return table
        others = Counter(row.state for row in rows if row not in shown)
        return Group(table, Text("and " + ", ".join(f"{count} more {state}" for state, count in sorted(others.items())), "dim"))
