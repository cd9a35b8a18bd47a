# SPDX-License-Identifier: Apache-2.0
"""The Events about an object, in which controllers say what a status leaves out: an image that cannot be pulled, a quota."""

from __future__ import annotations

from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.objects.fields import entries, text
from k8s_cr_driver.objects.keys import Object, key_of

SECONDS = len("2026-01-01T00:00:00")
_QUIET = 0.75
"""Share of the time since a write for which a warning is not repeated when it is over."""


def events_of(connection: Connection, live: Object, *, all_events: bool = True) -> list[Object]:
    """The events about an object, or its Warnings, as far as RBAC does not forbid to read them."""
    uid = text(live, "metadata", "uid")
    if not uid:
        return []
    path = f"/api/v1/namespaces/{key_of(live).namespace or 'default'}/events"
    selector = f"involvedObject.uid={uid}" + ("" if all_events else ",type=Warning")
    query = [("fieldSelector", selector), ("limit", "500" if all_events else "50")]
    try:
        return entries(connection.request("GET", path, query=query, read_timeout=5), "items")
    except DriverError as error:
        if passes(error):
            raise
        return []


def time_of(event: Object) -> str:
    """When it was last seen, to the second: times with and without fractions do not compare."""
    times = (text(event, *path) for path in (("lastTimestamp",), ("series", "lastObservedTime"), ("eventTime",)))
    return max(time[:SECONDS] for time in times)


def warnings_since(client: Client, live: Object, since: str, over_after: float) -> list[tuple[str, str]]:
    """
    The Warning events about an object that are not older than `since`: time and text.

    One that is not repeated is over at some time, see `is_over`; `over_after`: seconds, at least. A later event of another type
    by the same component takes it back: it has succeeded since. Empty also if RBAC forbids to read events; raises DriverError
    if a later request may succeed.
    """
    last = dict[str, Object]()
    for event in sorted(events_of(client.connection, live), key=lambda one: (time_of(one), is_warning(one))):
        last[text(event, "source", "component") or text(event, "reportingComponent")] = event
    warned = (one for one in last.values() if is_warning(one) and time_of(one) >= since[:SECONDS])
    left = (one for one in warned if not is_over(_age(client, time_of(one)), _age(client, since), over_after))
    return [(time_of(one), said(one)) for one in left]


def is_warning(event: Object) -> bool:
    return bool(event.get("type") == "Warning")


def said(event: Object) -> str:
    return f"{event.get('reason')}: {event.get('message')}"


def is_over(age: float, waited: float, over_after: float) -> bool:
    """
    Whether a controller that still failed would have repeated a warning of that age, `waited` seconds after our write.

    Retries of controllers are at most as far apart as the time until then, since each waits twice as long as the one before,
    or happen every few minutes.
    """
    return age >= max(over_after, _QUIET * waited)


def _age(client: Client, stamp: str) -> float:
    """In seconds; 0 if it makes no sense."""
    try:
        return client.connection.clock.age(stamp if stamp.endswith("Z") else f"{stamp}Z")
    except ValueError:
        return 0.0
