# SPDX-License-Identifier: Apache-2.0
"""Responses that are read within limits of time and size.

A timeout of a socket ends with each byte that arrives, so a server that sends one byte now and then could hold a request, and
the operation that waits for it, for ever. No encoding is accepted: a few KiB of gzip can unfold to gigabytes.
"""

from __future__ import annotations

import functools
import http.client
import time
from typing import Any

import urllib3

from k8s_cr_driver import redaction
from k8s_cr_driver.kube.watchdog import shut_at

RESPONSE_LIMIT = 256 * 1024 * 1024
"""Bytes of a response. A page of 250 objects has less, unless each has a MiB: etcd accepts 1.5 MiB for one object. The memory
that it takes is limited by `decoding.VALUES_LIMIT`."""
ERROR_LIMIT = 16 * 1024 * 1024
"""Bytes that are read of the response with which a server refuses a request: it repeats an object some times at most. The rest
is left out, so that its status is known."""
_CHUNK = 64 * 1024
_HARMLESS = (http.client.IncompleteRead, urllib3.exceptions.IncompleteRead)
"""Errors of http.client with numbers only; the others repeat what the server has sent."""


def request(
    pool: urllib3.PoolManager, method: str, url: str, *, connect: float, within: float, limit: int | None = None, **options: Any
) -> Response:
    """The response, whatever its status, with the seconds to connect and those for all of it, but for a stream's body.

    It is not repeated, and no redirect is followed. `limit`: bytes of its body, RESPONSE_LIMIT without it.
    """
    until = time.monotonic() + within
    timeout = urllib3.Timeout(connect=min(connect, within), total=within)
    options |= {"redirect": False, "retries": False, "preload_content": False, "decode_content": False}
    opened = pool.request(method, url, timeout=timeout, **options)
    return Response(opened, until, limit or RESPONSE_LIMIT)


class Response:
    """The head of a response; its body is read when `data` is first used. urllib3's HTTPError: it is refused."""

    def __init__(self, opened: urllib3.BaseHTTPResponse, until: float, limit: int) -> None:
        self.opened, self._until, self._limit = opened, until, limit
        self.status, self.headers = opened.status, opened.headers
        if opened.headers.get("Content-Encoding", "identity") != "identity":
            opened.close()
            raise urllib3.exceptions.HTTPError("the response is encoded, though no encoding is accepted")

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @functools.cached_property
    def data(self) -> bytes:
        """At most `limit` bytes until `until`, a time of time.monotonic()."""
        try:
            with shut_at(getattr(self.opened.connection, "receiving", None), self._until):
                return self._whole()
        except TimeoutError:
            self.opened.close()
            raise urllib3.exceptions.TimeoutError("the response timed out") from None
        except BaseException:
            self.opened.close()
            raise

    def _whole(self) -> bytes:
        found = bytearray()
        while chunk := self.opened.read1(_CHUNK):
            found += chunk
            if self.status >= 400 and len(found) > ERROR_LIMIT:
                self.opened.close()
                break
            if len(found) > self._limit:
                raise urllib3.exceptions.HTTPError(f"the response has more than {self._limit} bytes")
        return bytes(found)


def limit_silence(response: urllib3.BaseHTTPResponse, seconds: float) -> None:
    """Sets how long a stream may be silent: urllib3 has one limit for a response's head, which comes at once, and its body."""
    opened = getattr(response, "connection", None)
    if opened is not None and opened.sock is not None:
        opened.sock.settimeout(seconds)


def words(error: urllib3.exceptions.HTTPError) -> str:
    """As `redaction.words`, without words of a server that is none of HTTP: an SSH server's version, for example."""
    if any(_repeats(one) for one in (error, *error.args)):
        return "the response is not HTTP"
    return redaction.words(error)


def _repeats(error: object) -> bool:
    if isinstance(error, http.client.RemoteDisconnected) or type(error) in _HARMLESS:
        return False
    return isinstance(error, http.client.HTTPException | urllib3.exceptions.InvalidHeader)
