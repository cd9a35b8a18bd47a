# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documents: each is whole, and what cannot be drawn is an error that names the line."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

SOURCE = Path(__file__).parents[1] / "doc" / "source"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", SOURCE / "pictures.py")
    assert spec and spec.loader
    module = sys.modules["pictures"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn() -> list[tuple[str, str]]:
    """The file and the text of each picture."""
    found = []
    for path in SOURCE.rglob("*.rst"):
        for part in path.read_text().split("\n.. picture:: ")[1:]:
            _, _, rest = part.partition("\n")
            lines = rest.splitlines()
            end = next((number for number, line in enumerate(lines) if line and not line.startswith("   ")), len(lines))
            found.append((path.name, textwrap.dedent("\n".join(lines[:end]))))
    return found


@pytest.mark.parametrize(("document", "text"), drawn(), ids=[name for name, _ in drawn()])
def test_the_boxes_of_a_picture_lie_apart_and_each_has_an_arrow(pictures: ModuleType, document: str, text: str) -> None:
    boxes, arrows = pictures.read(text)
    assert len({(box.x, box.y) for box in boxes.values()}) == len(boxes) > 1, document
    assert {one for arrow in arrows for one in (arrow.tail, arrow.head)} == set(boxes.values())
    picture = ElementTree.fromstring(pictures.svg(text, "a title"))
    assert len(picture.findall(f"{SVG}g")) == len(boxes)
    assert len(picture.findall(f"{SVG}path")) == len(arrows)


def test_there_are_pictures() -> None:
    assert {name for name, _ in drawn()} >= {"instantiate.rst", "readiness.rst", "credentials.rst"}


def test_a_picture_has_a_title_and_words_of_any_letters(pictures: ModuleType) -> None:
    picture = ElementTree.fromstring(pictures.svg("a 0 0 !A < B | c & d\nb 1 0 +B\na <-> b: x > y", "<title>"))
    assert picture.findtext(f"{SVG}title") == "<title>"
    assert [text.text for text in picture.iter(f"{SVG}text")] == ["x > y", "A < B", "c & d", "B"]
    assert [group.get("class") for group in picture.iter(f"{SVG}g")] == ["box bad", "box good"]


@pytest.mark.parametrize(
    ("tail", "head", "expected"),
    [
        ((0, 0), (1, 0), [(98, 0), (178, 0)]),
        ((1, 0), (0, 0), [(178, 0), (98, 0)]),
        ((0, 0), (0, 1), [(0, 30), (0, 62)]),
        ((0, 1), (0, 0), [(0, 62), (0, 30)]),
        ((0, 0), (1, 1), [(0, 30), (0, 46), (276, 46), (276, 62)]),
        ((1, 1), (0, 0), [(276, 62), (276, 46), (0, 46), (0, 30)]),
    ],
)
def test_the_way_of_an_arrow(
    pictures: ModuleType, tail: tuple[int, int], head: tuple[int, int], expected: list[tuple[float, float]]
) -> None:
    boxes = [pictures.Box(x * pictures.COLUMN, y * pictures.ROW, "", ("a",)) for x, y in (tail, head)]
    assert pictures.way(*boxes) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a 0 0 A\na -> b", "line 2: there is no box b above it"),
        ("a 0 0 A\n\nnothing", "line 3: is neither a box nor an arrow"),
        (f"a 0 0 {'A' * 30}", "line 1: has more than its box has room for"),
        ("a 0 0 A | b | c | d", "line 1: has more than its box has room for"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(pictures: ModuleType, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pictures.svg(text, "a title")
