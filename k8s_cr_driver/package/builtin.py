# SPDX-License-Identifier: Apache-2.0
"""
The kinds that Kubernetes itself serves, as `builtin.json` has them: scopes, versions, and the fields of each.

For what is checked without a cluster: a cluster is asked for its own kinds. `python -m builds.kinds` makes the file, and says
what the codes in it mean.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.objects.api_groups import GROUPS
from k8s_cr_driver.objects.fields import similar
from k8s_cr_driver.objects.keys import GroupKind
from k8s_cr_driver.package.structural import Node

_FILE = Path(__file__).with_name("builtin.json")
_ANY: Node = {"nullable": True, "x-kubernetes-preserve-unknown-fields": True}
_SIMPLE: Mapping[str, Node] = {
    "s": {"type": "string", "nullable": True},
    "i": {"type": "integer", "nullable": True},
    "n": {"type": "number", "nullable": True},
    "b": {"type": "boolean", "nullable": True},
    "q": {"x-kubernetes-int-or-string": True, "nullable": True},
    "Q": {"anyOf": [{"type": "number"}, {"type": "string"}], "nullable": True},
    "*": _ANY,
}


@functools.cache
def _data() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_FILE.read_text())
    return content


def release() -> str:
    """Of the Kubernetes that the data is of: `1.36`."""
    return ".".join(str(_data()["kubernetes"]).split(".")[:2])


def is_namespaced(kind: GroupKind, version: str) -> bool | None:
    """None for a kind, or a version of it, that Kubernetes does not serve."""
    found = _data()["kinds"].get(f"{kind.group}/{kind.kind}", {})
    return bool(found["namespaced"]) if version in found.get("versions", ()) else None


def instead(kind: GroupKind) -> str:
    """What to write for a kind that is not served as it is written: `networking.k8s.io/v1 Ingress`; "" if nothing is near."""
    kinds: Mapping[str, Any] = _data()["kinds"]
    own = f"{kind.group}/{kind.kind}"
    moved = next((name for name in kinds if name.endswith(f"/{kind.kind}")), "")
    name = own if own in kinds else moved or _near(kind, kinds)
    if not name:
        return ""
    group, _, word = name.partition("/")
    best = min(kinds[name]["versions"], key=_age)
    return f"{group}/{best} {word}".removeprefix("/")


def is_none_of_crds(kind: GroupKind) -> bool:
    """Whether no CustomResourceDefinition can define a kind of this group, which is not built-in: such a group has a dot."""
    return "." not in kind.group and kind.group not in GROUPS


def _near(kind: GroupKind, kinds: Mapping[str, Any]) -> str:
    names = [name.rpartition("/")[2] for name in kinds]
    near = similar(kind.kind, names, cutoff=0.8)
    return next((name for name in kinds if near and name.endswith(f"/{near}")), "")


def _age(version: str) -> tuple[bool, bool, list[int]]:
    """Stable versions before beta, beta before alpha, and of these the newest first."""
    return "alpha" in version, "beta" in version, [-int(number) for number in re.findall("[0-9]+", version)]


def schema(kind: GroupKind, version: str) -> Node | None:
    """The structural schema of a kind's version; None for one that is not known."""
    name = _data()["kinds"].get(f"{kind.group}/{kind.kind}", {}).get("versions", {}).get(version)
    return _node(name) if name else None


def metadata() -> Node:
    """The schema of `metadata`, which is that of all kinds."""
    return _node("meta.v1.ObjectMeta")


_nodes: dict[str, Node] = {}
"""By their codes. A type is here before its fields are, because some types hold themselves."""


def _node(code: str) -> Node:
    if code in _SIMPLE:
        return _SIMPLE[code]
    if code[0] == "[":
        return {"type": "array", "items": _node(code[1:]), "nullable": True}
    if code[0] == "{":
        return {"type": "object", "additionalProperties": _node(code[1:]), "nullable": True}
    if code not in _nodes:
        fields: Mapping[str, str] = _data()["types"][code]
        required = [name.rstrip("!") for name in fields if name.endswith("!")]
        properties: dict[str, Node] = {}
        _nodes[code] = {"type": "object", "properties": properties, "required": required, "nullable": True}
        properties.update({name.rstrip("!"): _node(of) for name, of in fields.items()})
    return _nodes[code]
