# SPDX-License-Identifier: Apache-2.0
"""
Whether anything still moves while a run waits: `no-activity-timeout` of an operation or of an object ends it early.

What moves is what the watches report, what is below the objects, and Events. The latter two are read by the search that the
error would make, once the watches have reported nothing for that time, and at most once in it. An object with others below
it that are being made is not judged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping

from k8s_cr_driver.engine.report.diagnosis import Seen
from k8s_cr_driver.engine.report.progress_log import Timeouts
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired, Phase, ToDelete, version
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of
from k8s_cr_driver.objects.marks import is_optional
from k8s_cr_driver.objects.rule_texts import NO_ACTIVITY, no_activity_seconds

AGAIN = 10.0
"""Seconds until the next look after one that could not read all."""
SHORTEST = 1.0
"""Seconds between two checks, at least."""


class Activity:
    """Without a time, of the operation or of one of the objects to `apply`, it does nothing."""

    def __init__(self, run: Run, apply: Mapping[ObjectKey, Desired], timeouts: Timeouts) -> None:
        self._loop, self._clock, self._timeouts = run.loop, run.client.connection.clock, timeouts
        self._limit = run.operation.no_activity or math.inf
        limits = {key: no_activity_seconds(annotations_of(node.obj.manifest).get(NO_ACTIVITY)) for key, node in apply.items()}
        self._limits = {key: limit for key, limit in limits.items() if limit}
        self._is_on = bool(self._limits) or self._limit < math.inf
        self._versions: dict[ObjectKey, str] = {}
        self._moved: dict[ObjectKey, float] = {}
        """When each object has moved last, and of what is below it, in times of time.monotonic()."""
        self._last = time.monotonic()

    def start(self) -> None:
        """The run begins to write."""
        self._last = time.monotonic()
        if self._is_on:
            self._loop.start(self._follow())

    def observe(self, key: ObjectKey, live: Object | None) -> None:
        """A watch reports an object of the instance; None: it no longer exists."""
        if self._is_on:
            now = version(live) if live is not None else ""
            if self._versions.get(key) != now:
                self._versions[key] = now
                self._moves(key, time.monotonic())

    def _moves(self, key: ObjectKey, at: float) -> None:
        self._moved[key] = max(at, self._moved.get(key, 0.0))
        self._last = max(at, self._last)

    async def _follow(self) -> None:
        pause = SHORTEST
        while True:
            await self._loop.pause(max(pause, self._due_in()))
            pause, nodes = SHORTEST, self._nodes()
            if not nodes:
                self._last = time.monotonic()
            for node in filter(self._has_grace, nodes.values()):
                self._moves(node.key, time.monotonic())
            if not self._still(nodes):
                continue
            try:
                found = await self._loop.call(self._timeouts.look, list(map(Seen.of, nodes.values())))
            except DriverError:
                pause = AGAIN
                continue
            for key, stamp in found.moved.items():
                self._moves(key, time.monotonic() - self._age(stamp))
            for key in found.making:
                self._moves(key, time.monotonic())
            nodes = self._nodes()
            still = self._still(nodes)
            if still and found.is_whole:
                raise self._timeouts.stood_still(self._headline(still, nodes), found.reports)
            pause = SHORTEST if found.is_whole else AGAIN

    def _due_in(self) -> float:
        """Seconds until something may have stood still for its time."""
        ends = [self._last + self._limit, *(self._moved.get(key, math.inf) + limit for key, limit in self._limits.items())]
        longest = min(self._limit, *self._limits.values(), math.inf)
        return min(min(ends) - time.monotonic(), longest)

    def _has_grace(self, node: Desired | ToDelete) -> bool:
        """Whether the object is being deleted, and its grace period is not over."""
        end = text(node.live, "metadata", "deletionTimestamp")
        try:
            return bool(end) and self._clock.age(end) < 0
        except ValueError:
            return False

    def _nodes(self) -> Mapping[ObjectKey, Desired | ToDelete]:
        """What the run waits for."""
        awaited = self._timeouts.open_nodes()
        return {node.key: node for node in awaited if isinstance(node, ToDelete) or not is_optional(node.obj.manifest)}

    def _still(self, nodes: Mapping[ObjectKey, Desired | ToDelete]) -> Collection[ObjectKey]:
        """The objects that stand still for longer than they may; all of them if nothing of the operation moves."""
        now = time.monotonic()
        if nodes and now - self._last >= self._limit:
            return nodes.keys()
        applied = [key for key in self._limits if isinstance(node := nodes.get(key), Desired) and node.phase is Phase.SENT]
        return [key for key in applied if now - self._moved.setdefault(key, now) >= self._limits[key]]

    def _age(self, stamp: str) -> float:
        try:
            return max(0.0, self._clock.age(stamp))
        except ValueError:
            return math.inf

    def _headline(self, still: Collection[ObjectKey], nodes: Collection[ObjectKey]) -> str:
        if len(still) == len(nodes) and self._limit < math.inf and time.monotonic() - self._last >= self._limit:
            return f"and nothing has moved for {self._limit:.0f} s (no-activity-timeout)"
        first = min(still)
        return f"and {first} has not moved for {self._limits[first]:.0f} s (no-activity-timeout)"
