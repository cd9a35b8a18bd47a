# SPDX-License-Identifier: Apache-2.0
"""
The reports of a run that waits: why objects are not ready, or not deleted, worst first, with their Warning events.

The cause often is in an object that a controller has created: the machine of a cluster, the Pod of a Deployment. So what is
below an object is read, too, and the deepest cause is the first line. Events often name what a status leaves out (an image
that cannot be pulled, a quota).
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from k8s_cr_driver.engine.clouds import Clouds
from k8s_cr_driver.engine.nodes import Desired, ToDelete, reported
from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.fields import entries, text, uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, controlled_by, key_of
from k8s_cr_driver.ownership.owners import named, references
from k8s_cr_driver.resources.base import Children, CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.model import PAUSED
from k8s_cr_driver.resources.health.silence import NOBODY_ACTS
from k8s_cr_driver.resources.registry import resource_for

WITH_EVENTS = 5
"""Objects whose events are read: the worst."""
EVENTS = 2
"""Warnings reported of one object: the newest."""
CHAIN = 3
"""Controllers between an object and one below it, at most: a Deployment has one, a Cluster of a topology two."""
CONTROLLERS = 20
"""That are read to see what is below one object."""
WIDTH = 3
"""Objects below one that are reported: the worst."""

_BADNESS = {state.value: rank for rank, state in enumerate(State)}
_BLOCKED = "Blocked"
_SECONDS = len("2026-01-01T00:00:00")

_Rank = tuple[int, bool, bool, bool, int]


@dataclass
class _Tree:
    """An object that is not ready, or not deleted, and those below it."""

    report: Report
    live: Object | None
    in_trouble: bool
    below: list[_Tree] = field(default_factory=list)

    @property
    def depth(self) -> int:
        return 1 + max((tree.depth for tree in self.below), default=0)

    @property
    def rank(self) -> _Rank:
        """That of the worst object in it; of two like trees the one that reaches deeper comes first."""
        own = self.report
        rank = (_BADNESS.get(own.state, 1), own.reason != NOBODY_ACTS, not self.in_trouble, own.reason == _BLOCKED)
        worst = min([rank, *(tree.rank[:4] for tree in self.below)])
        return *worst, -self.depth

    def deepest_first(self) -> Iterator[_Tree]:
        for tree in sorted(self.below, key=lambda one: one.rank):
            yield from tree.deepest_first()
        yield self


@dataclass(frozen=True)
class Seen:
    """An object of a run as it was at one moment, so that another thread can look for what is below it."""

    obj: CustomResource
    live: Object | None
    report: Callable[[SentValues], Report]
    """Its report without the values that were sent, which takes seconds for thousands of objects."""
    in_trouble: bool
    is_judged: bool
    """Whether its state comes of `live`, and not of an error or of what has to be done before."""

    @classmethod
    def of(cls, node: Desired | ToDelete) -> Seen:
        is_deleted = bool(text(node.live, "metadata", "deletionTimestamp"))
        is_judged = node.live is not None and node.error is None and (isinstance(node, Desired) or is_deleted)
        as_now = copy.copy(node)
        as_now.needs = node.needs.copy()  # the loop takes from it what is ready
        if isinstance(node, Desired) and isinstance(as_now, Desired):
            as_now.after = node.after.copy()
        return cls(node.obj, node.live, as_now.report, node.in_trouble, is_judged)


def reports(client: Client, clouds: Clouds, sent: SentValues, seen: Iterable[Seen]) -> list[Report]:
    """One report per object, worst first: failed, in trouble, waiting, waiting for others; before each those below it.

    None has a value that was `sent`. When the client's connection is over, nothing more is read of the cluster.
    """
    trees = sorted(_Search(client, clouds, sent, seen).trees(), key=lambda tree: tree.rank)
    ordered = itertools.chain.from_iterable(tree.deepest_first() for tree in trees)
    return [
        replace(tree.report, events=_warnings(client.connection, tree, sent)) if place < WITH_EVENTS else tree.report
        for place, tree in enumerate(ordered)
    ]


def warning_since(client: Client, seen: Seen, since: str) -> str:
    """
    The newest Warning event about an object, or what is below it and not ready, that is not older than `since`; "" if none.

    A later event of another type by the same component, about the same object, takes it back: it has succeeded since. Empty
    also if RBAC forbids to read events; raises DriverError if a later request may succeed.
    """
    trees = _Search(client, Clouds(client), SentValues([]), [seen]).trees()
    lives = [tree.live for tree in itertools.chain.from_iterable(tree.deepest_first() for tree in trees) if tree.live]
    found: list[tuple[str, str]] = []
    for live in [*lives[:-1][: WITH_EVENTS - 1], *lives[-1:]]:  # the object itself is the last one
        key, last = key_of(live), dict[str, Object]()
        for event in sorted(_events(client.connection, live), key=lambda one: (_time(one), one.get("type") == "Warning")):
            last[text(event, "source", "component") or text(event, "reportingComponent")] = event
        warnings = (one for one in last.values() if one.get("type") == "Warning" and _time(one) >= since[:_SECONDS])
        below = "" if live is seen.live else f"{key}: "
        found += [(_time(one), f"{below}{one.get('reason')}: {one.get('message')}") for one in warnings]
    return max(found, default=("", ""))[1]


class _Search:
    """Finds what is below the objects of a run; each object is reported once."""

    def __init__(self, client: Client, clouds: Clouds, sent: SentValues, seen: Iterable[Seen]) -> None:
        self._client, self._clouds, self._sent = client, clouds, sent
        self._nodes = {one.obj.key: one for one in seen}
        self._seen: set[ObjectKey] = set()
        self._is_over = client.connection.is_over

    def trees(self) -> list[_Tree]:
        """Those of the run's objects that explain no other one of them, and then what is left."""
        below = {key for node in self._nodes.values() for key in node.obj.explained_by(node.live or {})}
        ordered = sorted(self._nodes, key=lambda key: (key in below, key))
        return [self._of_node(self._nodes[key]) for key in ordered if key not in self._seen]

    def _of_node(self, node: Seen) -> _Tree:
        self._seen.add(node.obj.key)
        report, in_trouble, live = node.report(self._sent), node.in_trouble, node.live
        if live is not None and node.is_judged and not self._is_over():
            health = self._clouds.health(node.obj, live)
            if health.trouble and not in_trouble:
                report, in_trouble = self._report(live, health), True
        return _Tree(report, live, in_trouble, self._below(node.obj, live, report.reason) if live else [])

    def _below(self, obj: CustomResource, live: Object, reason: str) -> list[_Tree]:
        """None for a paused object: what its controllers have left half done there is no cause."""
        if reason == PAUSED:
            return []
        lives = [*self._referred(obj, live), *self._children(obj, live)]
        return [tree for one in lives if (tree := self._tree(one))]

    def _tree(self, live: Object) -> _Tree | None:
        """None for an object that is ready, and for one that is reported elsewhere."""
        key = key_of(live)
        if key in self._seen:
            return None
        if key in self._nodes:
            return self._of_node(self._nodes[key])
        self._seen.add(key)
        obj = resource_for(live)
        health = obj.health(live) if self._is_over() else self._clouds.health(obj, live)
        if health.settled:
            return None
        return _Tree(self._report(live, health), live, health.trouble, self._below(obj, live, health.reason))

    def _referred(self, obj: CustomResource, live: Object) -> Iterator[Object]:
        for key in obj.explained_by(live):
            resource = self._client.resources.find(key.group_kind)
            if key in self._nodes and (known := self._nodes[key].live):
                yield known
            elif resource and key not in self._nodes and not self._is_over():
                try:
                    yield self._client.read(resource, key)
                except DriverError:
                    continue  # a report without it is still useful; RBAC may forbid it

    def _children(self, obj: CustomResource, live: Object) -> list[Object]:
        """The worst of the VNFCs."""
        several = {id(one): one for part in (obj, *obj.parts()) if (one := part.children(live))}
        found = [child for one in several.values() for child in self._list(one, live)]
        judged = sorted(found, key=lambda child: (resource_for(child).health(child).badness, key_of(child)))
        return judged[:WIDTH]

    def _list(self, children: Children, owner: Object) -> Sequence[Object]:
        resource = self._client.resources.find(children.kind, children.version)
        if resource is None or (children.by_selector and not children.selector) or self._is_over():
            return []
        try:
            found = self._client.list(resource, children.namespace, children.selector)
        except DriverError:
            return []
        descent = _Descent(self._client, self._is_over)
        return [one for one in found if key_of(one) in self._nodes or descent.includes(one, uid_of(owner))]

    def _report(self, live: Object, health: Health) -> Report:
        """Also without the object's own values, which another operation has sent, or nobody."""
        since = text(live, "metadata", "deletionTimestamp") or text(live, "metadata", "creationTimestamp")
        return reported(key_of(live), health, since, self._sent, SentValues([live]))


