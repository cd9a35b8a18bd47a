# SPDX-License-Identifier: Apache-2.0
"""Users, who know nothing of operations and do what they like, with the instance's objects and with their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from k8s_cr_driver.errors import Conflict, NotOurs, Refused
from k8s_cr_driver.journal.stored_form import inventory_name
from k8s_cr_driver.objects.keys import labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from tests.fake_api import deletion, errors
from tests.fake_api.hand import Hand
from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, copy, key_of, without
from tests.simulation import package
from tests.simulation.entries import SHARED, USER, Actor
from tests.simulation.servers import Servers

WAIT = "users.example.com/wait"
_ACTOR = Actor(USER, "a user")
_PAUSES = (0.3, 2.0, 10.0)
MOST = 30
"""Acts of users in one life."""


class Users:
    """All users of a life; `features` name what they may do to the objects of `instance`."""

    def __init__(self, servers: Servers, instance: str, features: frozenset[str]) -> None:
        self._servers, self._instance = servers, instance
        self._hand = Hand(servers.cluster)
        self._random = servers.scheduler.random
        self._acts = [act for name, act in _ACTS.items() if name in features and self._random.random() < 0.4]
        self._pause = self._random.choice(_PAUSES)
        self._left = MOST
        self.last = -1000.0

    def begin(self) -> None:
        if self._acts:
            self._wait()

    def stop(self) -> None:
        self._left = 0

    def put(self, obj: Object) -> Object:
        """Makes an object of the users' own."""
        made: list[Object] = []
        self._servers.acting(_ACTOR, lambda: made.append(self._hand.put(copy(obj), manager="kubectl")))
        return made[0]

    def _wait(self) -> None:
        self._servers.scheduler.after(self._random.expovariate(1 / self._pause), self._act)

    def _act(self) -> None:
        if not self._left:
            return
        self._left -= 1
        targets = self._targets()
        if targets:
            resource, key = self._random.choice(targets)
            act = self._random.choice(self._acts)
            self._do(partial(act, self, resource, key))
            self.last = self._servers.scheduler.now
        self._wait()

    def _targets(self) -> list[tuple[Resource, Key]]:
        entries = self._servers.ledger.entries.values()
        return [(entry.resource, entry.key) for entry in entries if entry.owner == self._instance]

    def edit(self, resource: Resource, key: Key) -> None:
        """A label of their own, and a value where there are free ones."""

        def change(live: Object) -> None:
            live["metadata"].setdefault("labels", {})["users.example.com/seen"] = str(self._random.random())
            if live["kind"] == "ConfigMap" and "data" in live:
                live["data"]["user-note"] = "mine"

        self._edit(resource, key, change)

    def unlabel(self, resource: Resource, key: Key) -> None:
        def change(live: Object) -> None:
            labels = live["metadata"].get("labels") or {}
            live["metadata"]["labels"] = {name: text for name, text in labels.items() if "tacker" not in name}

        self._edit(resource, key, change)

    def hold(self, resource: Resource, key: Key) -> None:
        """A finalizer, taken off again after a while."""

        def change(live: Object) -> None:
            if "deletionTimestamp" not in live["metadata"]:
                live["metadata"].setdefault("finalizers", []).append(WAIT)

        self._edit(resource, key, change)
        self._servers.scheduler.after(
            self._random.expovariate(1 / 5.0), lambda: self._servers.acting(_ACTOR, partial(self._release, resource, key))
        )

    def _release(self, resource: Resource, key: Key) -> None:
        if live := self._live(resource, key):
            self._hand.release(live["kind"], key[0], key[1], [WAIT])

    def delete(self, resource: Resource, key: Key) -> None:
        if resource not in SHARED and self._live(resource, key):
            deletion.delete(self._servers.cluster, resource, key)

    def delete_namespace(self, resource: Resource, key: Key) -> None:
        if resource in SHARED and self._live(resource, key):
            deletion.delete(self._servers.cluster, resource, key)

    def recreate(self, resource: Resource, key: Key) -> None:
        """As `kubectl replace --force`: another object of that name, with the marks of the one before it."""
        live = self._live(resource, key)
        if live is None or resource in SHARED or live["metadata"].get("finalizers") or live["kind"] not in _PLAIN:
            return
        again = copy(without(live, "status"))
        for name in ("uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "ownerReferences"):
            again["metadata"].pop(name, None)
        deletion.delete(self._servers.cluster, resource, key)
        if self._live(resource, key) is None:
            made = self._hand.put(again, manager="kubectl-replace")
            entry = self._servers.ledger.entries[made["metadata"]["uid"]]
            is_inventory = key[1] == f"k8s-cr-driver-{self._instance}"
            if is_inventory or labels(made).get(INSTANCE_LABEL) == self._instance:  # else it is marked as nobody's
                self._servers.ledger.made_again(entry, self._instance)
            entry.made_by_others = self._servers.scheduler.now

    def heed(self, error: Refused, instance: str, applied: list[Object]) -> None:
        """
        What an error asks for: let the instance have the object, take away what conflicts, or install what is missing.

        `applied`: what the verb applies. A scale, and a heal of some VNFCs, do not bring the package's Namespaces and CRDs.
        """
        ledger = self._servers.ledger
        entries = list(ledger.entries.values())
        if isinstance(error, NotOurs):
            for entry in entries:
                live = self._live(entry.resource, entry.key) if entry.owner == USER else None
                is_wanted = live and (entry.resource, entry.key) in map(package.named, applied)
                name = "/".join(filter(None, entry.key))
                # With the label, too, where no inventory says whose it is; with it others like it are adopted, unnamed
                is_refused = f" {name} exists already" in str(error) or entry.is_unnamed or ledger.is_in_doubt(entry)
                if live and is_wanted and (is_refused or INSTANCE_LABEL not in labels(live)):
                    ledger.adopts(entry, instance)
                    entry.reclaimable_by = instance if INSTANCE_LABEL in labels(live) else ""
        elif isinstance(error, Conflict):
            for entry in entries:
                if instance in (entry.reclaimable_by, *entry.adopted_by):
                    self._do(partial(deletion.delete, self._servers.cluster, entry.resource, entry.key))
        elif "has the name of the inventory" in str(error):
            [inventory] = {(entry.resource, entry.key) for entry in entries if entry.key[1] == inventory_name(instance)}
            self._do(partial(self.delete, *inventory))
        else:
            self._install(applied)

    def _install(self, applied: list[Object]) -> None:
        brought = {package.named(manifest) for manifest in applied}
        for manifest in applied:
            where, is_widget = manifest["metadata"].get("namespace"), manifest["kind"] == "Widget"
            for needed in ([package.namespace(where)] if where else []) + ([package.crd()] if is_widget else []):
                if package.named(needed) not in brought and self._live(*package.named(needed)) is None:
                    self.put(needed)

    def _do(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(errors.ApiError, LookupError):
            self._servers.acting(_ACTOR, act)

    def _live(self, resource: Resource, key: Key) -> Object | None:
        return self._servers.store.get(resource, key)

    def _edit(self, resource: Resource, key: Key, change: Callable[[Object], None]) -> None:
        if live := self._live(resource, key):
            assert key_of(live) == key
            self._hand.edit(live["kind"], key[0], key[1], change, manager="kubectl-edit")


_PLAIN = ("ConfigMap", "Widget", "ClusterRole")
_ACTS: dict[str, Callable[[Users, Resource, Key], None]] = {
    "edits": Users.edit,
    "lost labels": Users.unlabel,
    "finalizers": Users.hold,
    "deletions": Users.delete,
    "namespaces deleted": Users.delete_namespace,
    "recreated": Users.recreate,
}
