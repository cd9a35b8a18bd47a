# SPDX-License-Identifier: Apache-2.0
"""
The events of a watch, as they come in its response: one JSON object a line, `{"type": ..., "object": ...}`.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from k8s_cr_driver.errors import ApiError, Unreadable
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import checked, understood
from k8s_cr_driver.objects.decoding import BeyondLimit, decoded
from k8s_cr_driver.objects.fields import field, integer
from k8s_cr_driver.objects.keys import Object

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one event: one object, of which etcd accepts 1.5 MiB, in JSON."""


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Unreadable for a line of more than LINE_LIMIT bytes."""
    line = bytearray()
    for chunk in chunks:
        end, *others = chunk.split(b"\n")
        line += end
        if len(line) > LINE_LIMIT:
            raise Unreadable(f"WATCH: an event has more than {LINE_LIMIT} bytes")
        for begin in others:
            yield bytes(line)
            line = bytearray(begin)


def parse(resource: Resource, line: bytes) -> dict[str, Any]:
    """Unreadable for a line that is not an event."""
    attempt = f"WATCH {resource.plural}"
    try:
        event = decoded(line)
    except BeyondLimit as error:
        raise Unreadable(f"{attempt}: {error}") from None
    except ValueError:
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        raise Unreadable(f"{attempt}: a line is not an event")
    return event


def object_of(resource: Resource, event: dict[str, Any]) -> Object:
    """The object in a watch event; ApiError for an event of type ERROR, whose object is a Status."""
    live: Object = event["object"]
    attempt = f"WATCH {resource.plural}"
    if event.get("type") == "ERROR":
        code, reason = integer(live, "code") or 500, str(live.get("reason"))
        raise ApiError(attempt, code, reason, str(live.get("message") or ""))
    if event.get("type") == "BOOKMARK":
        with understood(attempt):
            dict(live["metadata"].get("annotations") or {})
        return live
    return checked(live, resource.group_kind, attempt)


def ends_initial_events(bookmark: Object) -> bool:
    """Whether this one comes after the last of them (KEP-3157)."""
    return bool(field(bookmark, "metadata", "annotations", "k8s.io/initial-events-end") == "true")
