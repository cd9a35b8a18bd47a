# SPDX-License-Identifier: Apache-2.0
"""
Removes values of manifests from what the API server, a webhook or a controller says about them.

Nobody knows how they word it, or which field of a custom resource is secret. So the values are looked for in the text itself:
whole or cut, their lines, quoted and escaped, in any case, in hex and base64 and decoded. A reader still needs what names
things: names, kinds, paths and the like stay, and so do short values and common words. Both sides may be hostile: the author
of an object chooses its values, a server its texts. So the search has a budget, and asks the deadline.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from k8s_cr_driver.objects import decoding
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, annotations_of, key_of, kind_of
from k8s_cr_driver.redaction import CUT, FOREIGN_LIMIT, REMOVED

_Value = TypeVar("_Value")

SHORTEST = 5
"""Characters of a value that is removed. Shorter ones are words of every text."""
_DIGITS = 6
"""Of a number that is removed. Shorter ones are counts and ports."""
_INNER = 10
"""Characters of base64 that a value gives within that of a longer text: shorter ones are in many texts."""
_PART = 8
"""Characters of a line of a value, or of the begin of a cut one, that is removed."""

TEXTS = 64 * 1024
"""Characters that are searched of all texts of one error; of each text beyond them the first BRIEF."""
BRIEF = 200
VALUES = 64 * 1024 * 1024
"""Characters of the values that are searched for; no text is shown of an error that is about more."""
UNSEARCHED = "[text removed: too much to search it for secret values]"
_ASKS_EVERY = 1000
"""Values between two looks at the deadline."""
_LONGEST_PATH = 256
"""Characters of a program's path."""

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
_COMMON = frozenset({
    *("false", "default", "always", "never", "enabled", "disabled", "debug", "warning", "error", "standard", "custom"),
    *("running", "stopped", "ready", "present", "absent", "create", "update", "delete", "retain", "required", "optional"),
    *("cluster", "namespace", "network", "server", "service", "https"),
})
"""Words of every text, whatever field has them."""
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
_NO_SECRET = re.compile(r"[A-Za-z]{1,12}|[0-9]{1,5}(?:\.[0-9]{1,5})?[A-Za-z]{0,2}|/[a-z0-9._/-]+")
"""Outside of Secrets: a single word, a quantity or a duration, the path of a program."""

_UNIT = re.compile(
    r"\\+(?:u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|x(?P<x>[0-9a-fA-F]{2})|(?P<control>[abfnrtv]))?|"
    r"%(?P<percent>[0-9a-fA-F]{2})|&(?:#(?:x|X)(?P<entity>[0-9a-fA-F]{1,6})|#(?P<decimal>[0-9]{1,7})|(?P<named>amp|lt|gt|quot|apos));|"
    r"(?P<space>[\x00-\x20\x7f]+)|(?P<dots>\u2026+)|(?P<other>[^\x00-\x7f\u2026]+)"
)
"""What Go, JSON and Python write for a character in quotes, what URLs and HTML write, and what they may write so."""
_ODD = re.compile(r"[^\x20-\x7e]|[\\%&]|  ")
"""Without these a text is its own canonical form."""
_OTHER = "\ufffd"
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_MEANINGS = {"control": " ", "space": " ", "dots": "...", "other": _OTHER}
_WEBHOOK = re.compile(r'webhook "([a-z0-9.-]{1,253})"')
"""As the API server names the webhook that has denied a request, or does not respond."""
_CUT = re.compile(r"[\"'`]?\s?(?:\.\.\.|[(<\[]?truncated)")
"""What follows the begin of a value that somebody has cut; nothing may follow it, too."""
_CUT_BEFORE = re.compile(r"(?:\.\.\.|truncated)[\])>\"'`\s]{0,4}")
"""What precedes the end of one of which somebody has cut the begin."""


def _never() -> bool:
    return False


