# SPDX-License-Identifier: Apache-2.0
"""Every request that came, for tests that count and read them."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """`status` is 0 until the answer is known, and stays so when the connection was cut before."""

    index: int
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    content_type: str
    status: int = 0
    response: Any = field(default=None, repr=False)

    @property
    def watch(self) -> bool:
        return self.query.get("watch", "").lower() in ("true", "1")

    def __str__(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query.items())
        return f"{self.index} {self.method} {self.path}{'?' + query if query else ''} -> {self.status}"


class Requests:
    """A thread-safe list of requests. Indexes count from 0 since the last `clear`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: list[Request] = []

    def start(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: Any,
              content_type: str) -> Request:
        with self._lock:
            request = Request(len(self._items), method, path, query, headers, body, content_type)
            self._items.append(request)
            return request

    def clear(self) -> None:
        with self._lock:
            self._items.clear()

    def select(self, method: str = "", path: str = "", watch: bool | None = None,
               when: Callable[[Request], bool] | None = None) -> list[Request]:
        """The requests of a method, whose path contains `path`, that are a watch or not."""
        return [one for one in self if (not method or one.method == method) and path in one.path
                and (watch is None or one.watch == watch) and (when is None or when(one))]

    @property
    def writes(self) -> list[Request]:
        return [one for one in self if one.method != "GET"]

    def __iter__(self) -> Iterator[Request]:
        with self._lock:
            return iter(list(self._items))

    def __len__(self) -> int:
        with self._lock:
            return len(self._items)

    def __getitem__(self, index: int) -> Request:
        with self._lock:
            return self._items[index]

    def __str__(self) -> str:
        return "\n".join(map(str, self))
