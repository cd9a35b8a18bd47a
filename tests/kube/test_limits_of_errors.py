# SPDX-License-Identifier: Apache-2.0
"""An error of a cluster costs a number of steps that its sender cannot choose: texts, causes and values have budgets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube import bounded, connection
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.refusals import CAUSES, NO_STATUS
from k8s_cr_driver.kube.sent_values import BRIEF, TEXTS, UNSEARCHED, SentValues
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, faults
from tests.instance import crontab

PATH = "/apis/stable.example.com/v1/namespaces/default/crontabs/tab"


def steps(act: Callable[[], object]) -> int:
    """The calls of functions, those of C among them."""
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def nested(count: int) -> Object:
    """Values that are the begins of each other."""
    return {**crontab("tab"), "spec": {"auth": ["!" * length for length in range(5, count + 5)]}}


def refused(
    api: FakeApi, causes: list[Object], body: Object, message: str = "it is invalid", deadline: float | None = None
) -> ApiError:
    api.fail(faults.status(422, "Invalid", message, causes=causes), method="PATCH")
    limits = {} if deadline is None else {"deadline": deadline}
    with Connection(Endpoint(api.url), **limits) as connection, pytest.raises(ApiError) as raised:
        connection.request("PATCH", PATH, body=body)
    return raised.value


def test_values_that_begin_with_each_other_take_a_logarithm_of_steps() -> None:
    text = ("!" * 500 + "y") * 16
    few, many = SentValues([nested(30)]), SentValues([nested(480)])
    assert steps(lambda: many.removed_from(text)) < 5 * steps(lambda: few.removed_from(text))


@pytest.mark.parametrize("length", [30, 5, 8, 17, 4])
def test_the_longest_value_is_found_of_those_that_begin_with_each_other(length: int) -> None:
    values = SentValues([{**nested(30), "data": {"a": "!" * 12 + "z"}}])
    shown = f"[{'!' * length}]" if length < 5 else "[[value removed]]"
    assert values.removed_from(f"[{'!' * length}]") == shown


def test_an_error_says_how_many_more_causes_there_are(api: FakeApi) -> None:
    causes = [{"reason": "FieldValueInvalid", "field": f"spec.a{n}", "message": "no"} for n in range(CAUSES + 812)]
    found = refused(api, causes, crontab("tab")).causes
    assert len(found) == CAUSES + 1
    assert found[-1] == ("", "", "and 812 more")


def test_all_texts_of_an_error_have_one_budget(api: FakeApi) -> None:
    causes = [{"reason": "FieldValueInvalid", "field": f"spec.a{n}", "message": "no way " * 1_000} for n in range(200)]
    found = refused(api, causes, crontab("tab")).causes
    assert sum(len(text) for cause in found for text in cause) < TEXTS + 10_000
    assert found[-1][2] == f"and {200 - len(found) + 1} more"


def test_a_text_beyond_the_budget_of_an_error_is_brief() -> None:
    values = SentValues([crontab("tab")])
    for _ in range(10):
        last = values.removed_from("no way " * 2_000)
    assert last.endswith(" ... (cut)") and len(last) == BRIEF


def test_an_error_with_more_values_than_it_has_time_for_shows_no_text(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SHORTEST_TIMEOUT", 30)  # for the response of a slow machine
    causes = [{"reason": "a", "field": "spec.auth", "message": "hunter2x"}]
    body = {**crontab("tab"), "spec": {"auth": ["hunter2x"] * 3_000}}
    error = refused(api, causes, body, "hunter2x is wrong", deadline=time.monotonic())
    assert error.message == UNSEARCHED
    assert error.causes == (("a", "spec.auth", UNSEARCHED),)


def test_an_error_of_any_length_is_read_up_to_a_limit(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "ERROR_LIMIT", 200_000)
    error = refused(api, [{"field": "spec"}] * 20_000, crontab("tab"))
    assert (error.status, error.message, error.causes) == (422, NO_STATUS, ())
