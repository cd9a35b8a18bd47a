# SPDX-License-Identifier: Apache-2.0
"""
Removes the values of a manifest from the error that the API server, or a webhook, has responded to it.

Nobody knows how a webhook words its refusal, or which field of a custom resource is secret. So what was sent is looked for in
the text itself. A reader still needs what names things: names, kinds, paths and the like stay, and so do short values.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, kind_of

SHORTEST = 5
"""Characters of a value that is removed. Shorter ones are words of every text."""

_SECRET = GroupKind("", "Secret")
_OF_BUILT_IN_KINDS = frozenset({"data", "stringData", "binaryData", "value", "args", "command"})
"""Fields of built-in kinds that may hold a secret; errors of their other values are of no use without these."""
_NAMES_THINGS = re.compile(
    r"(?i)(?:refs?|names?|namespaces?|paths?|kinds?|types?|modes?|groups?|versions?|class|image|resources|verbs|metadata)$"
)


def without_sent(error: ApiError, manifest: Object) -> ApiError:
    """The same error without values of the manifest."""
    seen = "\n".join((error.message, *(what for _, _, what in error.causes)))
    found = sorted(_found(manifest, seen), key=len, reverse=True)
    if not found:
        return error
    pattern = re.compile("|".join(map(re.escape, found)))

    def hidden(text: str) -> str:
        return pattern.sub("[value removed]", text)

    causes = [(why, where, hidden(what)) for why, where, what in error.causes]
    return ApiError(
        error.attempt, error.status, error.reason, hidden(error.message), causes, error.retry_after, error.subject
    )


def _found(manifest: Object, text: str) -> set[str]:
    """The values within `text`. Most are not, which their first characters say."""
    begins = {text[at : at + SHORTEST] for at in range(len(text) - SHORTEST + 1)}
    return {value for value in _values(manifest) if value[:SHORTEST] in begins and value in text}


def _values(manifest: Object) -> Iterator[str]:
    """Of a CRD none: it has no secrets, and the words of its schema are those of the error."""
    if kind_of(manifest) == CRD:
        return
    group, kind = kind_of(manifest)
    is_built_in = "." not in group or group.endswith(".k8s.io")
    for value in _leaves(manifest, "", is_hidden=not is_built_in, is_built_in=is_built_in):
        for form in (value, *(_decoded(value) if GroupKind(group, kind) == _SECRET else ())):
            if len(form) >= SHORTEST:
                yield form


def _leaves(value: Any, name: str, *, is_hidden: bool, is_built_in: bool) -> Iterator[str]:
    """The texts in the fields that may hold a secret; `name` is that of the field, or of the list that holds the value."""
    if is_built_in:
        is_hidden |= name in _OF_BUILT_IN_KINDS
    elif _NAMES_THINGS.search(name):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, key, is_hidden=is_hidden, is_built_in=is_built_in)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, "", is_hidden=is_hidden, is_built_in=is_built_in)
    elif isinstance(value, str) and is_hidden:
        yield value


def _decoded(value: str) -> Iterator[str]:
    try:
        yield base64.b64decode(value, validate=True).decode()
    except ValueError:
        return
