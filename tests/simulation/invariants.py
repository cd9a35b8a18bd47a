# SPDX-License-Identifier: Apache-2.0
"""What must be so whenever an operation says COMPLETED, whatever was going on."""

from __future__ import annotations

import json
from typing import Any

from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, dig
from tests.simulation.entries import CONTROLLER, SHARED, USER, Entry, is_inventory
from tests.simulation.package import named
from tests.simulation.servers import Servers
from tests.simulation.users import Users
from tests.simulation.verbs import Verb
from tests.simulation.weather import LONGEST_LAG, LONGEST_TRAVEL

NEWS = LONGEST_LAG + 2 * LONGEST_TRAVEL + 1
"""Seconds after which whatever others have done is known to everybody, as long as no stream is silent."""
NEWS_OF_SILENT = 320.0


class Invariants:
    """Checked against the store itself; what others have done so late that nobody could know of it is left out."""

    def __init__(self, servers: Servers, users: Users) -> None:
        self._servers, self._users = servers, users
        self._ledger, self._store = servers.ledger, servers.store
        self._news = NEWS_OF_SILENT if "silent streams" in servers.weather.features else NEWS

    def check_completed(self, instance: str, verb: Verb, worker: str, doomed: set[str]) -> None:
        """What others have done since the worker has closed its watches it cannot know: its last write may take minutes."""
        if verb.by_inventory and self._ledger.is_forgotten(instance):
            return
        seen = self._ledger.last_sight.get(worker, self._servers.scheduler.now)
        for manifest in verb.promised:
            self._check_present(verb, manifest, seen)
        for uid in doomed & self._ledger.entries.keys():
            if not self._is_going(self._ledger.entries[uid]):
                self._ledger.violated(f"{verb.name} COMPLETED, and {self._ledger.entries[uid]} is the one of before")
        if verb.prunes:
            wanted = {named(manifest) for manifest in verb.desired}
            for entry in self._of(instance):
                if (entry.resource, entry.key) not in wanted and self._is_direct(entry) and verb.desired:
                    self._check_left(entry, instance, f"{verb.name} COMPLETED")
            self._check_released(instance, wanted, f"{verb.name} COMPLETED")

    def applied(self, instance: str) -> dict[str, Object]:
        """What the engine has applied for an instance, by resource and name; a released Namespace or CRD is left out."""
        entries = [entry for entry in self._of(instance) if self._is_direct(entry)]
        found = {str(entry): self._store.get(entry.resource, entry.key) for entry in entries}
        return {name: _lasting(live) for name, live in found.items() if live and live["metadata"].get("labels")}

    def check_gone(self, instance: str, rolled_back: list[Object], *, by_inventory: bool = False) -> None:
        """
        Nothing of the instance is there, and nothing says that it is.

        `rolled_back`: the package of an instantiate that was. It names the members, where the inventory that did was lost,
        unless the rollback was `by_inventory` alone: then nothing says what the instance had.
        """
        if by_inventory and self._ledger.is_forgotten(instance):
            return
        package = {named(manifest) for manifest in rolled_back}
        for entry in sorted(self._of(instance), key=lambda one: one.resource in SHARED):
            is_in_doubt = bool(rolled_back) and self._ledger.is_in_doubt(entry)
            if is_in_doubt or self._ledger.is_untraceable(entry, package):
                self._ledger.unnamed(entry)
            else:
                entry.is_unnamed &= (entry.resource, entry.key) not in package
            self._check_left(entry, instance, "terminated")
        self._check_released(instance, set(), "terminated")

    def _check_released(self, instance: str, wanted: set[tuple[Resource, Key]], when: str) -> None:
        """What was adopted stays, and the instance has no field of it any more."""
        for entry in self._ledger.entries.values():
            is_known = not (self._is_news(entry.touched) or self._is_news(entry.made_by_others))
            is_adopted = instance in entry.adopted_by and entry.resource not in SHARED
            is_unwanted = (entry.resource, entry.key) not in wanted
            if is_known and is_adopted and is_unwanted and self._is_applied(entry, instance) and not self._is_going(entry):
                self._ledger.violated(f"{when}, and {entry}, which was adopted, is not released")

    def _check_present(self, verb: Verb, manifest: Object, seen: float) -> None:
        """A rollback leaves the values that others have created an object with since."""
        resource, key = named(manifest)
        name, live = f"{resource[1]} {'/'.join(filter(None, key))}", self._store.get(resource, key)
        if seen - self._ledger.lost.get((resource, key), -1000.0) < self._news:
            return
        if live is None:
            if not _is_expendable(manifest):
                self._ledger.violated(f"{verb.name} COMPLETED without {name}")
            return
        if seen - self._users.last < self._news:
            return
        is_theirs = self._ledger.entries[live["metadata"]["uid"]].owner == USER
        if not _contains(live, manifest) and not (verb.yields and is_theirs):
            self._ledger.violated(f"{verb.name} COMPLETED with another {name}")
        if "deletionTimestamp" in live["metadata"]:
            self._ledger.violated(f"{verb.name} COMPLETED while {name} goes")
        elif not _is_ready(live):
            self._ledger.violated(f"{verb.name} COMPLETED before {name} is ready")
        if live["kind"] == "ConfigMap" and not is_theirs and set(live["data"]) - set(manifest["data"]) - {"user-note"}:
            self._ledger.violated(f"{verb.name} COMPLETED with fields of before in {name}")

    def _check_left(self, entry: Entry, instance: str, when: str) -> None:
        if self._is_news(entry.touched) or self._is_news(entry.made_by_others):
            return
        if entry.is_unnamed or instance in entry.adopted_by:  # what was adopted is released, unless it is a member again
            return
        if entry.is_posthumous and is_inventory(entry):
            # The first claim of a worker that crashed, executed after a rollback had found no inventory. Only a wait as long as
            # a request can take, in each rollback, would find it: it is empty, and `k8s-cr purge` deletes it.
            return
        if entry.is_late:
            # A user deleted the inventory, and the rollback that found none had ended when the request was executed. Nothing on
            # the cluster names its worker, so only that same wait in each rollback would find it. `k8s-cr purge` needs an
            # inventory, so it does not delete it: the instance's label finds it.
            return
        if entry.is_kept:
            if entry.is_labelled or self._is_applied(entry, instance):
                self._ledger.violated(f"{when}, and {entry}, which is kept, is not released")
            return
        drops = "dropped containers" in self._servers.weather.features
        if entry.resource in SHARED and (drops or entry.held_others or self._is_used(entry, instance)):
            live = self._store.get(entry.resource, entry.key)
            if when == "terminated" and any(instance in label for label in dig(live, "metadata", "labels", default={})):
                self._ledger.violated(f"{when}, and {entry} is still marked")
            return
        self._ledger.violated(f"{when}, and {entry} is left")

    def _of(self, instance: str) -> list[Entry]:
        return [entry for entry in self._ledger.entries.values() if instance in (entry.owner, entry.reclaimable_by)]

    def _is_going(self, entry: Entry) -> bool:
        return dig(self._store.get(entry.resource, entry.key), "metadata", "deletionTimestamp") is not None

    def _is_direct(self, entry: Entry) -> bool:
        """Whether the engine itself has made it, and not a controller for it; the inventory is the engine's own."""
        return self._is_applied(entry, entry.owner)

    def _is_applied(self, entry: Entry, instance: str) -> bool:
        live = self._store.get(entry.resource, entry.key)
        managers = {one["manager"] for one in dig(live, "metadata", "managedFields", default=[])}
        return f"k8s-cr-driver-{instance}" in managers

    def _is_used(self, entry: Entry, instance: str) -> bool:
        """Whether a Namespace or a CRD holds what is not the instance's, or another instance lives, which may have used it."""
        for other in self._ledger.entries.values():
            if entry.holds(other) and other.is_kept:
                return True
            if (entry.holds(other) or is_inventory(other)) and other.owner not in (instance, CONTROLLER):
                return True
        return False

    def _is_news(self, when: float) -> bool:
        return self._servers.scheduler.now - when < self._news


