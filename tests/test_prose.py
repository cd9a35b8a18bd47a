# SPDX-License-Identifier: Apache-2.0
"""README and documents fit a terminal, as the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COLUMNS = 128

PROSE = [*ROOT.glob("*.md"), *ROOT.glob("sample_packages/*.md"), *(ROOT / "doc" / "source").rglob("*.rst")]


@pytest.mark.parametrize("document", PROSE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_line_of_a_document_is_longer_than_one_of_the_code(document: Path) -> None:
    lines = document.read_text().splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > COLUMNS] == []
