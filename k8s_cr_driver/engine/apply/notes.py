# SPDX-License-Identifier: Apache-2.0
"""
What a run notes in its inventory while it works: adopted objects, and those that have run to their end, as a Job does.

One that has ended well is not created again when it vanishes; the inventory says so to a later run, also after a crash. A
write costs as much as the inventory is long. So the notes of a short time are one write, and one is on its way at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from k8s_cr_driver.engine.run.loop import Resume, Run, until
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.keys import Object, ObjectKey

COLLECT_FOR = 0.3
"""Seconds for which notes are collected."""


class Notes:
    """Those of one run. Sets `finished` of its desired objects."""

    def __init__(self, run: Run) -> None:
        self._loop, self._inventory = run.loop, run.context.inventory
        self._adopted: dict[ObjectKey, str] = {}
        self._waiting: list[Resume] = []
        self._is_due = False

    async def stored(self, adopted: Mapping[ObjectKey, str] | None = None) -> None:
        """
        Returns once all is written that was noted in the inventory before, and that objects of these uids are `adopted`.

        Raises the DriverError of the write, which is repeated while that passes.
        """
        self._adopted.update(adopted or {})
        if not self._is_due:
            self._is_due = True
            self._loop.start(self._write())
        await until(self._waiting.append)

    async def _write(self) -> None:
        while self._is_due:
            await self._loop.pause(COLLECT_FOR)
            adopted, waiting = self._adopted, self._waiting
            self._adopted, self._waiting = {}, []
            failed: DriverError | None = None
            try:
                await self._loop.repeat(self._inventory.adopt, adopted)
            except DriverError as error:
                failed = error
            for resume in waiting:
                resume(None, failed)
            self._is_due = bool(self._waiting)

    def end(self, node: Desired) -> None:
        """The object has ended well."""
        if not node.finished:
            node.finished = True
            self._loop.start(self._tried(node.key, node.digest))

    async def forget_former(self, node: Desired) -> None:
        """
        Another manifest of the object is applied: by the recorded end a rollback would take that one for the former.

        The run ends if that cannot be noted.
        """
        has_former, node.has_former_end = node.has_former_end and not node.finished, False
        if has_former:
            self._inventory.note_finished(node.key, None)
            try:
                await self.stored()
            except DriverError as error:
                self._loop.refuse(error)

    async def _tried(self, key: ObjectKey, digest: str) -> None:
        self._inventory.note_finished(key, digest)
        with contextlib.suppress(DriverError):  # without the note the object runs again, at worst
            await self.stored()


def has_ended_well(node: Desired, live: Object) -> bool:
    """Some kinds have the time of their end in the status also after a failure, and are to be run again then."""
    return node.obj.has_finished(live) and node.obj.assess(live).settled


def goes_after_its_end(node: Desired, live: Object) -> bool:
    """Whether somebody else deletes an object that has run to its end: a Job whose time to live is over goes after its Pods."""
    if live["metadata"].get("deletionTimestamp") is None or node.replaces(live):
        return False
    before = {name: value for name, value in live["metadata"].items() if name != "deletionTimestamp"}
    return node.obj.has_finished(live) and node.obj.assess({**live, "metadata": before}).settled
