# SPDX-License-Identifier: Apache-2.0
"""The check of custom resources against the API server's own: whatever it refuses, the API server would refuse, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.package import schema

from . import generated
from .oracle import Object, Oracle
from .published import PUBLISHED, SMALL, published

KNOWN_MISSES = re.compile(
    "must be of type (byte|cidr|date|datetime|duration|email|hostname|ipv4|ipv6|mac|uri|uuid)"  # formats
    r"|Checked value must be|(Maximum|Minimum) boundary|MultipleOf value must be"  # beyond 64 bits, fractions
    r"|factor in multipleOf must be positive|should be a multiple of"  # an integer as a multiple of a fraction
    r"|Required value: must not be empty|metadata"  # an embedded object's own identity and metadata
    r"|^spec\.value(\.\w+)+$"  # unknown fields below additionalProperties: true
)
"""What the API server refuses and the check leaves to it."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module" in metafunc.fixturenames:
        metafunc.parametrize("module", PUBLISHED if metafunc.config.getoption("--every-project") else SMALL)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as opened:
        yield opened


def refused(*objects: Object) -> str:
    try:
        schema.check(objects)
    except InvalidPackage as error:
        return str(error)
    return ""


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
        missed = [fault for fault in verdict.faults if not ours and not KNOWN_MISSES.search(fault)]
        assert not missed, f"a miss that is not listed: {missed}"


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


def test_published_objects_are_refused_only_where_the_server_refuses_them(oracle: Oracle, module: str) -> None:
    judged = 0
    for crd, objects in published(module):
        if oracle.refusal(crd):
            continue
        assert not refused(crd)
        for obj, verdict in zip(objects, oracle.verdicts(crd, objects), strict=True):
            judged += 1
            assert verdict.faults or not refused(crd, obj)
    assert judged >= PUBLISHED[module]
