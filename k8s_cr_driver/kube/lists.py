# SPDX-License-Identifier: Apache-2.0
"""Lists in pages (Kubernetes API concepts, "Retrieving large results sets in chunks")."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any

from k8s_cr_driver.errors import ApiError, TransportError
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.memory import NoMemory, cost
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.decoding import measured
from k8s_cr_driver.objects.keys import Object

PAGE = 250
"""Objects in one page."""
PAGES = 4000
"""Pages of one list: 100,000 objects fit even if a server sends a tenth of what a page may have."""
LIST_BYTES = 512 * 1024 * 1024
"""Of all pages of one list, and of the initial events of a watch."""
LIST_VALUES = 30_000_000
"""JSON values of all pages of one list, and of the initial events of a watch: 100,000 objects of 300 values."""
EMPTY_PAGES = 20
"""Empty pages in a row that are followed by more: an API server that filters may send a few."""
MEMORY_WITHIN = 60.0
"""Seconds for which a page waits until the pages of other lists are read."""
LIST_LIMIT = 300.0
"""Seconds for one list: an API server's token expires after five minutes (API concepts, "410 Gone responses")."""


def pages(
    connection: Connection, path: str, query: Sequence[tuple[str, str]] = (), accept: str = "application/json"
) -> Iterator[Object]:
    """The responses to one list, page by page; each has its metadata as a mapping.

    TransportError: the list does not end, or has to be begun again, because the server has forgotten it (410).
    """
    progress, token = _Progress(connection, f"LIST {path}"), ""
    while True:
        follow = [("continue", token)] if token else []
        limited = [*query, ("limit", str(PAGE)), *follow]
        with contextlib.ExitStack() as memory:
            hooks: dict[str, Any] = {"arrived": functools.partial(_take, connection, memory), "received": progress.received}
            try:
                page = connection.request("GET", path, query=limited, accept=accept, **hooks)
            except ApiError as error:
                if not token or error.status != 410:
                    raise
                why = f"the server has forgotten it: {error.message}"
                raise TransportError(f"LIST {path}: the list is given up: {why}") from None
            except NoMemory:
                raise TransportError(f"LIST {path}: other lists have the memory of this conductor") from None
            with understood(f"LIST {path}"):
                page["metadata"] = dict(page.get("metadata") or {})
                token = str(page["metadata"].get("continue") or "")
                is_empty = not page.get("items")
            yield page
            page = {}
        if not token:
            return
        progress.check(token, is_empty)


def _take(connection: Connection, stack: contextlib.ExitStack, data: bytes) -> None:
    """The memory of a page, until its reader asks for the next one."""
    stack.enter_context(connection.memory.taken(cost(data), time.monotonic() + MEMORY_WITHIN))


class _Progress:
    """Whether a list may go on: a faulty server, or a proxy that repeats a response, can send pages without end."""

    def __init__(self, connection: Connection, attempt: str) -> None:
        self._connection, self._attempt = connection, attempt
        self._until = time.monotonic() + LIST_LIMIT
        self._tokens: set[str] = set()
        self._empty = self._bytes = self._values = 0

    def received(self, data: bytes, page: Object) -> None:
        """Counts the bytes and the values of a page."""
        self._bytes += len(data)
        self._values += measured(data, page)

    def check(self, token: str, is_empty: bool) -> None:
        """Raises TransportError if the page that `token` follows may not be requested."""
        self._empty = self._empty + 1 if is_empty else 0
        reasons = {
            "a page refers to itself or an earlier page": token in self._tokens,
            f"{self._empty} pages in a row are empty": self._empty > EMPTY_PAGES,
            f"it has more than {PAGES} pages": len(self._tokens) + 2 > PAGES,
            f"it has more than {LIST_BYTES} bytes": self._bytes > LIST_BYTES,
            f"it has more than {LIST_VALUES:,} values": self._values > LIST_VALUES,
            f"it lasts longer than {LIST_LIMIT:g} s": time.monotonic() > self._until,
            "the operation has ended": self._connection.is_over(),
        }
        for reason, holds in reasons.items():
            if holds:
                raise TransportError(f"{self._attempt}: the list is given up: {reason}")
        self._tokens.add(token)
