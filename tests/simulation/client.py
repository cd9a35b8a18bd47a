# SPDX-License-Identifier: Apache-2.0
"""In the place of the engine's `Connection`: requests that travel in virtual time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, ClassVar

from greenlet import GreenletExit

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube.clock import ServerClock
from k8s_cr_driver.kube.restarts import Restarts
from tests.simulation.caches import Response
from tests.simulation.entries import Actor
from tests.simulation.scheduler import active
from tests.simulation.servers import Sent, Servers


class Memory:
    """Lines are objects here, which take nothing from a budget of bytes."""

    def of_response(self, data: Any) -> contextlib.AbstractContextManager[None]:
        del data
        return contextlib.nullcontext()


class Client:
    """The requests of one run of one worker, which lives in the process that made it."""

    servers: ClassVar[Servers]

    def __init__(self, endpoint: Any, *options: Any) -> None:
        del options
        self.endpoint, self.clock, self.memory, self.restarts = endpoint, ServerClock(), Memory(), Restarts()
        process = active().here().process
        self._process, self._actor = process, Actor(endpoint.url, process.name)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def until(self, deadline: float, is_stopped: Any) -> Client:
        del deadline, is_stopped
        return self

    def is_over(self) -> bool:
        return False

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, str]] = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        read_timeout: float = 60.0,
        adopted: bool = False,
        live: Any = None,
        arrived: Callable[[bytes], object] | None = None,
        received: Callable[[int], None] | None = None,
    ) -> Any:
        del adopted, live, arrived, received
        sent = Sent(method, path, dict(query), body, content_type.partition(";")[0], accept)
        return self._send(sent, read_timeout)

    def get_if_changed(self, path: str, accept: str, etag: str) -> tuple[Any, str]:
        """As an API server that has ETags for what it serves."""
        found = self.request("GET", path, accept=accept)
        now = f"{path} {len(found['items'])}"
        return None if etag == now else (found, now)

    def stream(self, path: str, query: Iterable[tuple[str, str]], idle_limit: float) -> Response:
        response: Response = self._send(
            Sent("GET", path, dict(query), None, "application/json", "application/json", idle_limit), 60.0
        )
        return response

    def _send(self, sent: Sent, patience: float) -> Any:
        servers, process = self.servers, self._process
        scheduler, weather = servers.scheduler, servers.weather
        if not process.is_alive:
            raise GreenletExit
        waiter = scheduler.waiter()

        def arrive() -> None:
            servers.execute(sent, self._actor)
            if not weather.loses_answer():
                scheduler.after(weather.travel(), answer)

        def answer() -> None:
            sent.is_answered = True
            waiter.wake()

        if weather.crashes(process):
            process.crash()
            servers.ledger.note(f"{process.name} crashes")
        scheduler.after(weather.travel(), arrive)
        waiter.wait(patience)
        if not sent.is_answered:
            raise TransportError(f"{sent}: timed out")
        if sent.error is not None:
            raise sent.error
        if sent.applied is not None:
            servers.ledger.jobs.applied(process.name, *sent.applied)
        return sent.answer
