# SPDX-License-Identifier: Apache-2.0
"""The check of custom resources against the API server's own: whatever it refuses, the API server would refuse, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from k8s_cr_driver.package import schema

from . import generated
from .comparison import NOT_LISTED, compare, missed, refused
from .oracle import Oracle
from .published import PUBLISHED, SMALL, published


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as opened:
        yield opened


@settings(derandomize=True, max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_generated_objects_are_refused_only_where_the_server_refuses_them(oracle: Oracle, data: Any) -> None:
    node = data.draw(generated.SCHEMAS)
    crd = generated.definition(node)
    wrong = oracle.refusal(crd)
    assert wrong or not refused(crd)
    if wrong:
        return
    objects = [generated.tab(data.draw(generated.values(node))) for _ in range(5)]
    for obj, verdict in zip(objects, oracle.verdicts(crd, objects), strict=True):
        ours = refused(crd, obj)
        assert verdict.faults or not ours, f"a false error: {ours}"
        assert ours or not verdict.faults or missed(verdict.faults) != NOT_LISTED, f"a miss: {verdict.faults}"


@settings(derandomize=True, max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_generated_objects_without_their_nulls_are_applied_if_they_can_be_created(oracle: Oracle, data: Any) -> None:
    node = data.draw(generated.SCHEMAS)
    crd = generated.definition(node)
    if oracle.refusal(crd):
        return
    obj = generated.tab(data.draw(generated.values(node)))
    (created,) = oracle.verdicts(crd, [obj])
    schema.remove_nulls([obj], lambda kind: crd)
    (left,) = oracle.verdicts(crd, [obj])
    assert created.faults or not (left.faults or left.apply)


def test_published_objects_are_refused_only_where_the_server_refuses_them(
    oracle: Oracle, pytestconfig: pytest.Config
) -> None:
    modules = PUBLISHED if pytestconfig.getoption("--every-project") else SMALL
    found = compare(oracle, published(modules))
    assert [false for figures in found.values() for false in figures.false] == []
    assert sum(figures.misses[NOT_LISTED] for figures in found.values()) == 0
    assert [module for module in modules if found[module].published < PUBLISHED[module]] == []
