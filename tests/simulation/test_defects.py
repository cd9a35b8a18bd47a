"""Trouble for which the engine has no remedy yet: each is found. Once it has one, its name leaves `UNMENDED` and this table."""

from __future__ import annotations

import pytest

from tests.simulation.features import UNMENDED
from tests.simulation.life import Life

FOUND: dict[str, tuple[str, range, str]] = {
    "two workers": ("latency", range(100), "is left"),
    "streams not found": ("", range(160), "is left"),
    "lookalikes": ("", range(20), "persistentvolumeclaims"),
    "early rollbacks": ("two workers,latency", range(100), "is left"),
}
"""What else has to be in such a life, the seeds among which one finds it, and what is said of it."""


def test_all_that_is_not_mended_is_in_the_table() -> None:
    assert set(FOUND) == UNMENDED


@pytest.mark.parametrize("feature", FOUND)
def test_it_is_found(feature: str) -> None:
    others, seeds, words = FOUND[feature]
    features = frozenset({feature, *filter(None, others.split(","))})
    assert any(words in violation for seed in seeds for violation in Life(str(seed), features).run().violations)
