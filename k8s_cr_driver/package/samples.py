# SPDX-License-Identifier: Apache-2.0
"""
Samples in the place of parameters that have no value yet, so that a package is checked before it is used.

What is found at a field that holds a sample says nothing of the package, and is dropped. All other findings stand.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from k8s_cr_driver.objects.fields import Path, mapping, text, walk
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import parameters, substitution


class Sampled:
    """Which fields of the objects of one package hold samples, and which hold parameters at all.

    `names` are those of the parameters for which samples stand.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = frozenset(names)
        self._fields: dict[int, tuple[Object, list[tuple[Path, set[str]]]]] = {}  # with the object, so that its id stays

    def recording(self, fill: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`fill`, as `manifests.load` takes it, which notes the fields."""

        def filled(raw: Any) -> Any:
            found, obj = _references(raw), fill(raw)
            if found:
                self._fields[id(obj)] = obj, found
                self._encode(obj)
            return obj

        return filled

    def _encode(self, obj: Object) -> None:
        """The data of a Secret are base64, as no sample is."""
        for path in self._sampled(obj) if text(obj, "kind") == "Secret" else ():
            name = str(path[-1])
            if path == ("data", name) and isinstance(sampled := mapping(obj, "data").get(name), str):
                obj["data"][name] = base64.b64encode(sampled.encode()).decode()

    def is_at(self, obj: Object, path: Path, *, around: bool = False) -> bool:
        """Whether the field at `path` is a sample, or is in one; with `around` also whether it holds one."""
        return any(path[: len(one)] == one or (around and one[: len(path)] == path) for one in self._sampled(obj))

    def is_reference(self, obj: Object, path: Path) -> bool:
        """Whether a parameter gives the value of the field."""
        return any(one == path for one, _ in self._fields.get(id(obj), (obj, []))[1])

    def _sampled(self, obj: Object) -> Iterator[Path]:
        return (path for path, names in self._fields.get(id(obj), (obj, []))[1] if not self._names.isdisjoint(names))


NO_SAMPLES = Sampled()


def _references(raw: Any) -> list[tuple[Path, set[str]]]:
    """(field, names of the parameters that it refers to)."""
    texts = ((path, value) for path, value in walk(raw) if isinstance(value, str) and "${" in value)
    return [(path, names) for path, value in texts if (names := substitution.references(value))]


def sample(declaration: parameters.Declaration) -> Any:
    """A value for a parameter that must be given: a text is that of its name, so that names of objects do not clash."""
    if declaration.secret:
        return {"secretRef": {"name": "sample", "key": "sample"}}
    allowed: Mapping[str, Any] = dict(declaration.constraints)
    if allowed.get("valid_values"):
        return allowed["valid_values"][0]
    text = declaration.name.lower().replace("_", "-")
    samples = {"string": text, "integer": 1, "float": 1.0, "boolean": True, "list": [], "map": {}}
    return samples[declaration.type]
