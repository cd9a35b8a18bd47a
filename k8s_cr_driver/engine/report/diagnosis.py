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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from k8s_cr_driver.engine.report.clouds import Clouds
from k8s_cr_driver.engine.report.events import SECONDS, events_of, is_warning, said, time_of, warnings_since
from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.engine.run.nodes import Desired, ToDelete, reported
from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.fields import entries, text, uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, controlled_by, key_of, references
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.model import PAUSED
from k8s_cr_driver.resources.health.rules import without_rules
from k8s_cr_driver.resources.health.silence import NOBODY_ACTS
from k8s_cr_driver.resources.hooks import Children
from k8s_cr_driver.resources.registry import health_of_made, resource_for
from k8s_cr_driver.writes.owners import named

WITH_EVENTS = 5
"""Objects whose events are read: the worst."""
EVENTS = 2
"""Warnings reported of one object: the newest."""
WIDTH = 3
"""Objects below one that are reported: the worst."""
CHAIN = 3
"""Controllers between an object and one below it, at most: a Deployment has one, a Cluster of a topology two."""
CONTROLLERS = 20
"""That are read to see what is below one object."""

_BADNESS = {state.value: rank for rank, state in enumerate(State)}
_BLOCKED = "Blocked"

_Rank = tuple[int, bool, bool, bool, int]


@dataclass
class _Tree:
    """An object that is not ready, or not deleted, and those below it."""

    report: Report
    live: Object | None
    in_trouble: bool
    below: list[_Tree] = field(default_factory=list)
    newest: str = ""
    """When one of the objects directly below it was written last, or its newest Event came, to the second; "" if none."""

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

    @property
    def moved(self) -> str:
        """The same of all that is below it."""
        return max(self.newest, *(tree.moved for tree in self.below), "")

    def is_making(self, members: Collection[ObjectKey]) -> bool:
        """Whether an object below it, which is none of the `members`, is not ready and in no trouble."""
        return any(
            tree.is_making(members)
            or not (tree.in_trouble or tree.report.state == State.FAILED.value or tree.report.key in members)
            for tree in self.below
        )

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


@dataclass(frozen=True)
class Findings:
    """
    `reports`: one per object, worst first: failed, in trouble, waiting, waiting for others; before each those below it.

    `moved`: when something below an object was written last, or its newest Event came; to the second, "" if nothing was found.
    `making`: the objects with others below them that are not ready and in no trouble. `is_whole`: nothing of it could not be
    read for a time.
    """

    reports: Sequence[Report]
    moved: Mapping[ObjectKey, str]
    making: Collection[ObjectKey]
    is_whole: bool


def search(
    client: Client, clouds: Clouds, sent: SentValues, seen: Iterable[Seen], *, all_events: bool = False
) -> Findings:
    """What is below the objects of a run. No report has a value that was `sent`; Events are those of the worst objects.

    When the client's connection is over, nothing more is read of the cluster. With `all_events` the times of the others count,
    too, which costs no more requests.
    """
    found = _Search(client, clouds, sent, seen)
    trees = sorted(found.trees(), key=lambda tree: tree.rank)
    reports = []
    for place, tree in enumerate(itertools.chain.from_iterable(tree.deepest_first() for tree in trees)):
        try:
            items = events_of(client.connection, tree.live or {}, all_events=all_events) if place < WITH_EVENTS else []
        except DriverError:
            found.is_whole, items = False, []  # a report without events is still useful
        tree.newest = max(tree.newest, *map(time_of, items), "")
        warnings = list(filter(is_warning, items))
        reports.append(replace(tree.report, events=_shown(warnings, tree, sent)))
    members = found.of_run.keys()
    making = {key for key, tree in found.of_run.items() if tree.is_making(members)}
    moved = {key: tree.moved for key, tree in found.of_run.items()}
    return Findings(reports, moved, making, found.is_whole and not client.connection.is_over())


def warning_since(client: Client, seen: Seen, since: str, over_after: float) -> str:
    """The newest Warning about an object, or what is below it and not ready, see `events.warnings_since`; "" if none."""
    trees = _Search(client, Clouds(client), SentValues([]), [seen]).trees()
    lives = [tree.live for tree in itertools.chain.from_iterable(tree.deepest_first() for tree in trees) if tree.live]
    found: list[tuple[str, str]] = []
    for live in [*lives[:-1][: WITH_EVENTS - 1], *lives[-1:]]:  # the object itself is the last one
        below = "" if live is seen.live else f"{key_of(live)}: "
        found += [(at, below + warning) for at, warning in warnings_since(client, live, since, over_after)]
    return max(found, default=("", ""))[1]


