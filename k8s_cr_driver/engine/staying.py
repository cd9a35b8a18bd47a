# SPDX-License-Identifier: Apache-2.0
"""
What stays of the instance in a run, and what goes: objects that are deleted, and owners of what stays that go with them.

All objects and owners are known by their uids: another object may have the name of one that is gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from k8s_cr_driver.engine.garbage import owner_uids
from k8s_cr_driver.engine.nodes import is_older, version
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.objects.fields import uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of, split
from k8s_cr_driver.ownership.owners import Takers, references


class Entry(NamedTuple):
    """`live` has all owners that the object has had in this run, but for those that no longer exist."""

    resource: Resource
    live: Object


class Staying:
    """`entries`: the objects that stay."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.entries: dict[ObjectKey, Entry] = {}
        self.uids: dict[str, ObjectKey] = {}
        """Theirs."""
        self.deleted: dict[str, Object] = {}
        """By uid, the objects whose deletion was asked for, or has begun, and that still exist."""
        self.leaving: dict[str, Object] = {}
        """By uid, these, and the objects that the run is to delete after others."""
        self._leaving_uids: dict[ObjectKey, str] = {}
        self._gone: set[str] = set()
        """The uids of those that do not exist any more. A list may still have them."""
        self._owned: dict[str, set[ObjectKey]] = defaultdict(set)
        """By the uids of owners, the objects that stay and have had them."""
        self._going: set[str] = set()
        """The uids of owners that go with what is deleted, as far as is known."""
        self._taken: dict[ObjectKey, set[str]] = defaultdict(set)
        """By the objects that take them along."""

    def note(self, live: Object) -> bool:
        """An object stays. Returns whether it has an owner that it had not before."""
        key, owners = key_of(live), set(owner_uids(live))
        known, served = self.entries.get(key), split(live["apiVersion"])[1]  # others may not be served any more
        resource = self._resources.find_any(key.group_kind, served)
        if resource is None or uid_of(live) in self._gone:
            return False
        self.uids[uid_of(live)] = key
        if not self.deleted_uid(key):
            self.remains(key)
        self.entries[key] = Entry(resource, with_owners_of_both(known.live, live) if known else live)
        for uid in owners:
            self._owned[uid].add(key)
        return not owners.issubset(owner_uids(known.live) if known else ())

    @property
    def has_deleted(self) -> bool:
        """Whether anything is deleted, or was, or is to be."""
        return bool(self.leaving or self._gone)

    def leave(self, live: Object) -> None:
        """An object does not stay."""
        self.entries.pop(key_of(live), None)
        self.uids.pop(uid_of(live), None)
        if not self.deleted_uid(key_of(live)):
            self.remains(key_of(live))  # one of that name, which others have deleted
            self._leave(live)

    def _leave(self, live: Object) -> None:
        self._leaving_uids[key_of(live)] = uid_of(live)
        self.leaving[uid_of(live)] = live

    def deletes(self, live: Object) -> None:
        self._leave(live)
        self.deleted[uid_of(live)] = live

    def deleted_uid(self, key: ObjectKey) -> str:
        """Of the object of that name that is deleted; "" if none is."""
        uid = self._leaving_uids.get(key, "")
        return uid if uid in self.deleted else ""

    def remains(self, key: ObjectKey) -> str:
        """An object that was to be deleted turns out to stay. Returns its uid, or "" if it was none that is deleted."""
        uid = self._leaving_uids.pop(key, "")
        self.leaving.pop(uid, None)
        return uid if self.deleted.pop(uid, None) else ""

    def gone(self, key: ObjectKey) -> str:
        """An object no longer exists. Returns its uid, or "" if it was none that is deleted, or to be."""
        uid = self._leaving_uids.pop(key, "")
        if not uid:
            return ""
        self.deleted.pop(uid, None)
        self.leaving.pop(uid, None)
        self.uids.pop(uid, None)
        self._gone.add(uid)
        if (one := self.entries.get(key)) and uid_of(one.live) == uid:
            del self.entries[key]
        return uid

    def take_along(self, owners: Mapping[str, Takers]) -> None:
        """Owners go with others."""
        self._going.update(owners)
        for uid, takers in owners.items():
            for taker in takers:
                self._taken[taker].add(uid)

    def taken_by(self, key: ObjectKey) -> Collection[str]:
        """The uids of owners that go with the object."""
        return self._taken.get(key, ())

    def owned_by(self, uids: Collection[str]) -> set[ObjectKey]:
        """The objects that stay and have had one of these owners."""
        return self.entries.keys() & set[ObjectKey]().union(*(self._owned.get(uid, ()) for uid in uids))

    def owned_with(self, live: Object) -> list[Entry]:
        """The objects that an object owns, or an owner that goes with it."""
        return [self.entries[key] for key in sorted(self.owned_by({uid_of(live), *self.taken_by(key_of(live))}))]

    def may_go(self, live: Object) -> bool:
        """Whether an object has an owner that is not known to stay."""
        return any(uid not in self.uids or uid in self.deleted for uid in owner_uids(live))

    def has_going_owner(self, live: Object) -> bool:
        """Whether an object has an owner that goes, as far as is known."""
        return any(uid in self._going or uid in self.deleted for uid in owner_uids(live))

    def has_other_owners(self, live: Object) -> bool:
        """Whether an object is known with owners that this state of it has not."""
        known = self.entries.get(key_of(live))
        return known is not None and not set(owner_uids(known.live)).issubset(owner_uids(live))

    def gone_owners(self, live: Object) -> set[str]:
        """The uids of owners of an object that were deleted, and no longer exist."""
        return self._gone.intersection(owner_uids(live))

    def forget(self, key: ObjectKey, owners: Collection[str]) -> None:
        """An object is released from owners that no longer exist, so that they never own it again."""
        for uid in owners:
            self._going.discard(uid)
            self._owned[uid].discard(key)
        if one := self.entries.get(key):
            self.entries[key] = one._replace(live=_without_owners(one.live, owners))

    def without_gone_owners(self, live: Object) -> Object:
        """An object without the references to owners that were deleted, and no longer exist. For all threads."""
        return _without_owners(live, self._gone)


def _without_owners(live: Object, owners: Collection[str]) -> Object:
    left = [reference for reference in references(live) if reference.get("uid") not in owners]
    return {**live, "metadata": {**live["metadata"], "ownerReferences": left}}


def with_owners_of_both(before: Object, live: Object) -> Object:
    """The later of two states of one object, with the owners of both. A list may be older than what a watch has shown."""
    later = before if is_older(live, version(before)) else live
    owners = {str(one.get("uid")): one for one in (*references(before), *references(live))}
    if len(owners) == len(references(later)):
        return later
    return {**later, "metadata": {**later["metadata"], "ownerReferences": list(owners.values())}}
