# SPDX-License-Identifier: Apache-2.0
"""Pictures from text: boxes on a grid and arrows between them, as SVG within the page, in the colours of its theme.

A line is a box, `NAME COLUMN ROW TITLE | SECOND LINE`, or an arrow, `NAME -> NAME` or `NAME <-> NAME`, with `: WORDS` after it
where it needs words. Columns and rows are numbers from 0. A `!` before the title marks what is wrong, a `+` what is well, and a
`~` what is not part of the driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise

COLUMN, ROW = 276, 92
WIDTH, HEIGHT = 196, 60
LINE = 17
LETTERS = 29
"""Of a line in a box, at most."""
Point = tuple[float, float]
_MARKS = {"!": "bad", "+": "good", "~": "other"}
_MARKER = 'markerWidth="8" markerHeight="8" orient="auto-start-reverse"'
_BOX = re.compile(r"(\w+)\s+(\d+)\s+(\d+)\s+(.+)")
_ARROW = re.compile(r"(\w+) (<?->) (\w+)(?:: (.+))?")


@dataclass(frozen=True)
class Box:
    """Of the picture: its middle in pixels, its kind of `_MARKS` or "", and its lines, of which the first is the title."""

    x: float
    y: float
    kind: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Arrow:
    """From one box to another, perhaps in both directions, with words."""

    tail: Box
    head: Box
    words: str
    is_double: bool


def read(text: str) -> tuple[dict[str, Box], list[Arrow]]:
    """The boxes by their names, and the arrows. ValueError names a line that is neither, or whose words do not fit."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if arrow := _ARROW.fullmatch(line):
            if missing := [name for name in arrow.group(1, 3) if name not in boxes]:
                raise ValueError(f"line {number}: there is no box {missing[0]} above it")
            arrows.append(Arrow(boxes[arrow[1]], boxes[arrow[3]], arrow[4] or "", arrow[2] == "<->"))
        elif box := _BOX.fullmatch(line):
            kind = _MARKS.get(box[4][0], "")
            lines = tuple(part.strip() for part in (box[4][1:] if kind else box[4]).split("|"))
            boxes[box[1]] = Box((int(box[2]) + 0.5) * COLUMN, (int(box[3]) + 0.5) * ROW, kind, lines)
            if len(lines) > HEIGHT // LINE or max(map(len, lines)) > LETTERS:
                raise ValueError(f"line {number}: has more than its box has room for")
        elif line:
            raise ValueError(f"line {number}: is neither a box nor an arrow")
    return boxes, arrows


def svg(text: str, title: str) -> str:
    """The picture; `title` is what a reader who cannot see it gets."""
    boxes, arrows = read(text)
    width = max(box.x for box in boxes.values()) + COLUMN / 2
    height = max(box.y for box in boxes.values()) + ROW / 2
    parts = [part for arrow in arrows for part in _arrow(arrow)] + [part for box in boxes.values() for part in _box(box)]
    head = '<path d="M0 0 8 4 0 8z"/>'
    marker = f'<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" {_MARKER}>{head}</marker>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" viewBox="0 0 {width:g} {height:g}"'
            f' style="max-width: {width:g}px">',
            f"<title>{escape(title)}</title>",
            f"<defs>{marker}</defs>",
            *parts,
            "</svg>",
        ]
    )


def _box(box: Box) -> Iterator[str]:
    corner = f'x="{box.x - WIDTH / 2:g}" y="{box.y - HEIGHT / 2:g}"'
    yield f'<g class="box {box.kind}"><rect {corner} width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
    top = box.y - (len(box.lines) - 1) * LINE / 2 + 5
    for number, words in enumerate(box.lines):
        place = f'x="{box.x:g}" y="{top + number * LINE:g}"'
        yield f'<text class="{"more" if number else "title"}" {place}>{escape(words)}</text>'
    yield "</g>"


def _arrow(arrow: Arrow) -> Iterator[str]:
    points = way(arrow.tail, arrow.head)
    path = " ".join(f"{'L' if number else 'M'}{x:g} {y:g}" for number, (x, y) in enumerate(points))
    start = ' marker-start="url(#head)"' if arrow.is_double else ""
    yield f'<path class="arrow" d="{path}" marker-end="url(#head)"{start}/>'
    if arrow.words:
        (x0, y0), (x1, y1) = max(pairwise(points), key=_length)
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        place = f'x="{x:g}" y="{y - 6:g}"' if y0 == y1 else f'x="{x + 8:g}" y="{y + 2:g}" style="text-anchor: start"'
        yield f'<text class="words" {place}>{escape(arrow.words)}</text>'


def _length(line: tuple[Point, Point]) -> float:
    (x0, y0), (x1, y1) = line
    return abs(x0 - x1) + abs(y0 - y1)


def way(tail: Box, head: Box) -> list[Point]:
    """The corners of an arrow: straight between boxes of a row or a column, else down or up, across, and on."""
    right, below = head.x > tail.x, head.y > tail.y
    if tail.y == head.y:
        side = WIDTH / 2 if right else -WIDTH / 2
        return [(tail.x + side, tail.y), (head.x - side, head.y)]
    side = HEIGHT / 2 if below else -HEIGHT / 2
    if tail.x == head.x:
        return [(tail.x, tail.y + side), (head.x, head.y - side)]
    middle = head.y - side - (ROW - HEIGHT) / 2 * (1 if below else -1)
    return [(tail.x, tail.y + side), (tail.x, middle), (head.x, middle), (head.x, head.y - side)]
