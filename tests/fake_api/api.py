# SPDX-License-Identifier: Apache-2.0
"""`FakeApi`: a running fake API server, with a test's hand in its cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fake_api import tls as certificates
from tests.fake_api.cluster import DEFAULT_NAMESPACES, Cluster
from tests.fake_api.faults import Action, Faults, StreamFault
from tests.fake_api.hand import Hand
from tests.fake_api.recording import Requests
from tests.fake_api.server import Server
from tests.fake_api.watch import Stream


class FakeApi(Hand):
    """A Kubernetes API server on a port of its own, until `close()`; also a context manager.

    `url`, `ca_cert` (PEM, None without TLS), `requests` (what came), `knobs` (see `Knobs`), `crashes` (faults of the
    fake itself, which a fixture asserts to be none). Objects go in and out as plain dicts; what comes out is a copy.
    It begins with the default namespaces or, with `like`, with what another one has.
    """

    def __init__(self, tls: bool = False, like: "FakeApi | None" = None) -> None:
        super().__init__(like.cluster.copy() if like else Cluster())
        self.ca_cert: str | None = None
        self.requests = Requests()
        self.crashes: list[str] = []
        self._faults = Faults()
        self._tls = None
        if tls:
            self._tls, self.ca_cert = certificates.server_context()
        self._server = self._listen()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"
        for name in () if like else DEFAULT_NAMESPACES:
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._server.start()

    def __enter__(self) -> "FakeApi":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._server.close()

    def _listen(self, port: int = 0) -> Server:
        return Server(self.cluster, self._tls, self.requests, self._faults, self.crashes, port)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Within it the server is not there: connections break and are refused. Then it is back on the same port."""
        port = self._server.server_address[1]
        self._server.close()
        yield
        self._server = self._listen(port)
        self._server.start()

    @property
    def connections_opened(self) -> int:
        return self._server.connections_opened

    # Faults

    def fail(self, action: Action, **match: Any) -> None:
        """Let a fault (see `faults`) befall the next request that matches: method, path, query, index, when, times."""
        self._faults.add(action, **match)

    @property
    def faults_pending(self) -> int:
        return self._faults.pending

    def clear_faults(self) -> None:
        self._faults.clear()

    def drop_connections(self) -> None:
        """Cut every open connection, as a restarted server does."""
        self._server.drop_connections()

    # Streams

    def streams(self, kind: str | None = None) -> list[Stream]:
        """The watches that are open now, of one kind or all."""
        return [one for one in self._server.streams() if kind in (None, one.kind.kind)]

    def wait_for_streams(self, count: int, kind: str | None = None, timeout: float = 30) -> bool:
        """Wait until exactly so many watches are open; false after `timeout` seconds."""
        changed = self.cluster.store.changed
        with changed:
            return changed.wait_for(lambda: len(self.streams(kind)) == count, timeout)

    def break_streams(self, fault: StreamFault, kind: str | None = None) -> int:
        """Inject a stream fault into the open watches; how many there were."""
        found = self.streams(kind)
        for stream in found:
            stream.inject(fault)
        return len(found)

    def bookmark(self, kind: str) -> None:
        """Send a BOOKMARK of the present revision to the watches of a kind that allow it."""
        self.cluster.store.bookmark(self.cluster.by_kind(kind).resource)

    def compact(self) -> None:
        """Forget all past revisions: watches that start from one get 410."""
        self.cluster.store.compact()
