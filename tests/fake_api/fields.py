"""Field sets: which fields an object has, as paths, and the `fieldsV1` form in which managers store them.

A path is a tuple of `f:<field>`, `k:{<keys>}` and `v:<value>` steps, exactly the steps of `fieldsV1`.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.fake_api.shapes import Shape

Path = tuple[str, ...]
ITEM = object()


class TypedError(Exception):
    """The object does not fit its shape (an item without its key, two with the same)."""


@dataclass
class Flat:
    """`leaves` maps the path of each value (scalar, atomic, empty) or list item to it; `maps` are the rest."""

    leaves: dict[Path, Any] = field(default_factory=dict)
    maps: set[Path] = field(default_factory=set)

    def has(self, path: Path) -> bool:
        return path in self.leaves or path in self.maps


def flatten(value: Any, shape: Shape, strict: bool = False) -> Flat:
    """All fields of `value`; `strict` refuses duplicate items and undeclared fields (TypedError)."""
    flat = Flat()
    _flatten(value, shape, (), flat, strict)
    return flat


def _flatten(value: Any, shape: Shape, path: Path, flat: Flat, strict: bool) -> None:
    if isinstance(value, dict) and value and not shape.atomic:
        if shape.untyped and path:
            flat.leaves[path] = ITEM
        flat.maps.add(path)
        for name, child in value.items():
            if strict and not shape.declares(name) and (path or name not in ("metadata", "apiVersion", "kind")):
                raise TypedError(f"{display((*path, 'f:' + name))}: field not declared in schema")
            _flatten(child, shape.child(name), (*path, "f:" + name), flat, strict)
    elif isinstance(value, list) and shape.granular_list:
        flat.maps.add(path)
        for index, item in enumerate(value):
            step = item_step(item, shape, path, index)
            if strict and (*path, step) in flat.leaves:
                raise TypedError(f"{display(path)}: duplicate entries for key {display((step,))}")
            _flatten(item, shape.item(), (*path, step), flat, strict)
            flat.leaves.setdefault((*path, step), ITEM)
    else:
        flat.leaves[path] = value


def item_step(item: Any, shape: Shape, path: Path = (), index: int = 0) -> str:
    """The step that names a list's item: by its merge keys, or by its value in a set."""
    if shape.is_set:
        return "v:" + _compact(item)
    keys: dict[str, Any] = {}
    for name, default in shape.keys:
        value = item.get(name, default) if isinstance(item, dict) else None
        if value is None:
            raise TypedError(f"{display(path)}: element {index}: associative list with keys has an element that "
                             f"omits key field {_compact(name)} (and doesn't have default value)")
        keys[name] = value
    return "k:" + _compact(keys)


def display(path: Path) -> str:
    """The path as error messages show it: `.spec.containers[name="web"].image`."""
    shown = ""
    for step in path:
        if step.startswith("f:"):
            shown += "." + step[2:]
        elif step.startswith("v:"):
            shown += f"[={step[2:]}]"
        else:
            shown += "[" + ",".join(f"{k}={_compact(v)}" for k, v in json.loads(step[2:]).items()) + "]"
    return shown


def encode(paths: set[Path]) -> dict[str, Any]:
    """`fieldsV1` of a set of paths."""
    root: dict[str, Any] = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
    for path in paths:
        node = root
        for step in path:
            node = node[step]
        if node:
            node["."] = {}
    return root


def decode(fields_v1: dict[str, Any]) -> set[Path]:
    paths: set[Path] = set()

    def visit(node: dict[str, Any], path: Path) -> None:
        if path and (not node or "." in node):
            paths.add(path)
        for step, child in node.items():
            if step != ".":
                visit(child, (*path, step))

    visit(fields_v1, ())
    return paths


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
