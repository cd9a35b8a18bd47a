# SPDX-License-Identifier: Apache-2.0
"""
The objects that must exist: which wait for which, which are ready, and which errors of a write may pass. No I/O.

An error may pass because what the set brings may not be there yet; and an API server goes for some seconds by what was before
the run has changed it, as each has caches of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from k8s_cr_driver.engine.run.nodes import Desired, Phase
from k8s_cr_driver.errors import ApiError, DriverError, Forbidden, Refused, Said
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, key_of, split
from k8s_cr_driver.objects.marks import is_optional
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.write_errors import Immutable, NotReplaced, is_transient

SCHEMA_GRACE = 5.0
"""Seconds for which an API server may still validate by what a CRD was before its last change."""


class DesiredSet:
    """
    `unready` is empty when all `nodes` are ready; `brought` are the kinds whose CRDs are among them.

    `last`: objects that wait until all others are ready. `rerun`: those that are deleted before the set is applied, and run
    again also if they have run to their end.
    """

    def __init__(
        self,
        resources: Resources,
        desired: Sequence[CustomResource],
        last: Collection[ObjectKey],
        rerun: Collection[ObjectKey],
    ) -> None:
        self.rerun = rerun
        self.nodes = _nodes(resources, desired, frozenset(last))
        self.unready = dict.fromkeys(self.nodes)
        self.by_kind: dict[GroupKind, list[Desired]] = {}
        self._dependents: dict[ObjectKey, list[Desired]] = {}
        self._followers: dict[ObjectKey, list[Desired]] = {}
        for node in self.nodes.values():
            self.by_kind.setdefault(node.key.group_kind, []).append(node)
            for need in node.needs:
                self._dependents.setdefault(need, []).append(node)
            for first in node.after:
                self._followers.setdefault(first, []).append(node)
        self.namespaces = self.brought_namespaces | {key.namespace for key in self.nodes} - {""}
        self.kinds = frozenset(self.by_kind)
        self._crds = {defined_by(obj.manifest): self.nodes[obj.key] for obj in desired if obj.key.group_kind == CRD}
        self.brought = frozenset(self._crds)

    @property
    def brought_namespaces(self) -> frozenset[str]:
        """Those among the objects."""
        return frozenset(node.key.name for node in self.by_kind.get(NAMESPACE, ()))

    def uses(self, live: Object) -> bool:
        """Whether desired objects are in this Namespace, or of the kind that this CRD defines."""
        key = key_of(live)
        in_use = key.group_kind == NAMESPACE and key.name in self.namespaces
        return in_use or (key.group_kind == CRD and defined_by(live) in self.kinds)

    @property
    def awaits(self) -> bool:
        """Whether the run waits for one of the objects: for an optional one only until its first write was answered.

        And until it is created again, if the run deletes it for that.
        """
        return any(map(self._is_awaited, self.unready))

    def _is_awaited(self, key: ObjectKey) -> bool:
        node = self.nodes[key]
        is_to_be_sent = node.phase is Phase.SENDING or (node.phase is Phase.BLOCKED and not node.needs)
        is_replaced = node.phase is Phase.HELD or (node.live is not None and node.replaces(node.live))
        return not is_optional(node.obj.manifest) or is_to_be_sent or is_replaced

    def required(self) -> Iterator[Desired]:
        """The objects that are not ready, but for optional ones. Asked for after each event: most look at the first alone."""
        return (node for key in self.unready if not is_optional((node := self.nodes[key]).obj.manifest))

    def live(self) -> list[tuple[Resource, Object]]:
        """The desired objects as they are now, as far as they are stored: reviews are not."""
        stored = (node for node in self.nodes.values() if "get" in node.resource.verbs)
        return [(node.resource, node.live) for node in stored if node.live is not None]

    def put_after(self, node: Desired, first: ObjectKey) -> None:
        """`node` is written after `first`, whose write is held, too. The caller knows that this closes no cycle."""
        if first not in node.after:
            node.after.add(first)
            self._followers.setdefault(first, []).append(node)

    def tried(self, node: Desired) -> Iterable[Desired]:
        """What may be written once the object has had a response, also if its write is repeated: controllers wait for it."""
        followers = self._followers.pop(node.key, ())
        for follower in followers:
            follower.after.discard(node.key)
        return followers

    def ready(self, node: Desired) -> Iterable[Desired]:
        """What may be written now that the object is ready."""
        self.unready.pop(node.key, None)
        dependents = self._dependents.pop(node.key, ())
        for dependent in dependents:
            dependent.needs.discard(node.key)
        return dependents

    def gone(self, node: Desired) -> None:
        """A CRD that is deleted stays until there is no object of its kind: none is created again before the CRD is."""
        crd = self._crds.get(node.key.group_kind)
        if crd is not None and crd.key in self.unready:
            node.needs.add(crd.key)
            self._dependents.setdefault(crd.key, []).append(node)

    def can_do_without(self, node: Desired) -> bool:
        """Whether an object is optional, and all that wait for it, directly or not."""
        found, todo = {node.key: node}, [node]
        while todo:
            more = {one.key: one for one in self._dependents.get(todo.pop().key, ()) if one.key not in found}
            found |= more
            todo += more.values()
        return all(is_optional(one.obj.manifest) for one in found.values())


def _nodes(
    resources: Resources, desired: Sequence[CustomResource], last: frozenset[ObjectKey]
) -> dict[ObjectKey, Desired]:
    pairs = [(first, obj.key) for obj in desired for first in obj.relations().applied_after()]
    manifests = [obj.manifest for obj in desired]
    needs = dependencies.graph(manifests, pairs)
    others = needs.keys() - last
    needs = {key: (needed | others if key in last else needed - last) for key, needed in needs.items()} if last else needs
    after = dependencies.written_first(manifests, needs)
    paused_by = {key: obj.key for obj in desired for key in obj.relations().pauses(manifests)}
    nodes = {}
    for obj in sorted(desired, key=lambda one: dependencies.rank(one.key.group_kind)):
        resource = resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1])
        if resource is None:
            raise Refused(f"{obj.key}: the cluster does not know {obj.manifest['apiVersion']} {obj.key.kind}. Install its CRD.")
        if resource.is_unlisted:
            raise Refused(f"{obj.key}: the cluster cannot list {resource.plural}, so nobody can follow it. Leave it out.")
        obj.paused_by = paused_by.get(obj.key)
        nodes[obj.key] = Desired(obj, resource, needs[obj.key], after=after[obj.key])
    return nodes


class Tolerance:
    """Which errors of the writes of a set may pass in this run."""

    def __init__(self, desired: DesiredSet) -> None:
        self._set = desired
        self._namespaces = desired.brought_namespaces
        self._redefined: dict[GroupKind, float] = {}
        self._tried_once_more: set[ObjectKey] = set()

    def redefined(self, kind: GroupKind) -> None:
        """The run has changed the CRD of a kind."""
        self._redefined[kind] = time.monotonic()

    def may_pass(self, node: Desired, error: DriverError) -> bool:
        """Whether the write of the object is to be repeated."""
        if is_transient(error, node.obj, self._set.brought, self._namespaces):
            return True
        if type(error) in (Refused, Immutable, NotReplaced):
            return time.monotonic() - self._redefined.get(node.key.group_kind, -math.inf) < SCHEMA_GRACE
        return self._is_counted_late(node, error) or self._is_awaited(node, error)

    def _is_counted_late(self, node: Desired, error: DriverError) -> bool:
        """Whether a quota still counts the object that was deleted."""
        was_there = node.replaced or node.vanished or node.key in self._set.rerun
        return bool(was_there) and type(error) is Forbidden and Said.QUOTA in Said.of(str(error))

    def _is_awaited(self, node: Desired, error: DriverError) -> bool:
        """
        Whether a Namespace is missing that an operator of the set may make, as long as an object of it is at work.

        The last one may have become ready while the response was on its way, so one more try follows.
        """
        if not _is_missing(error) or node.key.group_kind not in self._set.brought:
            return False
        others = (self._set.nodes[key] for key in self._set.unready if key != node.key)
        if any(one.phase is not Phase.BLOCKED and not _is_missing(one.error) for one in others):
            self._tried_once_more.discard(node.key)
            return True
        is_last = node.key in self._tried_once_more
        self._tried_once_more.add(node.key)
        return not is_last


def _is_missing(error: Exception | None) -> bool:
    """Whether the error is about a Namespace that does not exist."""
    return isinstance(error, ApiError) and error.status == 404 and error.subject[0] == "namespaces"