class SentValues:
    """The values of some manifests; those of a CRD are no secrets, and the words of its schema are those of its errors.

    For the texts of one error. No text is shown if `is_over` becomes true before the values are known.
    """

    def __init__(self, manifests: Iterable[Object], is_over: Callable[[], bool] = _never) -> None:
        several = [manifest for manifest in manifests if kind_of(manifest) != CRD]
        names = {name for manifest in several for name in key_of(manifest)}
        self.left = TEXTS
        """Characters that may still be searched."""
        self._is_unknown = False
        try:
            values = _asking(_values(several, is_over) - names, is_over)
            found = {_comparable(value[:FOREIGN_LIMIT].strip()) for value in values}
        except _TooMuch:
            self._is_unknown, found = True, set()
        self._values = sorted(value for value in found if len(value) >= SHORTEST and value not in _COMMON)
        self._begins = {value[:SHORTEST] for value in self._values}
        self._prefixes = _Prefixes(self._values)
        self._reversed = sorted(value[::-1] for value in self._values if len(value) > _PART)
        self._ends = {value[-_PART:] for value in self._values if len(value) > _PART}

    def removed_from(self, text: str, *, words: bool = True) -> str:
        """
        `text`, of limited length, without the values. Takes linear time.

        Without `words` those stay that are a single word: the author of the text may have said it himself.
        """
        if self._is_unknown:
            return UNSEARCHED if text else ""
        most = min(FOREIGN_LIMIT, max(self.left, BRIEF))
        text = text if len(text) <= most else text[: most - len(CUT)] + CUT
        self.left -= len(text)
        if not self._values:
            return text
        plain, starts = _canonical(text)
        named = [found.span(1) for found in _WEBHOOK.finditer(plain)]
        plain = plain.lower()  # of ASCII, and as long
        cuts = [cut.start() for cut in _CUT.finditer(plain)]
        marks = list(_CUT_BEFORE.finditer(plain))
        rests = dict(zip((mark.end() for mark in marks), [*(mark.start() for mark in marks[1:]), len(plain)], strict=False))
        shown: list[str] = []
        done = 0
        for at in range(len(plain) - SHORTEST + 1):
            end = self._end(plain, at, rests[at]) if at in rests else at
            if plain[at : at + SHORTEST] in self._begins:
                end = max(end, self._whole(plain, at, words=words), self._cut(plain, at, cuts))
            if end > at and not _is_within(named, at, end):
                if not shown or starts[at] > done:
                    shown.append(text[done : starts[at]] + REMOVED)
                done = max(done, starts[end])
        return "".join(shown) + text[done:]

    def removed_from_reason(self, reason: str) -> str:
        """As `removed_from`, but for a machine's word, which is what the API conventions want a reason to be."""
        return reason if reason.isalpha() and len(reason) <= BRIEF else self.removed_from(reason)

    def _whole(self, text: str, at: int, *, words: bool) -> int:
        """Where the longest value ends that begins at `at`; `at` if none does."""
        number = bisect_right(self._values, text[at:]) - 1
        number = self._prefixes.longest(number, lambda one: text.startswith(self._values[one], at))
        if number < 0:
            return at
        value, end = self._values[number], at + len(self._values[number])
        if value.isalpha() and not words:
            return at
        is_word = value.isalpha() or value.isdigit()
        is_part = is_word and (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())
        return at if is_part or (value.isalpha() and _is_named(text, at, end)) else end

    def _cut(self, text: str, at: int, cuts: list[int]) -> int:
        """Where the begin of a value ends that begins at `at` and was cut; `at` if there is none."""
        place = bisect_left(cuts, at + _PART)
        end = cuts[place] if place < len(cuts) else len(text)
        part = text[at:end]
        number = bisect_left(self._values, part)
        is_begin = number < len(self._values) and self._values[number].startswith(part)
        return end if is_begin and len(part) >= _PART and not _is_harmless(part) else at

    def _end(self, text: str, at: int, rest: int) -> int:
        """Where the longest end of a value ends that begins at `at`, where a mark says that something is cut, within `rest`."""
        for end in range(rest, at + _PART - 1, -1):
            if text[end - _PART : end] in self._ends and not _is_harmless(text[at:end]):
                part = text[at:end][::-1]
                number = bisect_left(self._reversed, part)
                if number < len(self._reversed) and self._reversed[number].startswith(part):
                    return end
        return at


def _is_harmless(part: str) -> bool:
    return len(part) <= _LONGEST_PATH and _NO_SECRET.fullmatch(part) is not None


class _TooMuch(Exception):
    """The values cannot be known in time."""


