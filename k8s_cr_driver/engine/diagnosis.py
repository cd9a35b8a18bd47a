"""Why objects are not ready, worst first, with what the cluster itself warned of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from k8s_cr_driver.engine.nodes import Desired, ToDelete
from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.resources.health import State

WITH_EVENTS = 5
"""Objects whose events are asked for: the worst."""
EVENTS = 2
"""Warnings told of one object: the last."""

_BADNESS = {state.value: rank for rank, state in enumerate(State)}
_BLOCKED = "Blocked"


def reports(connection: Connection, nodes: Iterable[Desired | ToDelete]) -> list[Report]:
    """One report per object, worst first: failed, then waiting, then those that only wait for others."""
    told = sorted(
        ((node, node.report()) for node in nodes),
        key=lambda pair: (_BADNESS.get(pair[1].state, 1), pair[1].reason == _BLOCKED, pair[1].key),
    )
    return [
        replace(report, events=_warnings(connection, node)) if rank < WITH_EVENTS else report
        for rank, (node, report) in enumerate(told)
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
        return ()  # events are a help, not a condition; RBAC may forbid them
    items.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), reverse=True)
    return tuple(f"{event.get('reason')}: {event.get('message')}"[:300] for event in items[:EVENTS])
