# SPDX-License-Identifier: Apache-2.0
"""Trouble for which the engine has no remedy yet is found; once it has one, its name leaves `UNMENDED` and this table."""

from __future__ import annotations

import pytest

from tests.simulation.features import UNMENDED
from tests.simulation.life import Life

FOUND: dict[str, tuple[str, range, str]] = {
    "recreated": ("", range(185, 189), "Conflict"),
    "early rollbacks": ("two workers,latency", range(52, 56), "is left"),
}
"""What else has to be in such a life, seeds among which one finds it, and what is reported; the others take thousands."""


def test_the_table_has_only_what_is_not_mended() -> None:
    assert set(FOUND) <= UNMENDED


@pytest.mark.parametrize("feature", FOUND)
def test_it_is_found(feature: str) -> None:
    others, seeds, words = FOUND[feature]
    features = frozenset({feature, *filter(None, others.split(","))})
    assert any(words in violation for seed in seeds for violation in Life(str(seed), features).run().violations)
