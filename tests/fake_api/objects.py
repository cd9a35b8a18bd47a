# SPDX-License-Identifier: Apache-2.0
"""Small helpers on JSON-like objects: copy, address, read a nested field, the server's notion of time.

Stored objects are never changed in place: every write stores a new one, so readers and watches need no lock.
"""

import marshal
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

_WITHOUT_REFERENCES = 2
"""The version of marshal's format that looks for no value twice."""

Object = dict[str, Any]
Key = tuple[str, str]


def copy(value: Any) -> Any:
    """A deep copy of JSON-like data, much faster than `copy.deepcopy`."""
    return marshal.loads(marshal.dumps(value, _WITHOUT_REFERENCES)) if isinstance(value, (dict, list)) else value


def dig(value: Any, *path: str | int, default: Any = None) -> Any:
    """The value at `path`, or `default` where any step is missing."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return default
    return value


def put(value: Object, path: Iterable[str], leaf: Any) -> None:
    """Set the value at `path`, making the objects on the way."""
    *parents, last = path
    for step in parents:
        value = value.setdefault(step, {})
    value[last] = leaf


def with_leaf(value: Object, path: Sequence[str], leaf: Any) -> Object:
    """The same with another value at `path`; `value` stays as it is."""
    step, *rest = path
    return {**value, step: with_leaf(value.get(step, {}), rest, leaf) if rest else leaf}


def key_of(obj: Object) -> Key:
    """(namespace, name); the namespace is empty for cluster-scoped objects."""
    metadata = obj.get("metadata") or {}
    return metadata.get("namespace") or "", metadata.get("name") or ""


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def now(micro: bool = False) -> str:
    return timestamp(datetime.now(timezone.utc), micro)


def timestamp(moment: datetime, micro: bool = False) -> str:
    return moment.isoformat(timespec="microseconds" if micro else "seconds").removesuffix("+00:00") + "Z"


def without(obj: Object, *names: str) -> Object:
    return {key: value for key, value in obj.items() if key not in names}
