# SPDX-License-Identifier: Apache-2.0
"""
Which errors of a write may pass in this run, so that the write is repeated.

What the set brings may not be there yet; and an API server goes for some seconds by what was before the run has changed it,
as each has caches of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence

from k8s_cr_driver.engine.run.nodes import Desired, Phase
from k8s_cr_driver.errors import ApiError, DriverError, Forbidden, Refused, Said
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, ObjectKey
from k8s_cr_driver.objects.marks import is_optional
from k8s_cr_driver.writes.write_errors import Immutable, NotReplaced, is_transient

SCHEMA_GRACE = 5.0
"""Seconds for which an API server may still validate by what a CRD was before its last change."""


class Tolerance:
    """
    `unready` says which of the `nodes` of a set are at work; `kinds` are those that it brings.

    `rerun`: objects that were deleted before the set is applied.
    """

    def __init__(
        self,
        nodes: Mapping[ObjectKey, Desired],
        unready: Collection[ObjectKey],
        kinds: Collection[GroupKind],
        rerun: Collection[ObjectKey],
    ) -> None:
        self._nodes, self._unready, self._kinds, self._rerun = nodes, unready, kinds, rerun
        self._namespaces = frozenset(key.name for key in nodes if key.group_kind == NAMESPACE)
        self._redefined: dict[GroupKind, float] = {}
        self._tried_once_more: set[ObjectKey] = set()

    def redefined(self, kind: GroupKind) -> None:
        """The run has changed the CRD of a kind."""
        self._redefined[kind] = time.monotonic()

    def may_pass(self, node: Desired, error: DriverError) -> bool:
        """Whether the write of the object is to be repeated."""
        if is_transient(error, node.obj, self._kinds, self._namespaces):
            return True
        if type(error) in (Refused, Immutable, NotReplaced):
            return time.monotonic() - self._redefined.get(node.key.group_kind, -math.inf) < SCHEMA_GRACE
        return self._is_counted_late(node, error) or self._is_awaited(node, error)

    def _is_counted_late(self, node: Desired, error: DriverError) -> bool:
        """Whether a quota still counts the object that was deleted."""
        was_there = node.replaced or node.vanished or node.key in self._rerun
        return bool(was_there) and type(error) is Forbidden and Said.QUOTA in Said.of(str(error))

    def _is_awaited(self, node: Desired, error: DriverError) -> bool:
        """
        Whether a Namespace is missing that an operator of the set may make, as long as an object of it is at work.

        The last one may have become ready while the response was on its way, so one more try follows.
        """
        if not _is_missing(error) or node.key.group_kind not in self._kinds:
            return False
        others = (self._nodes[key] for key in self._unready if key != node.key)
        if any(one.phase is not Phase.BLOCKED and not _is_missing(one.error) for one in others):
            self._tried_once_more.discard(node.key)
            return True
        is_last = node.key in self._tried_once_more
        self._tried_once_more.add(node.key)
        return not is_last


def can_do_without(node: Desired, dependents: Mapping[ObjectKey, Sequence[Desired]]) -> bool:
    """Whether an object is optional, and all that wait for it, directly or not: `dependents` of each object."""
    found, todo = {node.key: node}, [node]
    while todo:
        more = {one.key: one for one in dependents.get(todo.pop().key, ()) if one.key not in found}
        found |= more
        todo += more.values()
    return all(is_optional(one.obj.manifest) for one in found.values())


def _is_missing(error: Exception | None) -> bool:
    """Whether the error is about a Namespace that does not exist."""
    return isinstance(error, ApiError) and error.status == 404 and error.subject[0] == "namespaces"
