"""The objects that shall go: deleted in the reverse order of their making, waited for, and told of when they stay."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from k8s_cr_driver import order
from k8s_cr_driver.discovery import Resources
from k8s_cr_driver.engine.loop import Loop
from k8s_cr_driver.engine.nodes import Doomed, Phase
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.engine.remove import remove
from k8s_cr_driver.engine.write import Target
from k8s_cr_driver.errors import ApiError, DriverError, passes
from k8s_cr_driver.keys import Key, Object, split
from k8s_cr_driver.resources.registry import resource_for


class Pruning:
    """The doomed side of a run; `nodes` is empty when all are gone."""

    def __init__(
        self, operation: Operation, loop: Loop, target: Target, resources: Resources, grace_period: int | None
    ) -> None:
        self._operation, self._loop, self._target = operation, loop, target
        self._resources, self._grace_period = resources, grace_period
        self.nodes: dict[Key, Doomed] = {}

    def start(self, lives: Sequence[Object]) -> None:
        """Begins to delete `lives`."""
        objects = [resource_for(live) for live in lives]
        needs = order.deletion(lives, pairs=[(one.key, later) for one in objects for later in one.delete_before(lives)])
        for live in lives:
            self.add(live, needs)
        for node in list(self.nodes.values()):
            self._try(node)

    def add(self, live: Object, needs: dict[Key, set[Key]]) -> Doomed:
        obj = resource_for(live)
        resource = self._resources.find(obj.key.of, split(live["apiVersion"])[1])
        assert resource is not None, "a stream told of it"
        node = Doomed(obj, resource, set(needs.get(obj.key, ())), live=live)
        self.nodes[node.key] = node
        return node

    def heard(self, key: Key, live: Object | None) -> None:
        """A stream tells of an object that is not wanted."""
        if live is not None:
            if key in self.nodes:
                self._seen(self.nodes[key], live)
            else:
                self._try(self.add(live, {}))
        elif self.nodes.pop(key, None) is not None:
            self._operation.progress(key, "gone", "")
            for other in list(self.nodes.values()):
                other.needs.discard(key)
                self._try(other)

    def _seen(self, node: Doomed, live: Object) -> None:
        """An object of the same name that is another one has to be deleted in its turn."""
        before, node.live = node.live or {}, live
        if before["metadata"]["uid"] != live["metadata"]["uid"] and node.phase is Phase.SENT:
            self._again(node)

    def _try(self, node: Doomed) -> None:
        if node.phase is not Phase.BLOCKED or node.needs or self._loop.refusals or node.live is None:
            return
        node.phase = Phase.SENDING
        self._operation.progress(node.key, "deleting", "")
        if self._has_owner(node, node.live):
            self._sent(node, None)
            return
        request = functools.partial(remove, self._target, node.obj, node.resource, node.live, self._grace_period)
        self._loop.send(request, functools.partial(self._sent, node), functools.partial(self._failed, node))

    def _has_owner(self, node: Doomed, live: Object) -> bool:
        """Whether its controlling owner is deleted too and takes it along, and does not wait for it to be gone."""
        references = live["metadata"].get("ownerReferences") or []
        owners = {reference.get("uid") for reference in references if reference.get("controller")}
        stay = self._target.inventory.record.adopted
        return any(
            other.live is not None
            and other.live["metadata"]["uid"] in owners
            and key not in stay
            and node.key not in self._needs_of(other)
            for key, other in (self.nodes.items() if owners else ())
        )

    def _needs_of(self, node: Doomed) -> set[Key]:
        """All that must be gone before the object may go, also before those."""
        found: set[Key] = set()
        new = set(node.needs)
        while new:
            found |= new
            new = {need for key in new if key in self.nodes for need in self.nodes[key].needs} - found
        return found

    def _sent(self, node: Doomed, _: None) -> None:
        node.phase, node.error, node.attempts = Phase.SENT, None, 0

    def _failed(self, node: Doomed, error: DriverError) -> None:
        if isinstance(error, ApiError) and error.status == 404:
            self.heard(node.key, None)
        elif passes(error) or (isinstance(error, ApiError) and error.status == 409):
            node.phase, node.error = Phase.BACKOFF, error
            self._loop.after(node.backoff(), functools.partial(self._again, node))
        elif self._operation.abandon:
            node.phase, node.error = Phase.SENT, error
        else:
            self._loop.refuse(error)

    def _again(self, node: Doomed) -> None:
        node.phase = Phase.BLOCKED
        self._try(node)
