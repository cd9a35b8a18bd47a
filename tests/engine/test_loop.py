# SPDX-License-Identifier: Apache-2.0
"""The event loop of a run: errors, deadline and requests in flight."""

from __future__ import annotations

import threading

import pytest

from k8s_cr_driver.engine.loop import Loop
from k8s_cr_driver.engine.not_ready import NotReady
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.errors import Forbidden
from tests.instance import BLUE


def test_an_error_ends_the_run_though_another_request_never_ends() -> None:
    loop, over = Loop(Operation.lasting(0.2, id="test", instance=BLUE)), threading.Event()
    loop.send(lambda: over.wait(20), lambda _: None, lambda _: None)
    loop.refuse(Forbidden("no"))
    with pytest.raises(Forbidden):
        loop.run(lambda: False, lambda seconds: NotReady("late", []))
    over.set()
    loop.finish()
