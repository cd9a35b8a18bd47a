# SPDX-License-Identifier: Apache-2.0
"""
Which values of manifests may be secrets, and in which forms others may repeat them.

Nobody knows which field of a custom resource is secret. Names, kinds, paths and the like are none, and short values neither.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from k8s_cr_driver.objects import decoding
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, kind_of
from k8s_cr_driver.redaction import FOREIGN_LIMIT

Value = TypeVar("Value")

PART = 8
"""Characters of a line of a value, or of the begin of a cut one, that is removed."""
_DIGITS = 6
"""Of a number that is removed. Shorter ones are counts and ports."""
_INNER = 10
"""Characters of base64 that a value gives within that of a longer text: shorter ones are in many texts."""
VALUES = 64 * 1024 * 1024
"""Characters of the values that are searched for; no text is shown of an error that is about more."""
_ASKS_EVERY = 1000
"""Values between two looks at the deadline."""

_SECRET = GroupKind("", "Secret")
_OF_BUILT_IN_KINDS = frozenset({
    *("data", "stringData", "binaryData", "value", "args", "command"),
    *("parameters", "volumeAttributes", "options", "mountOptions"),
})
"""Fields of built-in kinds that may hold a secret; errors of their other values are of no use without these."""
_NAMES_THINGS = re.compile(
    r"(?i)(?:refs?|names?|namespaces?|paths?|kinds?|types?|modes?|groups?|versions?|class|image|resources|verbs|metadata|"
    r"flavors?|cidrs?)$"
)
_ENDPOINT = re.compile(r"(?i)(?:ur[il]|region|interface|endpoint|domain|host)$")
"""What else a line of a Secret may name: errors about it are of no use without that. Credentials in a URL are no name."""
_AFTER_HOST = re.compile(r"://[^/?#]*([/?#].+)")
_ITEM = re.compile(r"^[\s-]*\s")
_METADATA = frozenset({"name", "namespace", "generateName", "labels", "annotations"})
_OF_DEPLOYMENT = ("k8s-cr-driver/", "config.kubernetes.io/")
"""The annotations of custom resources that say how they are applied, and in which order."""
_NAMES_SECRETS = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|passcode|pwd|psk|secret|token|credentials?|community|(?:api|private|access|shared)_?key|"
    r"(?:^|_)(?:pass|pin)|(?-i:Pass|Pin))$"
)
"""Fields, of built-in kinds as well, whose values are removed also if they are a single word."""
_WITHIN = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|passcode|pwd|psk|secret|token|credentials?|community|(?:api|private|access|shared)_?key)"
    r"[\"']?\s{0,8}[:=>]\s{0,8}(?:\"(?P<double>[^\"]+)\"|'(?P<single>[^']+)'|(?P<bare>[^\s\"'<>;,&]+))|"
    r"(?m:^|//)[^\s/@:]{0,100}:(?P<user>[^\s/@]{1,200})@"
)
"""A secret within a text: after its name in a connection string, a comment or XML, and after the user's in a URL."""
NO_SECRET = re.compile(r"[A-Za-z]{1,12}|[0-9]{1,5}(?:\.[0-9]{1,5})?[A-Za-z]{0,2}|/[a-z0-9._/-]+")
"""Outside of Secrets: a single word, a quantity or a duration, the path of a program."""


class TooMuch(Exception):
    """The values cannot be known in time."""


def asking(values: Iterable[Value], is_over: Callable[[], bool]) -> Iterator[Value]:
    """The values, while it is not over."""
    for number, value in enumerate(values):
        if number % _ASKS_EVERY == 0 and is_over():
            raise TooMuch
        yield value


