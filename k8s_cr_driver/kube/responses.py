# SPDX-License-Identifier: Apache-2.0
"""Checks the shape of responses.

A cluster may send anything: proxies, aggregated APIs and conversion webhooks respond in its name. What the driver reads
without a further check (an object's metadata) is checked once, where it comes in. A malformed response counts as none:
Unreadable, after which requests are repeated and watches opened again.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from k8s_cr_driver.errors import Unreadable
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of

NAME_LIMIT = 512
"""Characters of a name, a uid and a resourceVersion; a Kubernetes name has at most 253."""


def checked(response: Object, kind: GroupKind, attempt: str, *, stored: bool = True) -> Object:
    """
    Returns `response` if it is an object of that kind with metadata as in the API conventions ("Metadata").

    An object that is not `stored`, the outcome of a dry run, has no resourceVersion.
    """
    metadata = response.get("metadata")
    identity = ("name", "uid", "resourceVersion") if stored else ("name", "uid")
    if kind_of(response) != kind or not isinstance(metadata, dict) or not _is_whole(metadata, identity):
        raise Unreadable(f"{attempt}: the response is not an object of kind {kind}")
    return response


def entries(response: Object, api_version: str, kind: GroupKind, attempt: str) -> list[Object]:
    """The objects of a list. Its entries do not name their kind, and entries of a list of metadata name another one."""
    with understood(attempt):
        found = [{**entry, "apiVersion": api_version, "kind": kind.kind} for entry in response.get("items") or []]
    return [checked(entry, kind, attempt) for entry in found]


def _is_whole(metadata: Object, identity: Iterable[str]) -> bool:
    for name in identity:
        if not _is_name(metadata.get(name)):
            return False
    return all(_FORMS[name](value) for name, value in metadata.items() if value is not None and name in _FORMS)


def _is_name(value: Any) -> bool:
    """Names are in log lines, errors and terminals. No API server stores one with a control character, or as long."""
    return type(value) is str and 0 < len(value) <= NAME_LIMIT and value.isprintable()


def _is_namespace(value: Any) -> bool:
    return value == "" or _is_name(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and set(map(type, value.values())) <= {str}


def _is_list(kind: type, value: Any) -> bool:
    return isinstance(value, list) and set(map(type, value)) <= {kind}


_FORMS: dict[str, Callable[[Any], bool]] = {
    "namespace": _is_namespace,
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _is_text),
    **dict.fromkeys(("labels", "annotations"), _is_map),
    "finalizers": functools.partial(_is_list, str),
    **dict.fromkeys(("ownerReferences", "managedFields"), functools.partial(_is_list, dict)),
}
"""Of the metadata that is read without a further check, where it is not null."""


@contextlib.contextmanager
def understood(attempt: str) -> Iterator[None]:
    """Wraps the reading of a response, and nothing else: Unreadable for one of another shape."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        raise Unreadable(f"{attempt}: the response is malformed") from None
