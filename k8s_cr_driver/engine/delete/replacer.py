# SPDX-License-Identifier: Apache-2.0
"""
Replacement of VNFCs: deleted before the set is applied, created again by their controllers before the run ends.

`Pruner` deletes them, with its fence, its uid preconditions and its errors. A controller may still report ready before it
has noticed the loss, so the replacements are counted at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from k8s_cr_driver.engine.delete.pruner import Pruner
from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import DriverError, Refused
from k8s_cr_driver.kube import backoff, timing
from k8s_cr_driver.kube.watch import Change, Message, Relist
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.objects.marks import KEEP, SHARED, is_kept
from k8s_cr_driver.writes.members import listed_members, release_others


@dataclass(frozen=True)
class Replacement:
    """
    `to_delete`: (label selector, live objects that it finds, all of one kind and namespace).

    `unfinished` reads the cluster and reports the owners whose children are not replaced, or not deleted, yet; it is called
    once all objects of the set are ready. `absent`: what would be replaced, and does not exist.
    """

    to_delete: Sequence[tuple[str, Sequence[Object]]] = ()
    unfinished: Callable[[], list[Report]] = list
    absent: frozenset[ObjectKey] = frozenset()

    @property
    def keys(self) -> frozenset[ObjectKey]:
        """The objects that are replaced."""
        return frozenset(key_of(live) for _, several in self.to_delete for live in several)

    @property
    def rerun(self) -> frozenset[ObjectKey]:
        """The objects that are to run again, also if they have run to their end."""
        return self.keys | self.absent


NO_REPLACEMENT = Replacement()


class Replacer:
    """The first and the last phase of a run that replaces objects. `nodes`: those that still exist."""

    def __init__(self, run: Run, informers: Informers, replacement: Replacement) -> None:
        self._operation, self._loop, self._context, self._informers = run.operation, run.loop, run.context, informers
        self._replacement, self._pruner = replacement, Pruner(run, None)
        self.nodes = self._pruner.nodes
        self.is_whole = False
        self.unfinished: list[Report] = []

    def start(self) -> None:
        """Begins to delete; Refused if one of them is adopted or kept, or may hold objects of others."""
        lives = [live for _, several in self._replacement.to_delete for live in several]
        adopted = [live for live in lives if self._context.inventory.content.is_adopted(live)]
        _refuse(adopted, "adopted")
        _refuse(filter(is_kept, lives), f"annotated with {KEEP}")
        _refuse((live for live in lives if kind_of(live) in SHARED), "all that is in it or of it would be lost")
        if ended := {key for key, _ in self._context.inventory.content.finished} & self._replacement.rerun:
            self._operation.persist(lambda: self._forget(ended))
        if lives:
            self._operation.persist(lambda: self._release_from(lives))
        self._pruner.start(lives)
        for selector, several in self._replacement.to_delete:
            self._follow(selector, [key_of(live) for live in several])

    def _forget(self, ended: Collection[ObjectKey]) -> None:
        """What has run to its end is to run again, also if this run dies once it has deleted it."""
        for key in ended:
            self._context.inventory.note_finished(key, None)
        self._context.inventory.adopt({})

    def _release_from(self, replaced: list[Object]) -> None:
        """The instance's other objects outlive those that are replaced: the garbage collector would delete them."""
        release_others(self._context, replaced, listed_members(self._context))

    def check(self) -> None:
        """Calls `unfinished` until it reports nothing: then the run `is_whole`."""
        self._loop.start(self._check())

    async def _check(self) -> None:
        began = time.monotonic()
        while not self.is_whole:
            try:
                self.unfinished = await self._loop.repeat(self._replacement.unfinished)
            except DriverError as error:
                self._loop.refuse(error)
                return
            self.is_whole = not self.unfinished
            if self.unfinished:
                await self._loop.pause(_pause(began))

    def _follow(self, selector: str, keys: Sequence[ObjectKey]) -> None:
        first = self.nodes[keys[0]]
        place = first.key.namespace
        self._informers.follow(first.resource, place, selector, lambda message: self._message(keys, message))

    def _message(self, keys: Collection[ObjectKey], message: Message) -> None:
        if isinstance(message, Relist):
            for key in keys:
                self._observe(key, message.objects.get(key))
        elif isinstance(message, Change) and key_of(message.live) in keys:
            self._observe(key_of(message.live), None if message.deleted else message.live)

    def _observe(self, key: ObjectKey, live: Object | None) -> None:
        """A new object of the same name, as a StatefulSet creates it, implies that the first no longer exists."""
        node = self.nodes.get(key)
        if node is not None and node.live is not None:
            same = live is not None and live["metadata"]["uid"] == node.live["metadata"]["uid"]
            self._pruner.observe(key, live if same else None)


def _pause(since: float) -> float:
    """Seconds until the next look of a wait: the longer it takes, the longer."""
    every, share = timing.TIMING.count_every, timing.TIMING.count_share
    return max(every, min(share * (time.monotonic() - since), backoff.LAST))


def _refuse(lives: Iterable[Object], why: str) -> None:
    if names := sorted(str(key_of(live)) for live in lives):
        raise Refused(f"{', '.join(names)}: {why}, so it is never deleted; choose others, or delete it yourself.")