class _Descent:
    """Which objects an owner controls, perhaps through others: a selector finds those of anybody, whom a report must not name.

    What cannot be read, or is one of too many, descends from nobody.
    """

    def __init__(self, client: Client, is_over: Callable[[], bool]) -> None:
        self._client, self._is_over, self._read = client, is_over, dict[str, Object | None]()

    def includes(self, live: Object, owner: str, chain: int = CHAIN) -> bool:
        """`owner` is the uid that the chain has to lead to."""
        controller = controlled_by(live)
        for reference in [controller] if controller else references(live):
            if text(reference, "uid") == owner:
                return True
            above = self._controller(reference, key_of(live).namespace) if chain else None
            if above is not None and self.includes(above, owner, chain - 1):
                return True
        return False

    def _controller(self, reference: Object, namespace: str) -> Object | None:
        uid = text(reference, "uid")
        if uid not in self._read and len(self._read) < CONTROLLERS and not self._is_over():
            self._read[uid] = None
            with contextlib.suppress(DriverError):
                found = named(self._client.resources, reference, namespace)
                self._read[uid] = self._client.read_again(*found) if found else None
        return self._read.get(uid)


def _warnings(connection: Connection, tree: _Tree, sent: SentValues) -> tuple[str, ...]:
    try:
        items = _events(connection, tree.live or {}, ",type=Warning")
    except DriverError:
        return ()  # a report without events is still useful
    items.sort(key=_time, reverse=True)
    shown = (f"{event.get('reason')}: {event.get('message')}" for event in items[:EVENTS])
    own = SentValues([tree.live] if tree.live else [])
    return tuple(own.removed_from(sent.removed_from(event))[:300] for event in shown)


def _events(connection: Connection, live: Object, selector: str = "") -> list[Object]:
    """The events about an object, as far as RBAC does not forbid to read them."""
    uid = text(live, "metadata", "uid")
    if not uid:
        return []
    path = f"/api/v1/namespaces/{key_of(live).namespace or 'default'}/events"
    query = [("fieldSelector", f"involvedObject.uid={uid}{selector}"), ("limit", "50")]
    try:
        return entries(connection.request("GET", path, query=query, read_timeout=5), "items")
    except DriverError as error:
        if passes(error):
            raise
        return []


def _time(event: Object) -> str:
    """When it was last seen, to the second: times with and without fractions do not compare."""
    times = (text(event, *path) for path in (("lastTimestamp",), ("series", "lastObservedTime"), ("eventTime",)))
    return max(time[:_SECONDS] for time in times)