class _Prefixes:
    """Of each of some sorted values those that it begins with: a tree, in which a search takes a logarithm of its depth.

    A node has its parent, and a longer jump up (skew-binary numbers, Myers 1983), which cost one number each.
    """

    def __init__(self, values: list[str]) -> None:
        self._up: list[int] = []
        self._jump: list[int] = []
        depths: list[int] = []
        for place, value in enumerate(values):
            above = place - 1
            while above >= 0 and not value.startswith(values[above]):
                above = self._up[above]
            far = self._jump[above] if above >= 0 else -1
            farther = self._jump[far] if far >= 0 else -1
            above_depth, far_depth, farther_depth = (depths[one] if one >= 0 else 0 for one in (above, far, farther))
            self._up.append(above)
            self._jump.append(farther if above_depth - far_depth == far_depth - farther_depth else above)
            depths.append(above_depth + 1)

    def longest(self, place: int, matches: Callable[[int], bool]) -> int:
        """The longest one that `matches`, of the value at `place` and those that it begins with; -1 for none.

        What a value that matches begins with matches, too.
        """
        while place >= 0 and not matches(place):
            far = self._jump[place]
            place = self._up[place] if far < 0 or matches(far) else far
        return place


def _asking(values: Iterable[_Value], is_over: Callable[[], bool]) -> Iterator[_Value]:
    """The values, while it is not over."""
    for number, value in enumerate(values):
        if number % _ASKS_EVERY == 0 and is_over():
            raise _TooMuch
        yield value


def _is_within(spans: list[tuple[int, int]], at: int, end: int) -> bool:
    """Whether one of the spans, in order, holds what is from `at` to `end`."""
    place = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return place >= 0 and end <= spans[place][1]


def _is_named(text: str, at: int, end: int) -> bool:
    """Whether a word is a part of a dotted name, as that of a kind or of a field's path."""
    before, after = text[max(0, at - 2) : at], text[end : end + 2]
    return (before[-1:] == "." and before[:1].isalnum()) or (after[:1] == "." and after[1:].isalnum())


def _comparable(value: str) -> str:
    return (_canonical(value)[0].strip() if _ODD.search(value) else value).lower()


def _canonical(text: str) -> tuple[str, list[int]]:
    """
    `text` without its ways to write a character, and where each of the characters begins in it, at last its length.

    Spaces are one, whatever and however many they are, and so are characters beyond ASCII.
    """
    chars: list[str] = []
    starts: list[int] = []
    done = 0
    for unit in _UNIT.finditer(text):
        chars += text[done : unit.start()]
        starts += range(done, unit.start())
        done = unit.end()
        char = _meaning(unit)
        if char and not (char in f" {_OTHER}" and chars and chars[-1] == char):
            chars += char
            starts += [unit.start()] * len(char)
    chars += text[done:]
    starts += range(done, len(text) + 1)
    return "".join(chars), starts


def _meaning(unit: re.Match[str]) -> str:
    """The character; "" for backslashes alone, which are doubled in each text that quotes another."""
    kind = unit.lastgroup
    if kind is None:
        return ""
    if kind in _MEANINGS:
        return _MEANINGS[kind]
    if kind == "named":
        return _ENTITIES[unit[kind]]
    number = int(unit[kind], 10 if kind == "decimal" else 16)
    if number == 0x2026:
        return "..."
    if number <= 0x20 or number == 0x7F:
        return " "
    return chr(number) if number < 0x7F else _OTHER


def _values(manifests: Iterable[Object], is_over: Callable[[], bool]) -> set[str]:
    """Those that may be secrets, in the forms in which others may repeat them; _TooMuch if that takes too long."""
    leaves: dict[bool, set[str]] = {True: set(), False: set()}
    length = 0
    for manifest in manifests:
        kind = kind_of(manifest)
        for name, value in _asking(_said(manifest), is_over):
            length += len(value)
            if length > VALUES:
                raise _TooMuch
            is_secret = kind == _SECRET or _NAMES_SECRETS.search(name) is not None
            leaves[is_secret].add(value)
    texts = [
        (is_secret, text) for is_secret, values in leaves.items() for value in values for text in (value, *_decoded(value))
    ]
    forms = {
        form
        for is_secret, text in _asking(texts, is_over)
        for form in _forms(text, is_secret=is_secret)
        if is_secret or not _NO_SECRET.fullmatch(form)
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
        yield from (line for line in lines if len(line.strip()) >= _PART)
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
