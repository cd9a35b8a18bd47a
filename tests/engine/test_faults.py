# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong with any one request: the set becomes real, or a clear error comes and the next run does it."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run import loop
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube import watch
from k8s_cr_driver.objects.keys import Object, ObjectKey
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, obj, state, wait_for

BRINGS = [obj("v1", "Namespace", "blue"), crontab_crd()]
PACKAGE = [crontab("one", "blue"), crontab("two", "blue"), config_map("a", "blue"), *BRINGS]
NEXT = [crontab("two", "blue", "0 * * * *"), crontab("three", "blue"), *BRINGS]

LIFE = {"instantiate": ([], PACKAGE), "change": (PACKAGE, NEXT), "terminate": (PACKAGE, [])}
"""What there is before -> what there shall be."""

ONCE = {
    "reset before": faults.reset_before(),
    "reset after": faults.reset_after(),
    "truncated": faults.truncated(),
    "conflict": faults.conflict(),
    "too many": faults.status(429, "TooManyRequests", "slow down", retry_after=0),
    "500": faults.internal(),
    "503": faults.unavailable(),
}
LOST = ("reset after", "truncated")
NOT_DONE = [name for name in ONCE if name not in LOST]
STREAM = {
    "410": faults.stream_error(),
    "410 after an event": faults.stream_error(after=1),
    "end": faults.stream_end(),
    "end after an event": faults.stream_end(after=1),
    "cut": faults.stream_cut(after=1),
    "reset": faults.stream_reset(),
    "blank line": faults.blank_line(),
    "half-open": faults.half_open(),
}


@contextlib.contextmanager
def cluster(before: Sequence[Object]) -> Iterator[tuple[FakeApi, Instance]]:
    with FakeApi(like=_with(bool(before))) as api:
        yield api, Instance(api.url)
        assert not api.crashes, "\n".join(api.crashes)


@functools.cache
def _with(package: bool) -> FakeApi:
    with FakeApi() as api:
        if package:
            Instance(api.url).reconcile(PACKAGE)
        return api


@functools.cache
def faultless(verb: str) -> tuple[list[Request], dict[ObjectKey, Object]]:
    """The requests of a run without faults, and what is there after it."""
    before, wanted = LIFE[verb]
    with cluster(before) as (api, one):
        one.reconcile(wanted)
        return list(api.requests), state(api)


def check(verb: str, chosen: Iterable[tuple[int, str]]) -> None:
    """Runs a verb once for each (request's index, name of its fault)."""
    before, wanted = LIFE[verb]
    _, expected = faultless(verb)
    for index, name in chosen:
        for afterwards in ("retry", "terminate"):
            with cluster(before) as (api, one):
                api.fail((ONCE | STREAM)[name], index=index)
                try:
                    one.reconcile(wanted)
                except DriverError as error:
                    assert str(error)
                    last = wanted if afterwards == "retry" else []
                    one.reconcile(last)
                    assert state(api) == (expected if last else {}), f"{afterwards} after {name} at {index}"
                else:
                    assert state(api) == expected, f"{name} at {index}:\n{api.requests}"
                    break


@pytest.mark.parametrize("verb", LIFE)
@pytest.mark.parametrize("fault", LOST)
def test_the_response_to_any_one_request_is_lost(verb: str, fault: str) -> None:
    requests, _ = faultless(verb)
    check(verb, ((request.index, fault) for request in requests))


@pytest.mark.parametrize("verb", LIFE)
@pytest.mark.parametrize("turn", range(2))
def test_any_one_request_is_answered_with_an_error(verb: str, turn: int) -> None:
    requests, _ = faultless(verb)
    check(verb, ((request.index, NOT_DONE[(request.index + turn) % len(NOT_DONE)]) for request in requests))


@pytest.mark.parametrize("verb", LIFE)
@pytest.mark.parametrize("fault", STREAM)
def test_a_fault_of_any_one_stream(verb: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "IDLE_LIMIT", 0.5)
    monkeypatch.setattr(watch, "INITIAL_LIMIT", 0.5)
    requests, _ = faultless(verb)
    check(verb, ((request.index, fault) for request in requests if request.watch))


@pytest.mark.parametrize("verb", LIFE)
def test_a_worker_that_dies_at_any_request_leaves_nothing_that_the_next_cannot_find(verb: str) -> None:
    """The next retries, or terminates."""
    before, wanted = LIFE[verb]
    _, expected = faultless(verb)
    for index in itertools.count():
        last = wanted if index % 2 else []
        with cluster(before) as (api, dying):

            def is_dead(request: Request, index: int = index, dying: Instance = dying) -> bool:
                if request.index >= index:
                    dying.stop.set()
                return request.index >= index

            api.fail(faults.reset_before(), when=is_dead, times=10**6)
            with contextlib.suppress(DriverError):
                dying.reconcile(wanted)
            if not dying.stop.is_set():
                return
            api.clear_faults()
            Instance(api.url).reconcile(last)
            assert state(api) == (expected if last else {}), f"after death at {index}"


def test_an_object_that_goes_between_the_conflict_and_the_read_is_made(api: FakeApi) -> None:
    api.fail(faults.conflict(), method="PATCH", path="configmaps/a")
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    assert api.names("ConfigMap", "default") == ["a", f"k8s-cr-driver-{BLUE}"]


@pytest.mark.parametrize("kind", [[obj("v1", "Namespace", "home")], [crontab_crd()]], ids=["Namespace", "CRD"])
def test_a_removal_that_is_always_in_conflict_ends_at_the_deadline(api: FakeApi, kind: list[Object]) -> None:
    blue = Instance(api.url)
    blue.reconcile(kind)
    blue.seconds = 1
    api.fail(faults.conflict(), method="DELETE", times=1000)
    with pytest.raises(NotReady):
        blue.terminate()
    assert len(api.requests.select("DELETE")) < 20
    api.clear_faults()
    blue.seconds = 60
    blue.terminate()
    assert state(api) == {}


def test_a_cluster_that_is_silent_holds_up_no_other_one(api: FakeApi) -> None:
    """Its requests hold all threads of its own operation, and none of another one in the same process."""
    several = [config_map(f"a{number}") for number in range(3 * loop.THREADS)]
    with FakeApi() as silent:
        silent.fail(faults.hang(), method="PATCH", path="/configmaps/a", times=100)
        blue = Instance(silent.url)
        blue.start(several)
        wait_for(silent, lambda: len(silent.requests.select("PATCH", "/configmaps/a")) == loop.THREADS)
        Instance(api.url).reconcile(several)
        assert len(silent.requests.select("PATCH", "/configmaps/a")) == loop.THREADS
        blue.stop.set()
