# SPDX-License-Identifier: Apache-2.0
"""Field sets: which fields an object has, as paths, and the `fieldsV1` form in which managers store them.

A path is a tuple of `f:<field>`, `k:{<keys>}` and `v:<value>` steps, exactly the steps of `fieldsV1`.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.fake_api.shapes import Shape

Path = tuple[str, ...]
ITEM = object()
_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False)
_TOP = ("metadata", "apiVersion", "kind")


class TypedError(Exception):
    """The object does not fit its shape (an item without its key, two with the same)."""


@dataclass
class Flat:
    """`leaves` maps the path of each value (scalar, atomic, empty) or list item to it; `maps` are the rest."""

    leaves: dict[Path, Any] = field(default_factory=dict)
    maps: set[Path] = field(default_factory=set)

    def paths(self) -> set[Path]:
        return self.leaves.keys() | self.maps


def flatten(value: Any, shape: Shape, strict: bool = False) -> Flat:
    """All fields of `value`; `strict` refuses duplicate items and undeclared fields (TypedError)."""
    flat = Flat()
    faults: list[str] | None = [] if strict else None
    _flatten(value, shape, (), flat, faults)
    if faults:
        raise TypedError(faults[0] if len(faults) == 1 else "errors:\n  " + "\n  ".join(faults))
    return flat


def _flatten(value: Any, shape: Shape, path: Path, flat: Flat, faults: list[str] | None) -> None:
    if faults is not None and (fault := _type_fault(value, shape)):
        faults.append(f"{display(path)}: {fault}")
        return
    if isinstance(value, dict) and value and not shape.atomic:
        flat.maps.add(path)
        for name, child in value.items():
            if shape.schema is None and not isinstance(child, (dict, list)):  # of a built-in kind: its shape says nothing
                flat.leaves[(*path, "f:" + name)] = child
                continue
            if faults is not None and not shape.declares(name) and (path or name not in _TOP):
                faults.append(f"{display((*path, 'f:' + name))}: field not declared in schema")
            _flatten(child, shape.child(name), (*path, "f:" + name), flat, faults)
            if isinstance(child, dict) and shape.is_entry(name):
                flat.leaves.setdefault((*path, "f:" + name), ITEM)
    elif isinstance(value, list) and shape.granular_list:
        flat.maps.add(path)
        for index, item in enumerate(value):
            step = item_step(item, shape, path, index)
            if faults is not None and (*path, step) in flat.leaves:
                faults.append(f"{display(path)}: duplicate entries for key {display((step,))}")
            _flatten(item, shape.item(), (*path, step), flat, faults)
            flat.leaves.setdefault((*path, step), ITEM)
    else:
        flat.leaves[path] = value


@dataclass
class Changes:
    """Paths that only the new value has, whose value differs, and that only the old one has."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


def changes(old: Any, new: Any, shape: Shape) -> Changes:
    """What flattening both would show; what is equal in both is not looked into."""
    found = Changes()
    _compare(old, new, shape, (), found)
    return found


def _compare(old: Any, new: Any, shape: Shape, path: Path, found: Changes) -> None:
    if isinstance(old, dict) and isinstance(new, dict) and old and new and not shape.atomic:
        for name, before in old.items():
            if name in new and before != (after := new[name]):
                if isinstance(before, (dict, list)) or isinstance(after, (dict, list)):
                    _compare(before, after, shape.child(name), (*path, "f:" + name), found)
                else:
                    found.modified.add((*path, "f:" + name))
        for one, other, paths in ((old, new, found.removed), (new, old, found.added)):
            for name in one.keys() - other.keys():
                if isinstance(one[name], (dict, list)):
                    paths |= _flat(one[name], shape.child(name), (*path, "f:" + name)).paths()
                else:
                    paths.add((*path, "f:" + name))
    else:
        was, now = _flat(old, shape, path), _flat(new, shape, path)
        found.added |= now.paths() - was.paths()
        found.removed |= was.paths() - now.paths()
        found.modified |= {at for at in was.leaves.keys() & now.leaves.keys() if _differ(was.leaves[at], now.leaves[at])}


def _flat(value: Any, shape: Shape, path: Path) -> Flat:
    flat = Flat()
    _flatten(value, shape, path, flat, None)
    return flat


def _differ(old: Any, new: Any) -> bool:
    return old is not ITEM and new is not ITEM and bool(old != new)


def item_step(item: Any, shape: Shape, path: Path = (), index: int = 0) -> str:
    """The step that names a list's item: by its merge keys, or by its value in a set."""
    if shape.is_set:
        return "v:" + _compact(item)
    where = f"{display(path)}: element {index}: associative list with keys"
    if not isinstance(item, dict):
        raise TypedError(f"{where} may not have non-map elements")
    keys = {name: item.get(name, default) for name, default in shape.keys}
    if all(value is None for value in keys.values()):
        names = " ".join(_compact(name) for name in keys)
        raise TypedError(f"{where} has an element that omits all key fields [{names}] (and doesn't have default "
                         "values for any key fields)")
    return "k:" + _compact({name: value for name, value in keys.items() if value is not None})


def _type_fault(value: Any, shape: Shape) -> str:
    """What a typed value refuses, in the words of the server, which print Go values."""
    declared = (shape.schema or {}).get("type")
    if (shape.schema or {}).get("x-kubernetes-int-or-string") or value is None:
        return ""
    if declared == "object" and not isinstance(value, dict):
        return f"expected map, got &{{{_go(value)}}}"
    if declared == "array" and not isinstance(value, list):
        return f"expected list, got &{{{_go(value)}}}"
    if declared in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int | float)):
        names = {str: "string", bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}
        return f"expected numeric (int or float), got {names[type(value)]}"
    if declared == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_go(value, typed=True)}}}"
    if declared == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &value.valueUnstructured{{Value:{_go(value, typed=True)}}}"
    return ""


def _go(value: Any, typed: bool = False) -> str:
    if isinstance(value, dict):
        items = (", " if typed else " ").join(
            f"{_compact(k) if typed else k}:{_go(v, typed)}" for k, v in sorted(value.items()))
        return f"map[string]interface {{}}{{{items}}}" if typed else f"map[{items}]"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(_go(v, True) for v in value)}}}" if typed else (
            f"[{' '.join(map(_go, value))}]")
    return _compact(value) if typed or not isinstance(value, str) else value


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
    ends = []
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        ends.append(node)
    for node in filter(None, ends):
        node["."] = {}
    return root


def decode(fields_v1: dict[str, Any]) -> set[Path]:
    paths: set[Path] = set()

    def visit(node: dict[str, Any], path: Path) -> None:
        if path and (not node or "." in node):
            paths.add(path)
        for step, child in node.items():
            if not child and step != ".":
                paths.add((*path, step))
            elif child:
                visit(child, (*path, step))

    visit(fields_v1, ())
    return paths


def _compact(value: Any) -> str:
    return _ENCODER.encode(value)