def _lasting(live: Object) -> Object:
    """What is the same in each life that comes to the same package; of an inventory only that it is there."""
    metadata = live["metadata"]
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "finalizers")}
    if "k8s-cr-driver/inventory" in dig(metadata, "labels", default={}):
        return {}
    content = {**{name: value for name, value in live.items() if name not in ("metadata", "status")}, **kept}
    found: Object = json.loads(json.dumps(content).replace(metadata["uid"], "uid"))
    return found


def _is_expendable(manifest: Object) -> bool:
    """What has finished is not created again when it vanishes."""
    return bool(manifest["kind"] == "Job")


def _contains(live: Any, manifest: Any) -> bool:
    if isinstance(manifest, dict):
        return isinstance(live, dict) and all(_contains(live.get(name), value) for name, value in manifest.items())
    if isinstance(manifest, list):
        return isinstance(live, list) and len(live) >= len(manifest) and all(map(_contains, live, manifest))
    return bool(live == manifest)


def _is_ready(live: Object) -> bool:
    status, generation = live.get("status") or {}, live["metadata"].get("generation")
    if live["kind"] in ("Deployment", "StatefulSet"):
        return bool(status.get("observedGeneration") == generation and status.get("readyReplicas") == live["spec"]["replicas"])
    if live["kind"] == "Widget":
        return bool(status.get("observedGeneration") == generation)
    if live["kind"] == "Job":
        return bool(status.get("succeeded"))
    return live["kind"] != "CustomResourceDefinition" or bool(status.get("conditions"))
