# SPDX-License-Identifier: Apache-2.0
"""What a package is made of, and what was chosen for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from k8s_cr_driver.objects.keys import Object

NAMED = 3
"""Things that one sentence names."""


class Choice(NamedTuple):
    """One line of the table: of an object or a name, what was chosen, and why."""

    subject: str
    choice: str
    why: str


def enumerated(things: Sequence[object]) -> str:
    """`a, b`; of many things the first ones and the number of the others: `a, b, c and 1,497 more`."""
    shown = ", ".join(map(str, things[:NAMED]))
    return shown if len(things) <= NAMED else f"{shown} and {len(things) - NAMED:,} more"


@dataclass(frozen=True)
class Product:
    """What the VNFD says of the VNF; `name` is a DNS label."""

    name: str
    version: str = "1.0"
    software_version: str = "1.0"
    provider: str = "unknown"
    description: str = ""


@dataclass(frozen=True)
class ManifestFile:
    """A file of manifests: its name below Files/kubernetes, its text, and the objects that this has."""

    name: str
    text: str
    objects: Sequence[Object]
    is_rules: bool = False
    """Whether it has readiness rules for kinds, and no objects."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the package; `type` is one of TOSCA's. One that is not `required` has defaults in its references."""

    name: str
    type: str
    default: Any
    description: str = ""
    required: bool = True

    @property
    def must_be_given(self) -> bool:
        return self.required and self.default is None


@dataclass(frozen=True)
class Vdu:
    """An object that is a VDU; `name` is that of its object, `count` how many replicas it has at first.

    `count` is None where a parameter sets it. Without `aspect` the VDU cannot be scaled. A step has `delta` replicas,
    level 0 has `least`.
    """

    id: str
    name: str
    description: str
    count: int | None = None
    aspect: bool = False
    least: int = 1
    delta: int = 1

    @property
    def level(self) -> int:
        """The scale level at first."""
        return 0 if self.count is None else (self.count - self.least) // self.delta


@dataclass(frozen=True)
class Scaffold:
    """The files of a package by their paths in it, and the choices."""

    files: Mapping[str, str]
    choices: Sequence[Choice] = field(default=())
