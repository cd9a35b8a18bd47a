# SPDX-License-Identifier: Apache-2.0
"""
Removes values of manifests from what the API server, a webhook or a controller says about them.

Nobody knows how they word it, or which field of a custom resource is secret. So the values are looked for in the text itself:
whole or cut, their lines, quoted and escaped, in any case, in hex and base64 and decoded. A reader still needs what names
things: names, kinds, paths and the like stay, and so do short values and common words. Both sides may be hostile: the author
of an object chooses its values, a server its texts. So the search has a budget, and asks the deadline.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from k8s_cr_driver.kube.secret_values import NO_SECRET, PART, TooMuch, asking, secret_values
from k8s_cr_driver.objects.keys import CRD, Object, key_of, kind_of
from k8s_cr_driver.redaction import CUT, FOREIGN_LIMIT, REMOVED

SHORTEST = 5
"""Characters of a value that is removed. Shorter ones are words of every text."""
TEXTS = 64 * 1024
"""Characters that are searched of all texts of one error; of each text beyond them the first BRIEF."""
BRIEF = 200
UNSEARCHED = "[text removed: too much to search it for secret values]"
_LONGEST_PATH = 256
"""Characters of a program's path."""

_COMMON = frozenset({
    *("false", "default", "always", "never", "enabled", "disabled", "debug", "warning", "error", "standard", "custom"),
    *("running", "stopped", "ready", "present", "absent", "create", "update", "delete", "retain", "required", "optional"),
    *("cluster", "namespace", "network", "server", "service", "https"),
})
"""Words of every text, whatever field has them."""
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
            values = asking(secret_values(several, is_over) - names, is_over)
            found = {_comparable(value[:FOREIGN_LIMIT].strip()) for value in values}
        except TooMuch:
            self._is_unknown, found = True, set()
        self._values = sorted(value for value in found if len(value) >= SHORTEST and value not in _COMMON)
        self._begins = {value[:SHORTEST] for value in self._values}
        self._prefixes = _Prefixes(self._values)
        self._reversed = sorted(value[::-1] for value in self._values if len(value) > PART)
        self._ends = {value[-PART:] for value in self._values if len(value) > PART}

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
        place = bisect_left(cuts, at + PART)
        end = cuts[place] if place < len(cuts) else len(text)
        part = text[at:end]
        number = bisect_left(self._values, part)
        is_begin = number < len(self._values) and self._values[number].startswith(part)
        return end if is_begin and len(part) >= PART and not _is_harmless(part) else at

    def _end(self, text: str, at: int, rest: int) -> int:
        """Where the longest end of a value ends that begins at `at`, where a mark says that something is cut, within `rest`."""
        for end in range(rest, at + PART - 1, -1):
            if text[end - PART : end] in self._ends and not _is_harmless(text[at:end]):
                part = text[at:end][::-1]
                number = bisect_left(self._reversed, part)
                if number < len(self._reversed) and self._reversed[number].startswith(part):
                    return end
        return at


def _is_harmless(part: str) -> bool:
    return len(part) <= _LONGEST_PATH and NO_SECRET.fullmatch(part) is not None


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
