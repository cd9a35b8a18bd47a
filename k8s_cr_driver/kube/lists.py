# SPDX-License-Identifier: Apache-2.0
"""Lists in pages (Kubernetes API concepts, "Retrieving large results sets in chunks")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.keys import Object

PAGE = 500
"""Objects in one page."""


def pages(
    connection: Connection, path: str, query: Sequence[tuple[str, str]] = (), accept: str = "application/json"
) -> Iterator[Object]:
    """The responses to one list, page by page; each has its metadata as a mapping."""
    token = ""
    while True:
        follow = [("continue", token)] if token else []
        page = connection.request("GET", path, query=[*query, ("limit", str(PAGE)), *follow], accept=accept)
        with understood(f"LIST {path}"):
            page["metadata"] = dict(page.get("metadata") or {})
        yield page
        token = page["metadata"].get("continue") or ""
        if not token:
            return
