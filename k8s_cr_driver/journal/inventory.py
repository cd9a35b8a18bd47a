# SPDX-License-Identifier: Apache-2.0
"""
The inventory of an instance: where its objects are.

It names the kinds and namespaces in which the instance may have objects, and the objects: a superset before the writes, exact
after a prune, deleted last. So a later run finds all objects after a crash at any point. Changes need the token of the fence.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from k8s_cr_driver.errors import ApiError, TransportError, may_have_taken_effect
from k8s_cr_driver.journal.fence import Fence
from k8s_cr_driver.journal.store import InventoryStore
from k8s_cr_driver.journal.stored_form import INVENTORY_LABEL, NOTHING, UID_DIGITS, InventoryContent
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.objects.marks import is_copy, is_managed


@dataclass
class _Noted:
    """What a run notes of objects until its next change of the inventory."""

    brought: frozenset[ObjectKey] = frozenset()
    """Members that no run before this one had, as the inventory that it has found says."""
    recreated: set[ObjectKey] = field(default_factory=set)
    tried: set[ObjectKey] = field(default_factory=set)
    written: set[ObjectKey] = field(default_factory=set)
    disclaimed: set[ObjectKey] = field(default_factory=set)
    finished: dict[ObjectKey, str | None] = field(default_factory=dict)


class Inventory:
    """
    The inventory of one instance on one cluster, held by one run of one operation.

    `remembered`: its last content as stored in Tacker; a deleted inventory is created again from it.
    """

    def __init__(self, connection: Connection, namespace: str, instance: str, remembered: InventoryContent = NOTHING) -> None:
        self._store = InventoryStore(connection, namespace, instance)
        self.key, self.instance = self._store.key, instance
        self.fence = Fence(self._store)
        self.content, self.remembered = InventoryContent(), remembered
        self._last_read: InventoryContent | None = None
        """NOTHING if there was none; None if this run has neither read it nor claimed it."""
        self._creates = False
        self._noted = _Noted()
        self._lock = threading.Lock()

    @property
    def is_new(self) -> bool:
        """Whether this run has created it."""
        return self._creates and bool(self._store.uid)

    @property
    def selector(self) -> str:
        return f"{INVENTORY_LABEL}={self.instance}"

    @property
    def applyset(self) -> str:
        """The ApplySet's ID (KEP-3659): members carry it in their part-of label."""
        return self._store.applyset

    def read(self) -> InventoryContent | None:
        """The stored content, or None; does not take the instance over."""
        found = self._store.read()
        self._last_read = found or self._last_read or NOTHING
        return found

    def claim(
        self,
        operation: str,
        kinds: Iterable[GroupKind],
        namespaces: Iterable[str],
        *,
        create: bool,
        members: Iterable[ObjectKey] = (),
        leaving: Iterable[ObjectKey] = (),
        unread: bool = False,
    ) -> bool:
        """
        Takes the instance over for this run and widens the inventory; False if there is none and `create` is not set.

        Any earlier run then stops with Superseded. Contended: another worker has claimed it meanwhile. With `unread` one that
        nobody is known to have written is not read before: a write of it that can only create says whether there is one. An
        account that may not read it learns so by the read, before the first write. `leaving`: the members that leave orphans.
        """
        is_first = unread and self._last_read is None and create and not self.remembered.kinds
        found = None if is_first else self.read()
        self._last_read = self._last_read or NOTHING
        known = self.remembered if self.remembered.kinds else self._last_read  # it may have been deleted since it was read
        if found is None and not create and not known.kinds:
            return False
        self.fence.replaces(found, was_lost=found is None and bool(known.kinds))
        # One with our token was written by an earlier request whose response was lost
        is_ours = found is not None and found.token == self.fence.token
        self._creates = found is None or (self._creates and is_ours)
        new = known._replace(members=None) if known.kinds else InventoryContent()
        base = found or new._replace(resource_version="1")  # a resourceVersion that only a new object takes
        brought = frozenset[ObjectKey]() if base.members is None else frozenset(members) - base.members
        earlier = self._noted.brought if is_ours else frozenset[ObjectKey]()  # others bring what they have claimed meanwhile
        # If there was no inventory, earlier runs may have had one that was deleted
        self._noted.brought = frozenset[ObjectKey]() if self._creates else earlier | brought
        desired = base._replace(
            kinds=base.kinds | frozenset(kinds),
            namespaces=base.namespaces | frozenset(namespaces),
            token=self.fence.token,
            operation=operation,
            released=False,
            worker=self.fence.worker,
            members=None if base.members is None else base.members | brought,
            new=base.new | brought,
            early=frozenset(leaving) if self._creates else base.early,
        )
        asked_at = time.monotonic()
        self._store.uid = found.uid if found else ""  # else the apply would create one that no longer exists by then
        try:
            self._write(desired)
        except TransportError as error:
            if may_have_taken_effect(error):
                self.fence.lost_claim(None if is_first else base.token, asked_at)
            raise
        except ApiError as error:
            if is_first and error.status == 409:
                return self.claim(operation, kinds, namespaces, create=create, members=members, leaving=leaving)
            raise self._store.explained(error) from None
        self.fence.claimed()
        return True

    def finish(self, *, kinds: frozenset[GroupKind], namespaces: frozenset[str], members: frozenset[ObjectKey]) -> None:
        """Writes the exact content and releases the token, as `release` does."""

        def exact(content: InventoryContent) -> InventoryContent:
            return content._replace(
                kinds=kinds,
                namespaces=namespaces,
                adopted=content.adopted & members,
                members=members,
                finished=frozenset(one for one in content.finished if one[0] in members),
                new=frozenset(),
                released=not self.fence.former_may_write(),
            )

        self._change(exact)

    def release(self) -> None:
        """Gives the token back at the end of a run, so that the next one need not wait until it expires.

        It stays while a run before this one may still write: the next one finds this token only, and waits because of it.
        The run knows what it has written. What it brings and has never sent is no member: others may have it.
        """
        if self.content.token:
            noted = self._noted
            noted.disclaimed |= noted.brought - noted.tried - noted.written
            is_over = not self.fence.former_may_write()
            self._change(lambda content: content._replace(new=content.new - noted.written, released=is_over))

    def _change(self, change: Callable[[InventoryContent], InventoryContent]) -> None:
        """Writes what `change` makes of the content, and what was noted since the last write. One at a time."""
        with self._lock:
            desired = self._with_notes(change(self.content))
            if desired != self.content:
                self._until_written(lambda: self._write(desired._replace(resource_version=self.content.resource_version)))

    def _with_notes(self, desired: InventoryContent) -> InventoryContent:
        ends, disclaimed = dict(self._noted.finished), frozenset(self._noted.disclaimed)  # others may note more meanwhile
        older = {one for one in desired.finished if one[0] not in ends}
        finished = frozenset(older | {(key, digest) for key, digest in ends.items() if digest is not None})
        adopted = desired.adopted - self._noted.recreated
        uids = frozenset(one for one in desired.adopted_uids if one[0] in adopted)
        new, members = desired.new - disclaimed, desired.members
        left = None if members is None else members - disclaimed
        return desired._replace(adopted=adopted, adopted_uids=uids, finished=finished, new=new, members=left)

    def adopt(self, uids: Mapping[ObjectKey, str]) -> None:
        """Records objects that exist already and are nobody's, with their uids, and the ends that are noted, in one write."""

        def adopting(content: InventoryContent) -> InventoryContent:
            self._noted.recreated -= uids.keys()
            others = frozenset(one for one in content.adopted_uids if one[0] not in uids)
            new = frozenset((key, uid[:UID_DIGITS]) for key, uid in uids.items())
            return content._replace(adopted=content.adopted | uids.keys(), adopted_uids=others | new)

        self._change(adopting)

    def add_members(self, keys: Iterable[ObjectKey]) -> None:
        """Records objects that were not part of the set, in one write."""
        added = frozenset(keys)
        self._change(
            lambda content: content._replace(
                kinds=content.kinds | {key.group_kind for key in added},
                namespaces=content.namespaces | {key.namespace for key in added} - {""},
                members=None if content.members is None else content.members | added,
            )
        )

    def note_finished(self, key: ObjectKey, digest: str | None) -> None:
        """Notes that an object has run to its end, None: it has failed. Written with the next change."""
        self._noted.finished[key] = digest

    def created(self, key: ObjectKey) -> None:
        """Ends the adoption of an object, which was deleted and created again. Until the next change its annotation says so."""
        self._noted.recreated.add(key)
        self.wrote(key)

    def withdraw(self, kinds: AbstractSet[GroupKind], namespaces: AbstractSet[str]) -> None:
        """Removes kinds and namespaces of which the instance has no objects any more; see `others`."""
        self._change(lambda old: old._replace(kinds=old.kinds - kinds, namespaces=old.namespaces - namespaces))

    def delete(self) -> None:
        """Deletes it, if it is still this run's."""
        try:
            with self._lock:
                self._until_written(lambda: self._store.delete(self.content.resource_version))
        except ApiError as error:
            if error.status != 404:
                raise
        self.content = self.content._replace(released=True)

    def trial(self) -> Inventory:
        """The same for writes that store nothing: what it notes of them is forgotten."""
        other = copy.copy(self)
        other._noted = _Noted(self._noted.brought, finished=self._noted.finished)
        return other

    def tried(self, key: ObjectKey) -> None:
        """Notes that the creation of an object was sent, and that it may have succeeded."""
        self._noted.tried.add(key)

    def wrote(self, key: ObjectKey) -> None:
        """Notes that this run has written an object: it is one of the instance, also if others create it again."""
        self._noted.written.add(key)

    def disclaim(self, key: ObjectKey) -> None:
        """Notes that an object that this run brings is somebody else's. It leaves the inventory with the next change."""
        self._noted.disclaimed |= {key} & self.content.new

    def owns(self, live: Object) -> bool:
        """Whether an object that has the label or the field manager of the instance is one of its objects."""
        key = key_of(live)
        may_own = self.content.members is None if is_managed(live, self.instance) else self.remembered.is_member(key)
        return (may_own or self.content.is_member(key)) and not self.is_foreign(live)

    def is_foreign(self, live: Object) -> bool:
        """
        Whether others have created an object before the instance brought one of its name, though it has the instance's marks.

        A backup that is restored under another name has labels and `managedFields` of a member, so these alone prove nothing.
        """
        key, noted = key_of(live), self._noted
        if key in noted.written:
            return False
        is_unwritten = key in noted.brought and key not in noted.tried
        return is_unwritten or (key in self.content.new and is_copy(live, self.instance))

    def others(self) -> list[InventoryContent | None]:
        """Kinds and namespaces of the other instances; see `InventoryStore.others`."""
        return self._store.others()

    def _until_written(self, request: Callable[[], None]) -> None:
        """Repeats the request once after a 409: our own earlier write may have succeeded though its response was lost."""
        try:
            return request()
        except ApiError as error:
            if error.status != 409:
                raise
        found = self.read()
        self.fence.check(found)
        self.content = self.content._replace(resource_version=found.resource_version if found else "")
        try:
            return request()
        except ApiError as error:
            raise (self._store.explained(error) if error.status == 409 else error) from None

    def _write(self, desired: InventoryContent) -> None:
        asked_at = time.monotonic()
        written = self._store.write(desired)
        began = min(filter(None, (self.remembered.created, written.created)), default="")
        self.content = written._replace(created=began)
        self.fence.confirmed(asked_at)