def secret_values(manifests: Iterable[Object], is_over: Callable[[], bool]) -> set[str]:
    """Those that may be secrets, in the forms in which others may repeat them; TooMuch if that takes too long."""
    leaves: dict[bool, set[str]] = {True: set(), False: set()}
    length = 0
    for manifest in manifests:
        kind = kind_of(manifest)
        for name, value in asking(_said(manifest), is_over):
            length += len(value)
            if length > VALUES:
                raise TooMuch
            is_secret = kind == _SECRET or _NAMES_SECRETS.search(name) is not None
            leaves[is_secret].add(value)
    texts = [
        (is_secret, text) for is_secret, values in leaves.items() for value in values for text in (value, *_decoded(value))
    ]
    forms = {
        form
        for is_secret, text in asking(texts, is_over)
        for form in _forms(text, is_secret=is_secret)
        if is_secret or not NO_SECRET.fullmatch(form)
    }
    return forms | {found[found.lastgroup or 0] for _, text in texts for found in _WITHIN.finditer(text)}


def _said(manifest: Object) -> Iterator[tuple[str, str]]:
    """What the author of an object says in it: no metadata, but for the annotations of a custom resource."""
    is_built_in = is_builtin(kind_of(manifest))
    said = {name: value for name, value in manifest.items() if name not in ("metadata", "status")}
    if not is_built_in:
        noted = annotations_of(manifest).items()
        said["annotations"] = {name: value for name, value in noted if not name.startswith(_OF_DEPLOYMENT)}
    return _leaves(said, "", is_hidden=not is_built_in, is_built_in=is_built_in)


def _leaves(value: Any, name: str, *, is_hidden: bool, is_built_in: bool) -> Iterator[tuple[str, str]]:
    """
    The fields that may hold a secret, and their texts.

    `name` is that of the field, or of the list that holds the value. What the metadata within an object has to name it stays.
    """
    if is_built_in:
        is_hidden |= name in _OF_BUILT_IN_KINDS
    if isinstance(value, dict):
        for key, item in value.items():
            if name != "metadata" or key not in _METADATA:
                yield from _leaves(item, key, is_hidden=is_hidden, is_built_in=is_built_in)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, name, is_hidden=is_hidden, is_built_in=is_built_in)
    elif not (is_hidden or _NAMES_SECRETS.search(name)) or (not is_built_in and _NAMES_THINGS.search(name)):
        return
    elif isinstance(value, str):
        yield name, value
    elif isinstance(value, (int, float)) and len(str(abs(value))) >= _DIGITS:
        yield name, str(value)


def _forms(value: str, *, is_secret: bool) -> Iterator[str]:
    """The value, also in base64; its lines, and of each line `a: b` also b; the texts in JSON of a Secret."""
    yield value
    yield from _encoded(value[:FOREIGN_LIMIT].encode(errors="replace"))
    lines = value.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line.strip()) >= PART)
    if len(lines) > 1 or is_secret or value.startswith("-"):
        yield from filter(None, map(_of_line, lines))
    if value.lstrip().startswith(("{", "[")):
        for text in _of_json(value):
            yield from (text, *(_of_line(decoded) for decoded in _decoded(text)))


def _encoded(value: bytes) -> Iterator[str]:
    """In hex and in base64, also within that of a longer text: it depends on the place there, its ends on what is around."""
    yield value.hex()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(value).decode().rstrip("=")
        for before, unlike in ((0, 0), (1, 2), (2, 3)):
            whole = (before + len(value)) // 3 * 4
            inner = encode(b" " * before + value).decode()[unlike : whole + (before + len(value)) % 3]
            if len(inner) >= _INNER:
                yield inner


def _of_line(line: str) -> str:
    """What the line `key: value` gives the key, or all of it; of a URL what follows its host; "" if it names something."""
    *keys, value = re.split("[:=]", _ITEM.sub("", line), maxsplit=1)
    value = value.strip(" \t\"',;")
    names = any(_NAMES_THINGS.search(key.strip()) or _ENDPOINT.search(key.strip()) for key in keys)
    if not names or "@" in value:
        return value
    path = _AFTER_HOST.search(value)
    return path[1] if path else ""


def _of_json(text: str) -> Iterator[str]:
    try:
        decoded = decoding.decoded(text.encode())
        yield from (value for _, value in _leaves(decoded, "", is_hidden=True, is_built_in=False))
    except ValueError:
        return


def _decoded(value: str) -> Iterator[str]:
    try:
        yield base64.b64decode("".join(value.split()), validate=True).decode()
    except ValueError:
        return
