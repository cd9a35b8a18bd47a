# SPDX-License-Identifier: Apache-2.0
"""
Who owns what, known from who made it and not from any mark on it; and what was done by whom.

Every write of the store is noted with its actor: the worker, user or controller that asked for it, or that set off the
server's own controllers. What an object's controlling owner made is the owner's. So the ledger judges the engine by
facts that the engine cannot see. A mark only excuses: without it nobody can know whose an object is.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP, RELEASED_BY, used_by
from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, dig, key_of
from tests.simulation.entries import (
    CLAIMS,
    CONTROLLER,
    CRDS,
    JOBS,
    NAMESPACES,
    NO_ONE,
    NOBODY,
    PROTECTED,
    SHARED,
    STATEFUL_SETS,
    USER,
    WIDGETS,
    Actor,
    Entry,
    Run,
    is_inventory,
)
from tests.simulation.finished_jobs import FinishedJobs
from tests.simulation.owned import Owned, Ownership
from tests.simulation.scheduler import Scheduler


class Ledger:
    """`actor` is whoever acts now. `violations`: what must never be, in words."""

    def __init__(self, scheduler: Scheduler, features: frozenset[str]) -> None:
        self.scheduler = scheduler
        self.jobs, self.owned = FinishedJobs(features), Owned(features)
        self.actor = NOBODY
        self.entries: dict[str, Entry] = {}
        self.lost: dict[tuple[Resource, Key], float] = {}
        """When somebody other than the owner deleted an object."""
        self.trace: list[tuple[float, str]] = []
        self.violations: list[str] = []
        self.writers: dict[str, str] = {}
        """The names of all that have written anything, and the owners of what they make."""
        self._recorded: set[str] = set()
        """Workers that have given their token back, with which goes what they have written."""
        self.ended: dict[str, float] = {}
        """When a worker has ended, or crashed."""
        self.last_sight: dict[str, float] = {}
        """When a worker has last closed a watch. It closes all of them at its end, before it gives the token back."""
        self.founders: set[str] = set()
        """The workers that have created an inventory: one of these whose instantiate is refused deletes all again."""
        self._stopped: dict[str, float] = {}
        """When a worker could write the inventory no more, because another one had taken over."""
        self.is_over: set[str] = set()
        """The instances of which nothing should be left: a rollback of their instantiation or a termination COMPLETED."""
        self._runs: dict[str, Run] = {}
        """By worker."""
        self._began: dict[str, float] = {}
        """When each worker has."""
        self._withdrawn: dict[str, float] = {}
        """When a worker of an instance has last deleted the inventory."""
        self._doubted: dict[str, set[tuple[Resource, Key]]] = {}
        """Of each instance what workers have brought that ended early. Whether they wrote or found it, no inventory says."""
        self._kinds: dict[str, set[Resource]] = {}
        """Of each instance those that its inventory names, or where a user has deleted that, Tacker's record."""
        self._kinds_of_record: dict[str, set[Resource]] = {}
        """Those that it had when an operation was COMPLETED last."""
        self._unnamed: set[str] = set()
        """The instances whose inventory was lost, until a change has named all objects again."""
        self._cut_off: set[str] = set()
        """The workers whose inventory a user has deleted while they ran: no token of a later one can stop their requests."""
        self._wrote: dict[str, set[tuple[Resource, Key]]] = {}
        """What each worker has written."""
        self._adopted: set[tuple[str, Resource, Key]] = set()
        """The instances, and what each has adopted."""
        self._first_deletion: dict[str, float] = {}
        """When each worker, and whoever else, has first deleted anything."""
        self._takers: set[str] = set()
        """The workers that have deleted a StatefulSet."""

    def note(self, text: str) -> None:
        self.trace.append((self.scheduler.now, text))

    def violated(self, text: str) -> None:
        self.note(f"VIOLATION: {text}")
        self.violations.append(text)

    def wrote(self, resource: Resource, old: Object | None, new: Object) -> None:
        uid, actor = new["metadata"]["uid"], self.actor
        self.writers[actor.name] = actor.owner
        self._wrote.setdefault(actor.name, set()).add((resource, key_of(new)))
        if old is None:
            is_posthumous, is_late = actor.name in self.ended, self._is_late(actor.owner)
            controller = self._controller_of(new)
            owner = controller.owner if controller else actor.owner
            self.entries[uid] = Entry(
                resource, key_of(new), owner, controller, is_posthumous=is_posthumous, is_late=is_late
            )
            self._check_creation(actor, resource, new)
        entry = self.entries[uid]
        entry.is_kept = dig(new, "metadata", "annotations", KEEP) == "true"
        if entry.is_kept and actor.is_direct and dig(new, "metadata", "annotations", RELEASED_BY):
            entry.released_by = entry.released_by or actor.name
        entry.is_labelled = _is_labelled(new, entry)
        actor = self._cause(entry)
        if resource == JOBS and dig(new, "status", "succeeded"):
            self.jobs.completed.add(str(entry))
        if is_inventory(entry) and actor.owner == entry.owner:
            self._stop_others(actor)
            self._kinds.setdefault(entry.owner, set()).update(resource for resource, _ in self._runs[actor.name].wanted)
            if dig(new, "metadata", "annotations", "k8s-cr-driver/released") == "true":
                self._recorded.add(actor.name)
            if old is None:
                self.founders.add(actor.name)
                self._refound(actor, is_posthumous=is_posthumous)
        what = "made" if old is None else "marked" if _is_marked(old, new) else "changed"
        self.note(f"{actor} {what} {entry} {uid[:4]} at {new['metadata']['resourceVersion']}")
        if old is not None:
            entry.held_others |= resource in SHARED and _is_released(old, new) and self._stays(entry, actor.owner)
            self._touch(entry, actor)
            is_by_instance = actor.is_direct and actor.owner in (entry.reclaimable_by, entry.owner)
            entry.is_unnamed &= not (is_by_instance and self._has_inventory(actor.owner))
            entry.is_claimed |= resource == CLAIMS and actor.is_direct and actor.owner == entry.owner
            if what == "marked":
                entry.marker = actor
                self._check_deletion(entry, actor, old)
                self._note_taker(entry, actor)
            else:
                self._check_change(entry, actor)

    def removed(self, resource: Resource, old: Object) -> None:
        entry = self.entries.pop(old["metadata"]["uid"])
        actor = self._cause(entry)
        self.note(f"{actor} removed {entry} {old['metadata']['uid'][:4]}")
        if "deletionTimestamp" not in old["metadata"]:
            self._check_deletion(entry, actor, old)
            self._note_taker(entry, actor)
        if resource == JOBS and (entry.marker or actor).owner == entry.owner:
            self.jobs.taken(old)
        if entry.is_kept or (resource == WIDGETS and entry.owner == USER and actor.owner not in (USER, CONTROLLER)):
            self._hold(entry)
        if actor.owner == entry.owner and is_inventory(entry):
            self._withdrawn[entry.owner] = self.scheduler.now
        if actor.owner == USER and is_inventory(entry):
            self.jobs.forget(())  # what was recorded is lost with it
            self._cut_off |= {name for name, run in self._runs.items() if run.instance == entry.owner} - self.ended.keys()
            if not self._under_way(entry.owner):  # a worker that has read it goes by what it said
                self._doubted.pop(entry.owner, None)
            self._unname(entry.owner)
        if actor.owner != entry.owner or entry.is_marked_by_others:
            self._lose(entry)
        if resource == STATEFUL_SETS and entry.owner in self._unnamed:  # the next one's claims are older than it is
            self.leave_claims(entry.owner)

    def _lose(self, entry: Entry) -> None:
        self.lost[entry.resource, entry.key] = self.scheduler.now
        if entry.resource == STATEFUL_SETS:
            self.leave_claims(entry.owner)

    def _cause(self, entry: Entry) -> Actor:
        """Who has set off what is done now. An object made while its CRD goes is deleted by whoever deletes that CRD."""
        holders = () if self.actor.is_direct else self.entries.values()
        markers = (one.marker for one in holders if one.resource == CRDS and one.marker and one.holds(entry))
        return next(markers, self.actor)

    def _is_late(self, instance: str) -> bool:
        is_cut_off = self.actor.name in self._cut_off
        is_lost = (instance in self._unnamed or is_cut_off) and not self._has_inventory(instance)
        return is_lost and (instance in self.is_over or self._is_being_removed(instance))

    def _is_being_removed(self, instance: str) -> bool:
        """Whether a worker that leaves nothing is on it, which may have looked for objects already."""
        return any(not run.wanted for run in self._under_way(instance))

    def _under_way(self, instance: str) -> list[Run]:
        return [run for worker, run in self._runs.items() if worker not in self.ended and run.instance == instance]

    def _stop_others(self, actor: Actor) -> None:
        """A worker that writes the inventory has its fence: no other one can write it after that."""
        for name, owner in self.writers.items():
            if owner == actor.owner and name != actor.name:
                self._stopped.setdefault(name, self.scheduler.now)

    def _unname(self, instance: str) -> None:
        self._unnamed.add(instance)
        self._kinds[instance] = set(self._kinds_of_record.get(instance, ()))
        for entry in [one for one in self.entries.values() if one.reclaimable_by == instance]:
            self._check_named(entry)
        for entry in self.entries.values():
            entry.is_unnamed |= entry.is_claimed and entry.owner == instance  # until a terminate claims it again

    def named(self, instance: str, wanted: Collection[tuple[Resource, Key]]) -> None:
        """The inventory names all `wanted` objects again, unless somebody has deleted it since. Others are not looked for."""
        for entry in list(self.entries.values()):
            is_doubted = entry.reclaimable_by == instance and self.is_in_doubt(entry)
            if (is_doubted or self.is_untraceable(entry)) and (entry.resource, entry.key) not in wanted:
                self.unnamed(entry)
        self._kinds[instance] = {resource for resource, _ in wanted}
        self._kinds_of_record[instance] = set(self._kinds[instance])
        if self._has_inventory(instance):
            self._unnamed.discard(instance)
            self._doubted.pop(instance, None)

    def begins(self, worker: str, run: Run) -> None:
        self._runs[worker], self._began[worker] = run, self.scheduler.now

    def _refound(self, actor: Actor, *, is_posthumous: bool) -> None:
        """A new inventory says whose all is, unless its worker may have read, and goes by, one that was deleted meanwhile."""
        doubted = set(self._runs[actor.name].brought) if is_posthumous else set()
        if self._withdrawn.get(actor.owner, -1.0) > self._began[actor.name]:
            doubted |= self._doubted.get(actor.owner, set())
        self._doubted[actor.owner] = doubted

    def unrecorded(self, worker: str) -> None:
        """A worker has crashed, was superseded, or could not write the inventory at its end."""
        run = self._runs[worker]
        if worker in self.writers:
            self._doubted.setdefault(run.instance, set()).update(run.brought)
        if worker in self._takers:
            self._leave_late_claims(run.instance)

    def has_recorded(self, worker: str) -> bool:
        """Whether a worker has written the inventory at its end, and no other one since."""
        return worker in self._recorded and worker not in self._stopped

    def _note_taker(self, entry: Entry, actor: Actor) -> None:
        if entry.resource == STATEFUL_SETS and actor.owner == entry.owner:
            self._takers.add(actor.name)
            if actor.name in self.ended:
                self._leave_late_claims(entry.owner)

    def _leave_late_claims(self, instance: str) -> None:
        """
        Claims that a StatefulSet got after a worker had labelled those that it had, before it deleted it.

        That worker looks for them once the StatefulSet no longer exists. No later one can know whose they are.
        """
        for entry in self.entries.values():
            if entry.owner == instance and entry.resource == CLAIMS and not entry.is_claimed:
                entry.owner = NO_ONE

    def failed(self, worker: str) -> None:
        if worker in self.founders:  # the inventory says that it has not written these
            run = self._runs[worker]
            self._doubted.setdefault(run.instance, set()).update(run.brought - self._wrote.get(worker, set()))

    def is_untraceable(self, entry: Entry, package: Collection[tuple[Resource, Key]] = ()) -> bool:
        """
        Whether nothing says whose the object is, or what controls it: the inventory was lost, and Tacker's record names none.

        A label does, of kinds that one of these, or the `package` of a rollback, names: no operation lists every kind.
        """
        while entry.controller:
            entry = entry.controller
        kinds = self._kinds.get(entry.owner, set()) | {resource for resource, _ in package}
        is_found = entry.is_labelled and entry.resource in kinds
        is_claim_of_member = entry.resource == CLAIMS and any(
            one.resource == STATEFUL_SETS and one.owner == entry.owner and not self.is_untraceable(one, package)
            for one in self.entries.values()
        )
        return not (is_found or is_claim_of_member) and entry.owner in self._unnamed

    def is_in_doubt(self, entry: Entry) -> bool:
        """Whether others have made the object again, and the inventory does not say that the instance had written it."""
        return (entry.resource, entry.key) in self._doubted.get(entry.reclaimable_by, ())

    def made_again(self, entry: Entry, instance: str) -> None:
        """Somebody else has made an object of the instance again, with its label."""
        entry.reclaimable_by = instance
        self._check_named(entry)

    def adopts(self, entry: Entry, instance: str) -> None:
        """Whoever asked for the verb lets the instance have the object."""
        entry.adopted_by.add(instance)
        self._adopted.add((instance, entry.resource, entry.key))

    def _check_named(self, entry: Entry) -> None:
        instance = entry.reclaimable_by
        if instance in self._unnamed and entry.key[1] != f"k8s-cr-driver-{instance}":
            self.unnamed(entry)
            if (instance, entry.resource, entry.key) in self._adopted:  # Tacker's record still says so, of any of that name
                entry.adopted_by.add(instance)

    def unnamed(self, entry: Entry) -> None:
        """Nothing but its label says whose it is, so it may stay, with what it is in."""
        entry.is_unnamed = True
        self._hold(entry)

    def _hold(self, entry: Entry) -> None:
        for other in self.entries.values():
            other.held_others |= other.holds(entry)

    def leave_claims(self, instance: str) -> None:
        """The claims of a StatefulSet that a change, or a user, has removed are nobody's: they may stay or go."""
        for entry in self.entries.values():
            if entry.owner == instance and entry.resource == CLAIMS:
                entry.owner = NO_ONE

    def _controller_of(self, new: Object) -> Entry | None:
        references = dig(new, "metadata", "ownerReferences", default=None) or []
        controllers = (self.entries.get(one["uid"]) for one in references if one.get("controller"))
        return next(filter(None, controllers), None)

    def show(self, reader: Actor, resource: Resource, live: Object) -> None:
        """A watch shows an object to a worker. What it sees once the inventory is lost it cannot record any more."""
        if resource == JOBS and self._has_inventory(reader.owner):
            self.jobs.show(reader.name, self.scheduler.now, resource, live)

    def looked(self, reader: Actor) -> None:
        self.last_sight[reader.name] = self.scheduler.now

    def is_forgotten(self, instance: str) -> bool:
        """Whether its inventory was lost, and no change has named its objects again."""
        return instance in self._unnamed

    def _stays(self, holder: Entry, instance: str) -> bool:
        """Whether a Namespace or CRD is needed now; it stays then, though what it holds may go later."""
        held = (one for one in self.entries.values() if holder.holds(one))
        return self._others_live(instance) or any(one.is_kept or one.owner == USER for one in held)

    def _others_live(self, instance: str) -> bool:
        """Whether another instance has an inventory, so that it may use what this one releases: that stays from then on."""
        return any(is_inventory(entry) and entry.owner not in (instance, USER) for entry in self.entries.values())

    def _has_inventory(self, instance: str) -> bool:
        return any(entry.owner == instance and is_inventory(entry) for entry in self.entries.values())

    def _check_creation(self, actor: Actor, resource: Resource, new: Object) -> None:
        if resource == JOBS:
            ends = {name: min(ended, self._stopped.get(name, math.inf)) for name, ended in self.ended.items()}
            if not self.jobs.may_run(actor.name, resource, new, ends):
                self.violated(f"ran a finished Job again: {actor} made {'/'.join(key_of(new))}")

    def _touch(self, entry: Entry, actor: Actor) -> None:
        if actor.owner not in (entry.owner, CONTROLLER):
            entry.touched = self.scheduler.now

    def _check_change(self, entry: Entry, actor: Actor) -> None:
        if actor.is_direct and not self._may_change(entry, actor):
            self.violated(f"changed what is not its own: {actor} changed {entry} of {entry.owner}")

    def _check_deletion(self, entry: Entry, actor: Actor, old: Object) -> None:
        self.owned.deleted(old, actor.name, self.scheduler.now)
        self._first_deletion.setdefault(actor.name, self.scheduler.now)
        if actor.owner == USER:
            self.owned.deleted_by_user(old)
        if self._is_taken(entry, old):
            return
        if any(one.is_taken and one.holds(entry) for one in self.entries.values()):
            self._lose(entry)
            return
        users = {label.partition("/")[2] for label in dig(old, "metadata", "labels", default={}) if label.startswith("used-by")}
        is_shared = actor.owner not in (USER, CONTROLLER) and users - {actor.owner}
        if is_shared or not self._may_delete(entry, actor):
            self.violated(f"deleted what is not its own: {actor} deleted {entry} of {entry.owner}")

    def _is_taken(self, entry: Entry, old: Object) -> bool:
        """Whether an owner takes it along: nothing that is to stay, unless an operator has set that owner too late."""
        ownership = self.owned.ownership(old, self.entries)
        if ownership is None:
            return False
        entry.is_taken = True
        self._lose(entry)
        is_by_user = self.owned.is_by_user(old) or self._is_in_a_going_namespace(entry)
        if not is_by_user and self._could_release(entry, ownership):
            self.violated(f"an owner has taken along {entry}, which was to stay")
        return True

    def _could_release(self, entry: Entry, ownership: Ownership) -> bool:
        """
        Whether the worker that has deleted the owner keeps the object, or its package has it, and it knew of the owner before
        its first deletion.
        """
        worker = ownership.taker
        if worker not in self._runs or self._runs[worker].instance != entry.owner:
            return False
        is_ours = entry.is_kept and entry.released_by in ("", worker)
        is_wanted = (entry.resource, entry.key) in self._runs[worker].wanted
        stays = is_ours or is_wanted or entry.resource in SHARED  # a Namespace or CRD goes at its turn alone
        known = max(ownership.last, self._began[worker]) + self.owned.time_to_hear
        return stays and known < self._first_deletion[worker]

    def _may_change(self, entry: Entry, actor: Actor) -> bool:
        is_mine = actor.owner in (entry.owner, entry.reclaimable_by, *entry.adopted_by, USER, CONTROLLER)
        return is_mine or entry.owner == NO_ONE or entry.resource in SHARED

    def _may_delete(self, entry: Entry, actor: Actor) -> bool:
        # Rule 5 is about what instances have: of users' own objects rule 4 says which keep a Namespace, annotated or not
        if entry.is_kept and entry.owner != USER and actor.owner not in (USER, CONTROLLER):
            return False
        if actor.owner in (entry.owner, entry.reclaimable_by, USER, CONTROLLER) or entry.owner == NO_ONE:
            return True
        if entry.resource in SHARED:
            return entry.owner not in (USER, CONTROLLER)
        is_free = entry.resource not in PROTECTED and (entry.resource != WIDGETS or self._is_in_a_going_namespace(entry))
        return not actor.is_direct and is_free and entry.owner in (USER, CONTROLLER)

    def _is_in_a_going_namespace(self, entry: Entry) -> bool:
        return any(one.marker and one.resource == NAMESPACES and one.holds(entry) for one in self.entries.values())


def _is_labelled(live: Object, entry: Entry) -> bool:
    labels = dig(live, "metadata", "labels", default={})
    return used_by(entry.owner) in labels if entry.resource in SHARED else labels.get(INSTANCE_LABEL) == entry.owner


def _is_marked(old: Object, new: Object) -> bool:
    return "deletionTimestamp" in new["metadata"] and "deletionTimestamp" not in old["metadata"]


def _is_released(old: Object, new: Object) -> bool:
    before, after = (dig(obj, "metadata", "annotations", default={}) for obj in (old, new))
    return RELEASED_BY in after and RELEASED_BY not in before
