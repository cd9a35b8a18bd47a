# SPDX-License-Identifier: Apache-2.0
"""urllib3 pools whose connections lead only where they may, and end at a deadline.

The name of a host is resolved once for each connection. The addresses are judged, and the connection goes to one of those that
are permitted, so a name that resolves to another address a moment later changes nothing. TLS verifies the name.

`_new_conn` is where urllib3 opens sockets; all that precedes the request ends at the connect timeout.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from k8s_cr_driver.kube import threads
from k8s_cr_driver.kube.watchdog import shut_at

SENDING = 6
"""How much longer than the connect timeout, which is what urllib3 sets meanwhile, a request may be sent."""

Judge = Callable[[str, Sequence[str]], Sequence[str]]
"""(host as it is written, its addresses) -> the addresses to which a connection may go; DriverError if there are none."""


def anywhere(host: str, addresses: Sequence[str]) -> Sequence[str]:
    """The `Judge` that permits every address."""
    del host
    return addresses


def pools(judge: Judge, tls: ssl.SSLContext | None, **options: Any) -> urllib3.PoolManager:
    """A PoolManager whose connections are `judge`d; close it with `clear`."""
    manager = urllib3.PoolManager(ssl_context=tls, **options)
    kinds = {"http": (urllib3.HTTPConnectionPool, _Limited), "https": (urllib3.HTTPSConnectionPool, _Secure)}
    classes: Any = {scheme: functools.partial(_pool, *kind, judge) for scheme, kind in kinds.items()}
    manager.pool_classes_by_scheme = classes
    manager.pools.dispose_func = _close  # urllib3 leaves it to the garbage collector
    return manager


def _close(pool: urllib3.HTTPConnectionPool) -> None:
    pool.close()


def _pool(kind: Callable[..., Any], connection: Callable[..., Any], judge: Judge, *address: Any, **options: Any) -> Any:
    pool = kind(*address, **options)
    pool.ConnectionCls = functools.partial(connection, judge)
    return pool


class _Limited(HTTPConnection):
    def __init__(self, judge: Judge, *address: Any, **options: Any) -> None:
        super().__init__(*address, **options)
        self._judge = judge
        self.receiving: socket.socket | None = None
        """Where the last response comes from; `sock` is None if that is not to be used again."""

    def _ends(self) -> float:
        return time.monotonic() + (self.timeout or 0.0)

    def _new_conn(self) -> socket.socket:
        until = self._ends()
        try:
            found = _resolved(self._dns_host, self.port, until)
            sock = self._connected(self._judge(self.host, found), until)
        except (socket.gaierror, UnicodeError) as error:
            raise NameResolutionError(self.host, self, socket.gaierror(str(error))) from None
        except TimeoutError:
            raise ConnectTimeoutError(self, f"Connection to {self.host} timed out") from None
        except OSError as error:
            raise NewConnectionError(self, f"Failed to establish a new connection: {error}") from None
        return sock

    def _connected(self, addresses: Iterable[str], until: float) -> socket.socket:
        """Connected to the first address that accepts; raises the last one's OSError."""
        failure = OSError("the host has no address")
        for address in addresses:
            try:
                return urllib3.util.connection.create_connection(
                    (address, self.port), _left(until), socket_options=self.socket_options
                )
            except OSError as error:
                failure = error
        raise failure

    def request(self, *args: Any, **options: Any) -> None:
        with shut_at(self.sock, time.monotonic() + SENDING * (self.timeout or 0.0)):
            super().request(*args, **options)

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        self.receiving = self.sock
        with shut_at(self.sock, self._ends()):
            return super().getresponse()


class _Secure(_Limited, HTTPSConnection):
    _handshake: contextlib.ExitStack

    def connect(self) -> None:
        with contextlib.ExitStack() as self._handshake:
            super().connect()

    def _new_conn(self) -> socket.socket:
        until = self._ends()
        sock = super()._new_conn()
        self._handshake.enter_context(shut_at(sock, until))
        return sock


def _left(until: float) -> float:
    """Seconds; TimeoutError if there are none."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _resolved(host: str, port: int, until: float) -> list[str]:
    """The addresses of a host, in the resolver's order. The resolver has no deadline, so a thread of its own waits for it."""
    try:
        return _lookup(host.strip("[]"), port).result(timeout=_left(until))
    except concurrent.futures.TimeoutError:
        raise TimeoutError("timed out") from None


_Addresses = concurrent.futures.Future[list[str]]
_lookups: dict[tuple[int, str, int], _Addresses] = {}
_lock = threading.Lock()


def _lookup(host: str, port: int) -> _Addresses:
    """The lookup that runs, or a new one: a resolver that hangs holds one thread for each host, however often it is asked."""
    key = os.getpid(), host, port
    with _lock:
        if running := _lookups.get(key):
            return running
        found: _Addresses = concurrent.futures.Future()

        def resolve() -> None:
            try:
                entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                found.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))
            except Exception as error:
                found.set_exception(error)
            with _lock:
                del _lookups[key]

        threads.start(resolve, f"resolve {host}")
        _lookups[key] = found
    return found
