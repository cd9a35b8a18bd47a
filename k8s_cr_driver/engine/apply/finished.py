# SPDX-License-Identifier: Apache-2.0
"""
Desired objects that run to an end, as a Job does: one that has ended well is not created again when it vanishes.

The inventory records the ends, so that a later run knows them, also after a crash. Those of a short time are one write.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.writes.create_or_apply import record_finished

COLLECT_FOR = 0.3
"""Seconds for which ends are collected."""


class Ends:
    """Sets `finished` of the desired objects of a run, and records it."""

    def __init__(self, run: Run) -> None:
        self._loop, self._context = run.loop, run.context
        self._is_recording, self._is_noted, self._failures = False, False, 0
        self._forgetting: list[Callable[[], None]] = []

    def note(self, node: Desired) -> None:
        """The object has ended well."""
        if not node.finished:
            node.finished = True
            self._record(node.key, node.digest)

    def forget_failed(self, node: Desired, live: Object | None) -> None:
        """Earlier versions of the driver have recorded the end of objects that have failed: these are to run again."""
        if node.finished and live is not None and node.obj.has_finished(live) and not has_ended_well(node, _undeleted(live)):
            node.finished = False
            self._record(node.key, None)

    def forget_former(self, node: Desired, then: Callable[[], None] = lambda: None) -> None:
        """Another manifest of the object is applied: by the recorded end a rollback would take that one for the former.

        `then` is called once that is written, such as what deletes the former.
        """
        has_former, node.has_former_end = node.has_former_end and not node.finished, False
        if has_former:
            self._record(node.key, None, then)
        else:
            then()

    def _record(self, key: ObjectKey, digest: str | None, then: Callable[[], None] | None = None) -> None:
        self._context.inventory.note_finished(key, digest)
        if then is not None:
            self._forgetting.append(then)
        self._is_noted = True
        if not self._is_recording:
            self._is_recording = True
            self._loop.after(COLLECT_FOR, self._write)

    def _write(self) -> None:
        forgotten, self._forgetting = self._forgetting, []
        self._is_noted = False

        def written(error: DriverError | None = None) -> None:
            is_failed = error is not None and passes(error)
            self._failures = self._failures + 1 if is_failed else 0
            if is_failed:
                self._forgetting += forgotten
            elif error is not None and forgotten:
                self._loop.refuse(error)
            else:
                for then in forgotten:
                    then()
            self._is_recording = is_failed or self._is_noted  # more may have come meanwhile
            if self._is_recording:
                self._loop.after(backoff.delay(self._failures, error) if is_failed else COLLECT_FOR, self._write)

        self._loop.send(functools.partial(record_finished, self._context), lambda _: written(), written)


def has_ended_well(node: Desired, live: Object) -> bool:
    """Some kinds have the time of their end in the status also after a failure, and are to be run again then."""
    return node.obj.has_finished(live) and node.obj.assess(live).settled


def goes_after_its_end(node: Desired, live: Object) -> bool:
    """Whether somebody else deletes an object that has run to its end: a Job whose time to live is over goes after its Pods."""
    if live["metadata"].get("deletionTimestamp") is None or node.replaces(live):
        return False
    return node.obj.has_finished(live) and node.obj.assess(_undeleted(live)).settled


def _undeleted(live: Object) -> Object:
    """The object as it was before somebody has deleted it."""
    return {**live, "metadata": {name: value for name, value in live["metadata"].items() if name != "deletionTimestamp"}}
