# SPDX-License-Identifier: Apache-2.0
"""
A connection on which nothing is stored: every write is a dry run of the server (Kubernetes API concepts, "Dry-run").

The server validates, sets defaults and asks admission, so that its response is that to the real write. What differs is
the connection alone: the code that writes is the same.
"""

from __future__ import annotations

from typing import Any

from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.objects.keys import Object


class DryRun(Connection):
    """A connection of its own, or one `over` another."""

    _under: Connection | None = None

    @classmethod
    def over(cls, connection: Connection) -> DryRun:
        """One whose requests are those of another connection, which is closed instead of this one."""
        shared = cls.__new__(cls)
        shared.__dict__ = {**connection.__dict__, "_under": connection}
        return shared

    def request(self, method: str, path: str, **options: Any) -> Object:
        """As `Connection.request`.

        An API server that gets a body with a DELETE reads no options from the query (apiserver,
        pkg/endpoints/handlers/delete.go).
        """
        if method == "DELETE":
            options["body"] = {**(options.get("body") or {}), "dryRun": ["All"]}
        elif method != "GET":
            options["query"] = [*options.get("query", ()), ("dryRun", "All")]
        send = super().request if self._under is None else self._under.request
        return send(method, path, **options)
