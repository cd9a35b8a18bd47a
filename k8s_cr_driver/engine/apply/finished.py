# SPDX-License-Identifier: Apache-2.0
"""
Desired objects that run to an end, as a Job does: one that has ended well is not created again when it vanishes.

The inventory records the ends, so that a later run knows them, also after a crash.
"""

from __future__ import annotations

from collections.abc import Callable

from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.journal.writer import Note, Writer
from k8s_cr_driver.objects.keys import Object, ObjectKey


class Ends:
    """Sets `finished` of the desired objects of a run, and records it."""

    def __init__(self, run: Run, notes: Writer) -> None:
        self._loop, self._inventory, self._notes = run.loop, run.context.inventory, notes

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
        self._inventory.note_finished(key, digest)
        note = Note(then, self._loop.refuse, repeats=True) if then else Note(_nothing, _nothing, repeats=True)
        self._notes.add(note)


def _nothing(_: object = None) -> None:
    """Without the note the object runs again, at worst."""


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
