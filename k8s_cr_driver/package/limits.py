# SPDX-License-Identifier: Apache-2.0
"""
How much one package may be: an author may be careless or hostile, and one conductor serves many users.

What an operator may want to raise is in `Limits`; the rest is far above every package in use (the largest known one has
46,000 values in 79 objects of 13 kinds), and bounds memory and time while a package is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import entries, field, shown, walk
from k8s_cr_driver.objects.keys import Object, key_of, kind_of, split
from k8s_cr_driver.objects.yaml_nodes import expanded

VALUES = 500_000
"""Mappings, lists and scalars in all manifests: PyYAML needs about a kilobyte for each while it reads a file."""
EXPANDED = 32 * 1024 * 1024
"""Bytes, about, of the Definitions with their aliases written out."""
DEFINITION = 4 * 1024 * 1024
"""Bytes of TOSCA.meta, and of each file in Definitions."""
BLOCKS = 10_000
"""Of TOSCA.meta: each is YAML of its own."""
PATH = 4_096
"""Characters of all keys that lead to a value: what looks at each value makes its path. Those in use have about a thousand."""
FILLED = 32 * 1024 * 1024
"""Characters that the values of parameters may add to the manifests."""
DECLARATIONS = 100_000
"""Data types that are looked at for parameters, and properties in them; those that several node types use count each time."""
CONSTRAINTS = 1_000
"""Of all parameters: RE2 takes up to 10 ms and 1 MiB to compile a hundred characters of a pattern."""
STEPS = 100_000_000
"""In which the defaults in references are compared with constraints (see `parameters.steps`): some ten seconds at most."""


@dataclass(frozen=True)
class Limits:
    """The limits that options of tacker.conf set; the fields are named as these."""

    max_objects: int = 5_000
    max_kinds: int = 150
    """Each kind is watched or listed."""
    max_replicas: int = 10_000
    """Of one object: each replica may be a VNFC in the instance's record."""


class Budget:
    """What is left of a limit. `spend` raises InvalidPackage with `problem` when nothing is left."""

    def __init__(self, limit: int, problem: str) -> None:
        self._left, self._problem = limit, problem

    def spend(self, amount: int = 1) -> None:
        self._left -= amount
        if self._left < 0:
            raise InvalidPackage(self._problem)


def values() -> Budget:
    """For the values in the manifests of one package."""
    return Budget(VALUES, f"the manifests hold more than {VALUES:,} values together, the limit; make several packages of them")


def filled() -> Budget:
    """For the characters that parameters add to the manifests of one package."""
    return Budget(
        FILLED, f"the parameters add more than {FILLED // 1024**2} MiB to the manifests, the limit; use fewer or shorter ones"
    )


def declarations() -> Budget:
    """For the data types that declare the parameters of one package."""
    return Budget(
        DECLARATIONS,
        f"the Definitions derive more than {DECLARATIONS:,} data types and properties for parameters, the limit; use fewer",
    )


def constraints() -> Budget:
    """For the constraints of the parameters of one package."""
    return Budget(CONSTRAINTS, f"the parameters have more than {CONSTRAINTS:,} constraints together, the limit; use fewer")


def steps() -> Budget:
    """For the defaults in the references of one package."""
    return Budget(
        STEPS,
        "the constraints of parameters take too long for so many references with a default, as ${NAME:=text} is one; give the "
        "parameters their defaults in the VNFD, or use fewer constraints",
    )


def check_expanded(value: Any, parts: Callable[[Any], Iterable[Any]], what: str) -> None:
    """
    Raise InvalidPackage if `value` would be larger than `EXPANDED` with its aliases written out.

    `parts`: see `objects.yaml_nodes.expanded`.
    """
    try:
        size = expanded(value, parts, EXPANDED)
    except RecursionError:
        raise InvalidPackage(f"{what}: is nested too deeply") from None
    if size > EXPANDED:
        raise InvalidPackage(
            f"{what}: is larger than {EXPANDED // 1024**2} MiB with its aliases (*name) written out, or holds an alias of "
            "itself; use fewer aliases"
        )


def check_paths(value: Any, length: int = 0) -> None:
    """Raise InvalidPackage if the keys that lead to a value within `value` are longer together than `PATH`."""
    if length > PATH:
        raise InvalidPackage(f"the keys that lead to a value have more than {PATH:,} characters together; use shorter ones")
    if isinstance(value, dict):
        for key, one in value.items():
            check_paths(one, length + len(key))
    elif isinstance(value, list):
        for one in value:
            check_paths(one, length)


def parts(value: Any) -> Iterable[Any]:
    """The values within a plain value, for `check_expanded`."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else ()


def check(objects: list[Object], limits: Limits) -> None:
    """Raise InvalidPackage for too many objects or kinds, or too many replicas of one object."""
    kinds = {kind_of(obj) for obj in objects}
    for found, limit, things, option in (
        (len(objects), limits.max_objects, "objects", "max_objects"),
        (len(kinds), limits.max_kinds, "kinds of objects", "max_kinds"),
    ):
        if found > limit:
            raise InvalidPackage(
                f"the package has {found:,} {things} and may have {limit:,}; make several packages of it, or let the "
                f"operator raise [k8s_cr] {option}"
            )
    _check_replicas(objects, limits.max_replicas)


def _check_replicas(objects: Iterable[Object], limit: int) -> None:
    objects = list(objects)
    crds = crds_of(objects)
    for obj in objects:
        path = _replicas_path(obj, crds.get(kind_of(obj)))
        # An object can have parts with counts of their own, which may be VNFCs.
        parts = ((path, value) for path, value in walk(obj.get("spec"), ("spec",)) if path[-1] == "replicas")
        for place, count in ((path, field(obj, *path)), *parts):
            if isinstance(count, int | float) and count > limit:
                where, remedy = f"{key_of(obj)}: {shown(place)}", "lower it, or let the operator raise [k8s_cr] max_replicas"
                raise InvalidPackage(f"{where}: is more than {limit:,}; {remedy}")


def _replicas_path(obj: Object, crd: Any) -> tuple[str, ...]:
    """Where the count is: as the CRD's subresource scale says, else where built-in kinds have it."""
    version = split(obj["apiVersion"])[1]
    paths = [
        field(entry, "subresources", "scale", "specReplicasPath")
        for entry in entries(crd, "spec", "versions")
        if entry.get("name") == version
    ]
    given = [path for path in paths if isinstance(path, str)]
    return tuple(filter(None, given[0].split("."))) if given else ("spec", "replicas")
