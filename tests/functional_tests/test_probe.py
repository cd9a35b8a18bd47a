# SPDX-License-Identifier: Apache-2.0
"""For how long an API server did not respond, by the requests that a probe has sent."""

from __future__ import annotations

import pytest

from functional_tests.node_clusters.probe import Asked, seconds_without


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param("", 0.0, id="none"),
        pytest.param("+++", 0.0, id="all were answered"),
        pytest.param("+-+", 1.0, id="one that was under way was lost"),
        pytest.param("+--+", 2.0, id="from the first that failed until one was sent that did not"),
        pytest.param("-+--+", 3.0, id="two holes"),
        pytest.param("+-", 0.0, id="what has not come back is for the caller to see"),
    ],
)
def test_seconds_without_a_response(asked: str, seconds: float) -> None:
    found = [Asked(float(sent), one == "+") for sent, one in enumerate(asked)]
    assert seconds_without(found[::-1]) == seconds, "they end in any order"
