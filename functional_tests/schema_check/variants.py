# SPDX-License-Identifier: Apache-2.0
"""Objects that nobody has published: made by a schema, and others with one change. The same input gives the same objects."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from k8s_cr_driver.objects.crds import served_schema, served_versions
from k8s_cr_driver.objects.fields import mapping, text, texts

from .oracle import Object

_OTHER_VALUES: tuple[Any, ...] = (None, "", "a text", 0, -1, 0.3, 1.0, 2**40, True, [], {}, [{}], {"unknown": 1})
_IDENTITY = ("apiVersion", "kind", "metadata")
_DEPTH = 8
"""Levels of a made object that have optional fields."""
_FORMATS = {"date-time": "2026-01-01T00:00:00Z", "ipv4": "10.0.0.1", "ipv6": "::1", "uri": "https://example.com"}


def made(crd: Object, count: int) -> Iterator[Object]:
    """Objects of a definition with its required fields and some of the others; patterns are seldom met."""
    draw = Random(json.dumps(crd["metadata"], sort_keys=True))
    for version in sorted(served_versions(crd)):
        schema = served_schema(crd, version)
        for _ in range(count if isinstance(schema, dict) else 0):
            obj = _example(schema, draw, 0)
            yield {
                **{name: value for name, value in obj.items() if name != "status"},
                "apiVersion": f"{crd['spec']['group']}/{version}",
                "kind": crd["spec"]["names"]["kind"],
                "metadata": {"name": "one", "namespace": "blue"},
            }


def changed(obj: Object, count: int) -> Iterator[Object]:
    """Copies of `obj`, each with one field or entry removed, replaced or repeated, or with a field that is not known."""
    draw = Random(json.dumps(obj, sort_keys=True))
    paths = [path for path in _paths(obj) if path[0] not in _IDENTITY]
    for path in draw.choices(paths, k=count) if paths else ():
        result = copy.deepcopy(obj)
        holder: Any = result
        for step in path[:-1]:
            holder = holder[step]
        _change(holder, path[-1], draw)
        yield result


def _change(holder: Any, step: Any, draw: Random) -> None:
    value = holder[step]
    match draw.choice(("removed", "replaced", "replaced", "extended")):
        case "removed":
            del holder[step]
        case "extended" if isinstance(value, dict):
            value["unknown"] = 1
        case "extended" if isinstance(value, list) and value:
            value.append(copy.deepcopy(value[0]))
        case _:
            holder[step] = copy.deepcopy(draw.choice(_OTHER_VALUES))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in inner:
        yield (*path, step)
        yield from _paths(item, (*path, step))


def _example(node: Any, draw: Random, depth: int) -> Any:
    if mapping(node).get("enum"):
        return draw.choice(node["enum"])
    match text(node, "type"):
        case "object":
            return _fields(node, draw, depth)
        case "array":
            return [_example(mapping(node, "items"), draw, depth + 1) for _ in range(node.get("minItems") or 1)]
        case "string":
            return _FORMATS.get(text(node, "format"), "a" * (node.get("minLength") or 1))
        case "integer" | "number":
            return node.get("minimum", 1)
        case "boolean":
            return draw.random() < 0.5
    return draw.choice((1, "80%"))


def _fields(node: Object, draw: Random, depth: int) -> Object:
    required, properties = texts(node, "required"), mapping(node, "properties")
    if isinstance(node.get("additionalProperties"), dict):
        return {"a": _example(node["additionalProperties"], draw, depth + 1)}
    chosen = [name for name in properties if name in required or (depth < _DEPTH and draw.random() < 0.4)]
    return {name: _example(properties[name], draw, depth + 1) for name in chosen}
