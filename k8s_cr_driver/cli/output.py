# SPDX-License-Identifier: Apache-2.0
"""How commands print: tables and colours on a terminal, plain columns into a pipe, JSON for programs."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import click

from k8s_cr_driver.objects.fields import similar
from k8s_cr_driver.objects.times import moment
from k8s_cr_driver.redaction import Lines, one_line, printable
from k8s_cr_driver.resources.health import State

Command = TypeVar("Command", bound=Callable[..., Any])

_CONTROL = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
COLOURS = {State.READY: "green", State.SUSPENDED: "cyan", State.WAITING: "yellow", State.FAILED: "red"}


def output_option(*others: str) -> Callable[[Command], Command]:
    """Adds -o, as `output`: text, json or one of `others`."""
    return click.option(
        "-o", "--output", type=click.Choice(["text", "json", *others]), default="text", help="The form of the output."
    )


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def counted(count: int, thing: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def hint(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` if one of `known` is like the name."""
    near = similar(name, known)
    return f"; did you mean {near}?" if near else ""


def line(text: str) -> str:
    """A text of others on one line of a terminal."""
    return printable(text.replace("\n", " "))


def echo(text: str, *, err: bool = False, colour: str | None = None) -> None:
    """Prints one line, or `Lines`, whatever the names of others in it have; in a colour where that is shown."""
    shown = text if isinstance(text, Lines) else one_line(text)
    click.echo(click.style(shown, fg=colour) if colour else shown, err=err)


def confirmed(question: str, otherwise: str) -> bool:
    """No input, as without a terminal, means no, with a hint at an option; Ctrl-C interrupts."""
    try:
        return click.confirm(question, err=True)
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError):
            raise
        click.echo(f"\nThere is nobody to ask; {otherwise}", err=True)
        return False


def ask(question: str, otherwise: str) -> None:
    """Ends the command with 1, and says what was not done, unless the answer is yes."""
    if not confirmed(question, "--yes does without"):
        click.echo(otherwise, err=True)
        raise click.exceptions.Exit(1)


def write_file(path: Path, text: str, mode: int = 0o666) -> None:
    """At once or not at all; `mode` are its permissions, as far as the umask lets them."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        created = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(created, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def print_json(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)  # which escapes only the control characters of ASCII
    click.echo(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that fits the terminal; into a pipe columns with two spaces between them, never cut."""
    rows = [[line(cell) for cell in row] for row in rows]
    if is_terminal():
        from rich.console import Console
        from rich.table import Table

        table = Table(*columns, box=None, header_style="bold", pad_edge=False)
        for row in rows:
            table.add_row(*row)
        Console().print(table, markup=False)
        return
    lines = [[column.upper() for column in columns], *rows]
    widths = [max(len(cells[index]) for cells in lines) for index in range(len(columns))]
    for cells in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def dot(nodes: Sequence[tuple[str, str, str]], edges: Sequence[tuple[str, str]]) -> str:
    """A directed graph in Graphviz's language; nodes are (id, label, colour)."""
    lines = [f"  {_quoted(id)} [label={_quoted(label)}, color={colour}];" for id, label, colour in nodes]
    lines += [f"  {_quoted(tail)} -> {_quoted(head)};" for tail, head in edges]
    return "\n".join(["digraph {", "  node [shape=box];", *lines, "}"])


def _quoted(text: str) -> str:
    """As Graphviz has it, which knows no escapes for characters by number."""
    return json.dumps(printable(text), ensure_ascii=False)


def age(since: str | None) -> str:
    """The time since an RFC 3339 time, as kubectl rounds it: 42s, 17m, 5h, 12d; "?" if it is none."""
    if not since:
        return ""
    try:
        seconds = int((datetime.now(timezone.utc) - moment(since)).total_seconds())
    except ValueError:
        return "?"
    return lasting(seconds)


def lasting(seconds: float) -> str:
    """The same of a time in seconds."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds) // length}{unit}"
    return f"{max(0, int(seconds))}s"
