"""
Objects that shall be replaced: deleted and gone before the set is applied, and made anew before the run ends.

Deleting is the business of `prune`, with its fence, its uid preconditions and its error. But those who make such objects
anew, a set's controllers, may be called ready before they have noticed a loss: so what lacks is asked for at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from k8s_cr_driver.engine.informers import Informers
from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.engine.prune import Pruner
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.errors import DriverError, Refused, passes
from k8s_cr_driver.kube.watch import Change, Message, Relist
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of

LOOK_EVERY = 1.0
"""Seconds between two looks at what is made anew."""


@dataclass(frozen=True)
class Replacement:
    """
    `doomed`: (label selector, live objects that it finds, all of one kind and namespace).

    `lacking` reads the cluster and tells whose children are not made anew, or gone, yet; asked once all objects of the set
    are ready.
    """

    doomed: Sequence[tuple[str, Sequence[Object]]] = ()
    lacking: Callable[[], list[Report]] = list


NO_REPLACEMENT = Replacement()


class Replacer:
    """The first and the last phase of a run that replaces objects. `nodes`: those that are not gone yet."""

    def __init__(self, run: Run, streams: Informers, renewal: Replacement) -> None:
        self._loop, self._target, self._streams = run.loop, run.target, streams
        self._renewal = renewal
        self._pruning = Pruner(run, None)
        self.nodes = self._pruning.nodes
        self.is_whole = False
        self.lacking: list[Report] = []

    def start(self) -> None:
        """Begins to delete. Refused for what was there before the instance, and is not ours to delete."""
        lives = [live for _, several in self._renewal.doomed for live in several]
        kept = sorted(str(key_of(live)) for live in lives if self._target.inventory.record.keeps(live))
        if kept:
            raise Refused(f"{', '.join(kept)}: adopted, so it is never deleted; choose others, or delete it yourself.")
        self._pruning.start(lives)
        for selector, several in self._renewal.doomed:
            keys = [key_of(live) for live in several]
            first = self.nodes[keys[0]]
            message = functools.partial(self._message, keys)
            self._streams.follow(first.resource, first.key.namespace, selector, message)

    def look(self) -> None:
        """Asks what lacks, until nothing does: `is_whole`."""
        self._loop.send(self._renewal.lacking, self._looked, self._failed)

    def _looked(self, lacking: list[Report]) -> None:
        self.lacking, self.is_whole = lacking, not lacking
        if lacking:
            self._loop.after(LOOK_EVERY, self.look)

    def _failed(self, error: DriverError) -> None:
        if passes(error):
            self._loop.after(LOOK_EVERY, self.look)
        else:
            self._loop.refuse(error)

    def _message(self, keys: Collection[ObjectKey], message: Message) -> None:
        if isinstance(message, Relist):
            for key in keys:
                self._seen(key, message.objects.get(key))
        elif isinstance(message, Change) and key_of(message.live) in keys:
            self._seen(key_of(message.live), None if message.deleted else message.live)

    def _seen(self, key: ObjectKey, live: Object | None) -> None:
        """One of the same name that is another object, as a StatefulSet makes it, tells that the first is gone."""
        node = self.nodes.get(key)
        if node is not None and node.live is not None:
            same = live is not None and live["metadata"]["uid"] == node.live["metadata"]["uid"]
            self._pruning.heard(key, live if same else None)
