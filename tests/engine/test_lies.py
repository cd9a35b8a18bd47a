# SPDX-License-Identifier: Apache-2.0
"""A cluster may lie: whatever it answers to any one request, a run ends in time and in order, and the next one is right."""

from __future__ import annotations

import contextlib
import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.errors import DriverError, NotOurs
from k8s_cr_driver.objects.keys import Object, ObjectKey
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, obj, state

BRINGS = [obj("v1", "Namespace", "blue"), crontab_crd()]
BEFORE = [crontab("one", "blue"), config_map("a", "blue"), *BRINGS]
AFTER = [crontab("one", "blue", "0 * * * *"), crontab("two", "blue"), *BRINGS]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda some: st.lists(some, max_size=2), max_leaves=3
)

UNKNOWABLE = ("/api", "/apis", f"/k8s-cr-driver-{BLUE}")
"""Who is told that a kind is not served, or of another inventory, cannot know better. Nor who is told that it is stored."""


@functools.cache
def before() -> FakeApi:
    with FakeApi() as api:
        Instance(api.url).reconcile(BEFORE)
        return api


@functools.cache
def truth() -> tuple[list[Request], dict[ObjectKey, Object]]:
    """The requests of a run without lies, and what is there after it."""
    with FakeApi(like=before()) as api:
        Instance(api.url).reconcile(AFTER)
        return list(api.requests), state(api)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all that an answer holds."""
    if isinstance(value, dict):
        inner = [place for key, part in value.items() for place in places(part, (*path, key))]
    elif isinstance(value, list):
        inner = [place for index, part in enumerate(value) for place in places(part, (*path, index))]
    else:
        inner = []
    return [path, *inner]


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    parts = dict(value) if isinstance(value, dict) else list(value)
    parts[path[0]] = put(parts[path[0]], path[1:], other)
    return parts


@st.composite
def lies(draw: st.DrawFn) -> tuple[int, bytes]:
    """(request's index, an answer that is true but for one place of it, or has nothing to do with the question)."""
    requests, _ = truth()
    index = draw(st.integers(0, len(requests) - 1))
    true = requests[index].response
    if requests[index].watch:
        true = {"type": draw(st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])), "object": BEFORE[0]}
    if true is None or draw(st.integers(0, 9)) == 0:
        return index, draw(st.binary(max_size=20) | JSON.map(lambda value: json.dumps(value).encode()))
    return index, json.dumps(put(true, draw(st.sampled_from(places(true))), draw(JSON))).encode() + b"\n"


@given(lies())
def test_any_malformed_response_to_any_request(lie: tuple[int, bytes]) -> None:
    index, body = lie
    with FakeApi(like=before()) as api:
        api.fail(faults.lie(body), index=index)
        with contextlib.suppress(DriverError):
            Instance(api.url, seconds=1).reconcile(AFTER)
        api.clear_faults()
        is_knowable = not truth()[0][index].path.endswith(UNKNOWABLE)
        with contextlib.nullcontext() if is_knowable else contextlib.suppress(NotOurs):
            Instance(api.url).reconcile(AFTER)
        if is_knowable:
            assert state(api) == truth()[1]
        assert not api.crashes, "\n".join(api.crashes)


def test_an_event_of_an_unserved_version_does_not_stop_a_deletion() -> None:
    with FakeApi(like=before()) as api:
        live = {**api.get("CronTab", "blue", "one"), "apiVersion": "stable.example.com/v9"}
        end = {**BEFORE[0], "metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}
        events = [{"type": "ADDED", "object": live}, {"type": "BOOKMARK", "object": end}]
        body = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        api.fail(faults.lie(body), path="crontabs", when=lambda request: request.watch)
        Instance(api.url).reconcile([])
        assert api.faults_pending == 0
        assert state(api) == {}


@pytest.mark.parametrize("again", [[], AFTER])
def test_a_kind_that_cannot_be_read_is_the_first_cause(again: list[Object]) -> None:
    """Not that a controller has done nothing, nor that the server does not list the kind: it does."""
    deep = b'{"type":"ADDED","object":' + b'{"a":' * 500 + b"1" + b"}" * 501 + b"\n"
    with FakeApi(like=before()) as api:
        api.fail(faults.lie(deep), path="/crontabs$", times=1000)
        with pytest.raises(NotReady) as found:
            Instance(api.url, seconds=2).reconcile(again)
    [headline, first, *others] = str(found.value).splitlines()
    cause = "WATCH crontabs: the JSON is nested deeper than 300 levels"
    assert first == f"CronTab.stable.example.com *: Waiting (NotListed): {cause}", headline
    assert not any(cause in line for line in others)
