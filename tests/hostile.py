# SPDX-License-Identifier: Apache-2.0
"""Names and texts with control characters, and what they must not do to a log or a terminal."""

from __future__ import annotations

import re

FORGED = "FORGED"
"""What begins a line only if somebody has written one."""
TEXTS = (f"a\n{FORGED}", f"a\r\n{FORGED} \x1b[2J", f"a\u2028{FORGED}\x85{FORGED}\u202e", f"a\x0b{FORGED}\x00\x7f\x9b")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def assert_harmless(text: str) -> None:
    """Whether `text`, of a log or a terminal, has no line and no control character of others."""
    for line in text.split("\n"):
        assert not line.lstrip().startswith(FORGED), line
        assert not CONTROLS.search(line), line