class _Search:
    """Finds what is below the objects of a run; each object is reported once."""

    def __init__(self, client: Client, clouds: Clouds, sent: SentValues, seen: Iterable[Seen]) -> None:
        self._client, self._clouds, self._sent = client, clouds, sent
        self._nodes = {one.obj.key: one for one in seen}
        self._seen: set[ObjectKey] = set()
        self._is_over = client.connection.is_over
        self.of_run: dict[ObjectKey, _Tree] = {}
        self.is_whole = True

    def trees(self) -> list[_Tree]:
        """Those of the run's objects that explain no other one of them, and then what is left."""
        below = {key for node in self._nodes.values() for key in node.obj.causes(node.live or {}).objects}
        ordered = sorted(self._nodes, key=lambda key: (key in below, key))
        return [self._of_node(self._nodes[key]) for key in ordered if key not in self._seen]

    def _of_node(self, node: Seen) -> _Tree:
        self._seen.add(node.obj.key)
        report, in_trouble, live = node.report(self._sent), node.in_trouble, node.live
        if live is not None and node.is_judged and not self._is_over():
            health = self._clouds.health(node.obj, live)
            if health.trouble and not in_trouble:
                report, in_trouble = self._report(live, health), True
        below, newest = self._below(node.obj, live, report.reason) if live else ([], "")
        self.of_run[node.obj.key] = tree = _Tree(report, live, in_trouble, below, newest)
        return tree

    def _below(self, obj: CustomResource, live: Object, reason: str) -> tuple[list[_Tree], str]:
        """What is below the object, as far as it is not ready, and when something there was written last.

        None for a paused object: what its controllers have left half done there is no cause.
        """
        if reason == PAUSED:
            return [], ""
        referred, children = list(self._referred(obj, live)), self._children(obj, live)
        worst = sorted(children, key=lambda child: (health_of_made(child).badness, key_of(child)))[:WIDTH]
        trees = [tree for one in (*referred, *worst) if (tree := self._tree(one))]
        return trees, max(map(_written, (*referred, *children)), default="")

    def _tree(self, live: Object) -> _Tree | None:
        """None for an object that is ready, and for one that is reported elsewhere."""
        key = key_of(live)
        if key in self._seen:
            return None
        if key in self._nodes:
            return self._of_node(self._nodes[key])
        self._seen.add(key)
        live = without_rules(live)
        obj = resource_for(live)
        health = obj.health(live) if self._is_over() else self._clouds.health(obj, live)
        if health.settled:
            return None
        return _Tree(self._report(live, health), live, health.trouble, *self._below(obj, live, health.reason))

    def _referred(self, obj: CustomResource, live: Object) -> Iterator[Object]:
        for key in obj.causes(live).objects:
            resource = self._client.resources.find(key.group_kind)
            if key in self._nodes and (known := self._nodes[key].live):
                yield known
            elif resource and key not in self._nodes and not self._is_over():
                try:
                    yield self._client.read(resource, key)
                except DriverError as error:
                    self.is_whole = self.is_whole and not passes(error)
                    continue  # a report without it is still useful; RBAC may forbid it

    def _children(self, obj: CustomResource, live: Object) -> list[Object]:
        """The VNFCs."""
        several = {id(one): one for part in (obj, *obj.parts()) if (one := part.children(live))}
        return [child for one in several.values() for child in self._list(one, live)]

    def _list(self, children: Children, owner: Object) -> Sequence[Object]:
        resource = self._client.resources.find(children.kind, children.version)
        if resource is None or (children.by_selector and not children.selector) or self._is_over():
            return []
        try:
            found = self._client.list(resource, children.namespace, children.selector)
        except DriverError as error:
            self.is_whole = self.is_whole and not passes(error)
            return []
        descent = _Descent(self._client)
        return [one for one in found if key_of(one) in self._nodes or descent.includes(one, uid_of(owner))]

    def _report(self, live: Object, health: Health) -> Report:
        """Also without the object's own values, which another operation has sent, or nobody."""
        since = text(live, "metadata", "deletionTimestamp") or text(live, "metadata", "creationTimestamp")
        return reported(key_of(live), health, since, self._sent, SentValues([live]))


class _Descent:
    """Which objects an owner controls, perhaps through others: a selector finds those of anybody, whom a report must not name.

    What cannot be read, or is one of too many, descends from nobody.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._read = client, dict[str, Object | None]()

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
        if uid not in self._read and len(self._read) < CONTROLLERS and not self._client.connection.is_over():
            self._read[uid] = None
            with contextlib.suppress(DriverError):
                found = named(self._client.resources, reference, namespace)
                self._read[uid] = self._client.read_again(*found) if found else None
        return self._read.get(uid)


def _shown(warnings: list[Object], tree: _Tree, sent: SentValues) -> tuple[str, ...]:
    warnings.sort(key=time_of, reverse=True)
    shown = map(said, warnings[:EVENTS])
    own = SentValues([tree.live] if tree.live else [])
    return tuple(own.removed_from(sent.removed_from(event))[:300] for event in shown)


def _written(live: Object) -> str:
    """When an object was written last, to the second; "" if it does not say."""
    times = [text(live, "metadata", "creationTimestamp"), text(live, "metadata", "deletionTimestamp")]
    return max(time[:SECONDS] for time in (*times, *(text(one, "time") for one in entries(live, "metadata", "managedFields"))))
