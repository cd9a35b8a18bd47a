# SPDX-License-Identifier: Apache-2.0
"""The event loop of a run: errors, deadline and requests in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.engine.run import loop as loops
from k8s_cr_driver.engine.run.loop import Loop, Overdue
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import Forbidden
from tests.fake_api import FakeApi, faults
from tests.instance import BLUE, Instance, config_map


async def asked(loop: Loop, request: Callable[[], object]) -> None:
    await loop.call(request)


def test_an_error_ends_the_run_though_another_request_never_ends() -> None:
    loop, over = Loop(Operation("test", BLUE, 0.2)), threading.Event()
    loop.start(asked(loop, lambda: over.wait(20)))
    loop.refuse(Forbidden("no"))
    with pytest.raises(Forbidden):
        loop.run(lambda: False)
    over.set()
    loop.finish()


def test_a_late_phase_names_the_seconds_of_the_whole_run() -> None:
    """A wait for a former worker is no part of the time limit, but one of the seconds."""
    operation = Operation("test", BLUE, 60)
    loop, deadline = Loop(operation), operation.deadline
    loop.let_pass(0.3)
    assert operation.deadline == pytest.approx(deadline + 0.3, abs=0.01)
    operation.deadline = time.monotonic()
    with pytest.raises(Overdue) as late:
        loop.run(lambda: False)
    assert late.value.seconds >= 0.29


def test_the_end_of_a_run_waits_for_a_worker_that_hangs_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FINISH_LIMIT", 0.2)
    loop, begun, over = Loop(Operation("test", BLUE, 0.2)), threading.Event(), threading.Event()
    loop.start(asked(loop, lambda: (begun.set(), over.wait(20))))
    assert begun.wait(20)
    began = time.monotonic()
    assert not loop.finish()
    assert time.monotonic() - began < 10
    over.set()
    assert loop.finish()


def test_a_run_with_a_worker_that_hangs_keeps_its_token(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FINISH_LIMIT", 0.2)
    begun, over = threading.Event(), threading.Event()
    api.fail(faults.held(end=over), method="PATCH", path="configmaps/a", when=lambda _: begun.set() is None)
    blue = Instance(api.url)
    run = blue.start([config_map("a")])
    assert begun.wait(10)
    blue.end()
    with pytest.raises(NotReady):
        run.result(10)
    over.set()
    inventory = api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    assert inventory["metadata"]["annotations"]["k8s-cr-driver/released"] == "false"
