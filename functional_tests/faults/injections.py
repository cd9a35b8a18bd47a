# SPDX-License-Identifier: Apache-2.0
"""What befalls a request: the faults of the network, and of an API server that is busy, broken or behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..proxy import Among, Exchange, Fault, any_request, is_watch, is_write


def reset_before(exchange: Exchange) -> None:
    """The API server has never got it."""
    exchange.reset()


def reset_after(exchange: Exchange) -> None:
    """It is done, and the answer is lost."""
    exchange.execute()
    exchange.reset()


def truncated(exchange: Exchange) -> None:
    """It is done, and half of the answer arrives; of a watch, half of an event."""
    data = exchange.execute()
    if exchange.is_watch:
        exchange.begin_stream()
        exchange.write_chunk(b'{"type":"MODIFIED","object":{"kind":')
    else:
        exchange.send(200, {"Content-Type": "application/json"}, data, whole=False)
    exchange.end()


def half_open(exchange: Exchange) -> None:
    """A stream that stays open and never says anything."""
    exchange.begin_stream()
    exchange.await_client()


def answer(code: int, reason: str, message: str, retry_after: int | None = None) -> Fault:
    """The API server's refusal; nothing is written. A watch of a past that is forgotten begins well and ends with 410."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return lambda exchange: exchange.refuse(code, reason, message, headers)


def killing(kill: Callable[[], None]) -> Fault:
    """The API server executes the request of a process that does not live to read the answer."""

    def strike(exchange: Exchange) -> None:
        answer = exchange.forward()
        kill()
        answer.close()
        exchange.reset()

    return strike


@dataclass(frozen=True)
class Injection:
    """A fault under the `name` by which it is counted; None kills the process that has sent the request.

    `among`: which requests it may befall. `silent`: the client learns nothing of it but by its own deadline.
    """

    name: str
    fault: Fault | None
    among: Among = any_request
    silent: bool = False


# All that a process has read dies with it: killed at a read, it leaves what its last write has left.
SIGKILL = Injection("SIGKILL", None, among=is_write)
HALF_OPEN = Injection("half-open stream", half_open, among=is_watch, silent=True)

OF_REQUESTS = (
    Injection("reset before", reset_before),
    Injection("reset after", reset_after),
    Injection("truncated", truncated),
    Injection("409", answer(409, "Conflict", "the object has been modified; please apply your changes to the latest version")),
    Injection("410", answer(410, "Expired", "too old resource version: 1 (2)")),
    Injection("429", answer(429, "TooManyRequests", "the server has received too many requests", retry_after=1)),
    Injection("500", answer(500, "InternalError", "Internal error occurred: etcdserver: request timed out")),
    Injection("503", answer(503, "ServiceUnavailable", "the server is currently unable to handle the request")),
)
