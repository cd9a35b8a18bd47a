"""Generic rules alone are right about most of what published controllers report."""

from __future__ import annotations

import pytest

from tests.resources.health.figures import FOLDS, cases, figures


def test_figures_of_published_states_do_not_fall() -> None:
    reached = figures(cases())
    assert reached.cases == 669
    assert reached.agreement >= 0.925
    assert reached.exact >= 0.84
    assert reached.false_ready <= 0.038


@pytest.mark.parametrize("fold", range(FOLDS))
def test_no_fold_of_api_groups_falls_behind(fold: int) -> None:
    reached = figures([case for case in cases() if case.fold == fold])
    assert reached.agreement >= 0.89
    assert reached.exact >= 0.80
    assert reached.false_ready <= 0.07
