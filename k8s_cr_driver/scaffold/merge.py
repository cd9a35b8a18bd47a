# SPDX-License-Identifier: Apache-2.0
"""
Three-way merge: what `init` made before, what the author made of it, and what `init` makes now.

Where only one has changed something, that counts. Where both have, the author's text stays, and the conflict is named.
Manifests are compared object by object, so that objects that are alike are not taken for each other, and then line by line.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import key_of
from k8s_cr_driver.package.documents import DocumentError, documents
from k8s_cr_driver.scaffold.model import Choice

LINES = 20_000
"""Of a text that is compared line by line; a longer one is a conflict as a whole."""
_SEPARATOR = "---\n"


class Outcome(NamedTuple):
    """The files that change, None for one that is deleted; and what became of each."""

    files: Mapping[str, str | None]
    choices: Sequence[Choice]
    conflicts: Sequence[str]
    """A sentence for each."""


class _Edit(NamedTuple):
    """The lines `start` to `end` of the base become `lines`."""

    start: int
    end: int
    lines: list[str]


def files(before: Mapping[str, str], author: Mapping[str, str], now: Mapping[str, str]) -> Outcome:
    """By their names; `author` has the files of the folder that `before` or `now` has."""
    changed: dict[str, str | None] = {}
    choices: list[Choice] = []
    conflicts: list[str] = []
    for name in sorted({*before, *now}):
        was, own, new = before.get(name), author.get(name), now.get(name)
        if own == new or was == new:
            continue
        if own == was:
            changed[name] = new
            choices.append(Choice(name, "deleted" if new is None else "updated" if own else "added", "as it is made now"))
        elif was is None or own is None or new is None:
            conflicts.append(f"{name}: {_what(was, own, new)}")
        else:
            text, lines = merged(was, own, new)
            if text != own:
                changed[name] = text
                choices.append(Choice(name, "merged", "your changes stay, what is new is added"))
            conflicts += [f"{name}, line {line}: changed by you and by the new source; yours stays" for line in lines]
    return Outcome(changed, choices, conflicts)


def _what(was: str | None, own: str | None, new: str | None) -> str:
    if was is None:
        return "is new, and you have a file of that name; yours stays"
    if own is None:
        return "you have deleted it, and it has changed; it stays deleted"
    return "is not made any more, and you have changed it; yours stays"


def merged(before: str, author: str, now: str) -> tuple[str, list[int]]:
    """The text, and the lines in it at which both have changed the same."""
    parts = [_documents(text) for text in (before, author, now)]
    if any(part is None for part in parts):
        return _by_lines(before, author, now)
    was, own, new = (part or {} for part in parts)
    found: dict[str, str] = {}
    lines: list[int] = []
    for key in [*own, *(key for key in new if key not in own)]:
        text, at = _of_object(was.get(key), own.get(key), new.get(key))
        start = sum(one.count("\n") + 1 for one in found.values())
        lines += [start + line for line in at]
        if text is not None:
            found[key] = text
    return _SEPARATOR.join(found.values()), lines


def _of_object(was: str | None, own: str | None, new: str | None) -> tuple[str | None, list[int]]:
    if own == new or was == new:
        return own, []
    if own == was:
        return new, []
    if was is None or own is None or new is None:
        return own, [1]
    return _by_lines(was, own, new)


def _documents(text: str) -> dict[str, str] | None:
    """The texts of the objects in a file, by their keys; None for a file that is not one object after the other."""
    found: dict[str, str] = {}
    for part in ("\n" + text.removeprefix(_SEPARATOR)).split("\n" + _SEPARATOR):
        part = part.removeprefix("\n")
        try:
            values = [value for _, value in documents(part)]
        except (DocumentError, InvalidPackage):
            return None
        if len(values) != 1 or not isinstance(values[0], dict) or "kind" not in values[0]:
            return None
        if (key := str(key_of(values[0]))) in found:
            return None
        found[key] = part if part.endswith("\n") else part + "\n"
    return found


def _by_lines(before: str, author: str, now: str) -> tuple[str, list[int]]:
    was, own, new = (text.splitlines(keepends=True) for text in (before, author, now))
    if max(map(len, (was, own, new))) > LINES:
        return author, [1]
    result: list[str] = []
    conflicts: list[int] = []
    position = 0
    for mine, theirs in _groups(_edits(was, own), _edits(was, new)):
        start = min(edit.start for edit in (*mine, *theirs))
        end = max(edit.end for edit in (*mine, *theirs))
        result += was[position:start]
        of_mine, of_theirs = _applied(was, mine, start, end), _applied(was, theirs, start, end)
        if mine and theirs and of_mine != of_theirs:
            conflicts.append(len(result) + 1)
        result += of_mine if mine else of_theirs
        position = end
    return "".join([*result, *was[position:]]), conflicts


def _edits(before: Sequence[str], after: Sequence[str]) -> list[_Edit]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [_Edit(start, end, list(after[of:to])) for tag, start, end, of, to in matcher.get_opcodes() if tag != "equal"]


def _groups(mine: Sequence[_Edit], theirs: Sequence[_Edit]) -> Iterator[tuple[list[_Edit], list[_Edit]]]:
    """The edits of both, together where they concern the same lines, or insert at one place."""
    group: tuple[list[_Edit], list[_Edit]] = ([], [])
    end, is_insertion = -1, False
    for edit, side in sorted(
        itertools.chain(((one, 0) for one in mine), ((one, 1) for one in theirs)), key=lambda pair: pair[0][:2]
    ):
        touches = edit.start < end or (edit.start == end and (is_insertion or edit.start == edit.end))
        if not touches and (group[0] or group[1]):
            yield group
            group = ([], [])
        group[side].append(edit)
        end, is_insertion = max(end, edit.end), edit.start == edit.end
    if group[0] or group[1]:
        yield group


def _applied(before: Sequence[str], edits: Sequence[_Edit], start: int, end: int) -> list[str]:
    result: list[str] = []
    for edit in edits:
        result += [*before[start : edit.start], *edit.lines]
        start = edit.end
    return [*result, *before[start:end]]
