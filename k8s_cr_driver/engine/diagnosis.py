# SPDX-License-Identifier: Apache-2.0
"""
The reports of a run that times out: why objects are not ready, worst first, with their Warning events.

Events often name the cause that a status leaves out (an image that cannot be pulled, a quota).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from k8s_cr_driver.engine.nodes import Desired, ToDelete
from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.resources.health import State

WITH_EVENTS = 5
"""Objects whose events are read: the worst."""
EVENTS = 2
"""Warnings reported of one object: the newest."""

_BADNESS = {state.value: rank for rank, state in enumerate(State)}
_BLOCKED = "Blocked"


def reports(connection: Connection, nodes: Iterable[Desired | ToDelete]) -> list[Report]:
    """One report per object, worst first: failed, then in trouble, then waiting, then those that only wait for others."""
    ranked = sorted(
        ((node, node.report()) for node in nodes),
        key=lambda pair: (_BADNESS.get(pair[1].state, 1), not pair[0].in_trouble, pair[1].reason == _BLOCKED, pair[1].key),
    )
    return [
        replace(report, events=_warnings(connection, node)) if rank < WITH_EVENTS else report
        for rank, (node, report) in enumerate(ranked)
    ]


def _warnings(connection: Connection, node: Desired | ToDelete) -> tuple[str, ...]:
    uid = ((node.live or {}).get("metadata") or {}).get("uid")
    if not uid:
        return ()
    namespace = node.key.namespace or "default"
    query = [("fieldSelector", f"involvedObject.uid={uid},type=Warning"), ("limit", "50")]
    try:
        items = connection.request(
            "GET", f"/api/v1/namespaces/{namespace}/events", query=query, read_timeout=5
        ).get("items") or []
    except DriverError:
        return ()  # a report without events is still useful; RBAC may forbid them
    items.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), reverse=True)
    return tuple(f"{event.get('reason')}: {event.get('message')}"[:300] for event in items[:EVENTS])
