# SPDX-License-Identifier: Apache-2.0
"""Lives find each mend that is taken out, and find nothing in the same lives with it."""

from __future__ import annotations

import pytest

from tests.simulation.life import Life
from tests.simulation.mutants import MUTANTS, Mutant


def violations(seed: int, mutant: Mutant) -> str:
    return "; ".join(Life(str(seed), mutant.features).run().violations)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_it_is_found(mutant: Mutant) -> None:
    seed = mutant.found_by
    assert not violations(seed, mutant)
    with mutant.active():
        assert mutant.words in violations(seed, mutant)
