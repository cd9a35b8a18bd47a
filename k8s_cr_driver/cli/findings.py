# SPDX-License-Identifier: Apache-2.0
"""What is found in a package: sentences, each with a code and its place, and how commands show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click

from k8s_cr_driver.cli.explain import CODES
from k8s_cr_driver.cli.output import counted, echo, print_json
from k8s_cr_driver.cli.package_scripts import Script
from k8s_cr_driver.package.places import NOWHERE, Place
from k8s_cr_driver.redaction import Lines, one_line, redact

ERROR, WARNING = "error", "warning"
FORMATS = ("text", "json", "github", "sarif")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_NUMBERS = re.compile(r"\[[0-9]+\]")


@dataclass(frozen=True)
class Finding:
    """One sentence; `text` has what is wrong, where, and the remedy."""

    severity: str
    code: str
    text: str
    place: Place = NOWHERE

    @property
    def message(self) -> str:
        return self.text.partition("; ")[0]

    @property
    def remedy(self) -> str:
        """What follows the message; "" if that says it already."""
        return self.text.partition("; ")[2]

    def as_json(self) -> dict[str, Any]:
        said = {"message": redact(self.message), "remedy": redact(self.remedy)}
        return {"severity": self.severity, "code": self.code, **said, **self.place._asdict()}


@dataclass
class Findings:
    """The errors of a package and the warnings for its author, each once; and its scripts."""

    found: dict[tuple[str, str], Finding] = field(default_factory=dict)
    scripts: list[Script] = field(default_factory=list)

    def add(self, code: str, texts: Iterable[str], severity: str = ERROR) -> None:
        for text in texts:
            # An error of several findings has a title, and one on each line.
            for one in text.splitlines()[1:] if isinstance(text, Lines) and "\n" in text else [text]:
                self.found.setdefault((severity, one), Finding(severity, code, one))

    def warn(self, code: str, texts: Iterable[str]) -> None:
        self.add(code, texts, WARNING)

    @property
    def problems(self) -> list[str]:
        return [one.text for one in self.found.values() if one.severity == ERROR]

    @property
    def warnings(self) -> list[str]:
        return [one.text for one in self.found.values() if one.severity == WARNING]

    def place(self, places: Any, order: Sequence[str]) -> None:
        """Gives each its place and puts them in the order of the files; `places` has a method `of`, text -> Place."""
        placed = [replace(one, place=places.of(one.text)) for one in self.found.values()]
        rank = {name: index for index, name in enumerate(order)}
        placed.sort(key=lambda one: (rank.get(one.place.file, len(rank)), one.place.file, one.place.line, one.place.column))
        self.found = {(one.severity, one.text): one for one in placed}

    def show(self) -> None:
        """As text: notes, errors, warnings. Equal ones of several objects are one line."""
        for script in self.scripts:
            echo(f"note: {script}")
        for severity, colour in ((ERROR, "red"), (WARNING, "yellow")):
            groups: dict[tuple[str, str], list[Finding]] = {}
            for one in self.found.values():
                if one.severity == severity:
                    groups.setdefault((one.code, _common(one)), []).append(one)
            for first, *others in groups.values():
                more = f" (and {counted(len(others), 'other place')})" if others else ""
                where = f" {first.place}" if first.place.file else ""
                click.echo(f"{click.style(severity, fg=colour)}: {redact(first.text)}{more} [{first.code}]{one_line(where)}")

    def print(self, output: str, package: str) -> None:
        """In one of `FORMATS`; `package` is what was checked."""
        if output == "json":
            texts = {"problems": list(map(redact, self.problems)), "warnings": list(map(redact, self.warnings))}
            found = [one.as_json() for one in self.found.values()]
            print_json({**texts, "findings": found, "scripts": [script.as_json() for script in self.scripts]})
        elif output == "sarif":
            print_json(_sarif(list(self.found.values())))
        elif output == "github":
            for one in self.found.values():
                click.echo(_command(one))
        else:
            self.show()
        if output not in ("json", "sarif"):
            summary = ", ".join((counted(len(self.problems), "error"), counted(len(self.warnings), "warning")))
            echo(f"{package}: {summary}", err=True)


def _common(one: Finding) -> str:
    """A finding of an object without the object, and without indexes: of several objects it is the same."""
    return _NUMBERS.sub("[]", one.text.partition(": ")[2]) if one.place.document else one.text


def _command(one: Finding) -> str:
    """A workflow command of GitHub Actions."""
    place = one.place
    values = {"file": place.file, "line": place.line, "col": place.column, "title": one.code}
    properties = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in values.items() if value)
    return f"::{one.severity} {properties}::{_escaped(redact(one.text))}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else char for char in text)


def _sarif(found: Sequence[Finding]) -> dict[str, Any]:
    rules = [
        {"id": code, "shortDescription": {"text": about.title}, "help": {"text": about.remedy}} for code, about in CODES.items()
    ]
    results = [
        {
            "ruleId": one.code,
            "level": one.severity,
            "message": {"text": redact(one.text)},
            **({"locations": [_location(one.place)]} if one.place.file else {}),
        }
        for one in found
    ]
    driver = {"name": "k8s-cr", "rules": rules}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _location(place: Place) -> dict[str, Any]:
    region = {"region": {"startLine": place.line, "startColumn": place.column or 1}} if place.line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": place.file}, **region}}
