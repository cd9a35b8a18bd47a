# SPDX-License-Identifier: Apache-2.0
"""
Objects that stay, while owners of theirs are deleted: they are released from these again and again.

Operators set their ownerReference in each reconciliation. An owner may wait for its deletion, and then for a finalizer, for
minutes, in which it owns again what was released from it. The answer to the request that deletes it may be lost, others, such
as a former run, may have deleted it, and operators may make owners for it, which go with it. So no event tells of all that go:
as long as anything is deleted, the owners of what stays are read, as they are.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from k8s_cr_driver import logs
from k8s_cr_driver.engine.garbage import owner_uids
from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.engine.staying import Entry, Staying, with_owners_of_both
from k8s_cr_driver.errors import DriverError, Superseded, TransportError, passes
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.objects.fields import field, uid_of
from k8s_cr_driver.objects.keys import Object, ObjectKey, key_of
from k8s_cr_driver.ownership.delete import Removal
from k8s_cr_driver.ownership.orphans import OwnedOrphans, release_orphans
from k8s_cr_driver.ownership.owners import Owners, Takers
from k8s_cr_driver.ownership.released import disown
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.resources.registry import resource_for

LOG = logs.logger(__name__)

AGAIN = 2.0
"""Seconds between two looks while anything is deleted: no watch reports an object that was released."""

READS_PER_SECOND = 20
"""So many objects or owners at most are read or released in a second: with more of them, the next look at all is later."""

ABANDONED_AFTER = 6.0
"""Seconds: with abandon an object that cannot be released from an owner that no longer exists for so long ends no run."""


class _Look(NamedTuple):
    """What is looked at, and what is not settled, as they were when the look began. `is_full`: at all that stays."""

    owners: Owners
    entries: dict[ObjectKey, Entry]
    released: frozenset[ObjectKey]
    unsettled: dict[ObjectKey, frozenset[str]]
    is_full: bool


class _Seen(NamedTuple):
    """What a look has read, of each object the owners that go, why no release was possible, and what was gone."""

    read: list[Object]
    going: dict[ObjectKey, dict[str, Takers]]
    errors: dict[ObjectKey, DriverError]
    gone: set[ObjectKey]


class Releases:
    """What stays of the instance in a run is released from owners that go."""

    def __init__(self, run: Run) -> None:
        self._operation, self._loop, self._context = run.operation, run.loop, run.context
        self._staying = Staying(run.resources)
        self._released: set[ObjectKey] = set()
        """Kept and adopted objects that no watch selects any more: each look reads them."""
        self.unread: dict[str, ObjectKey] = {}
        """By uid, objects that others delete, while it is not known what they own."""
        self._unsettled: dict[ObjectKey, set[str]] = {}
        """
        What was not looked at since an owner, by uid, no longer exists: the collector may be late. Or since another
        one owns it, once anything was deleted, which may take that owner along, or one again that goes: by no uid.
        """
        self._reported: dict[ObjectKey, set[str]] = {}
        """The owners with which objects were reported during a look."""
        self._errors: dict[ObjectKey, str] = {}
        """Why the last try to release an object has failed."""
        self._failing_since: dict[ObjectKey, float] = {}
        self._failures = 0
        self._is_looking = self._is_due = self._is_full = False
        """`_is_full`: whether the look that is due is at all that stays, and not only at what is not settled."""
        self._next_at = math.inf
        self._looked_at, self._pause = -math.inf, AGAIN
        """When the last full look has ended, and the seconds until the next one."""
        self._seen_at: dict[ObjectKey, float] = {}
        """When each object was last looked at, or released."""

    @property
    def is_settled(self) -> bool:
        """Whether what stays is known to be released from all owners that go, or is abandoned."""
        return not (self._unsettled or self.unread)

    def reports(self) -> list[Report]:
        """One for each object that is not known to be released from the owners that go."""
        new, gone = "its new owner was not read yet", "not released yet from an owner that no longer exists"
        why = {key: gone if uids else new for key, uids in self._unsettled.items()}
        found = {key: f"{text}: {self._errors[key]}" if key in self._errors else text for key, text in why.items()}
        found |= dict.fromkeys(self.unread.values(), "others have deleted it, and what it owned is not read yet")
        return [Report(key, State.WAITING.value, "NotReleased", text) for key, text in sorted(found.items())]

    def stays(self, live: Object) -> None:
        """Notes an object that is not deleted, and releases it from owners that go, or are gone."""
        self.observe(live)
        if self._is_looking:
            self._reported.setdefault(key_of(live), set()).update(owner_uids(live))
        has_new_owner, gone = self._staying.note(live), self._staying.gone_owners(live)
        is_late = time.monotonic() - self._seen_at.get(key_of(live), -math.inf) > AGAIN
        is_owned_again = self._staying.has_going_owner(live)
        if gone or is_owned_again or (has_new_owner and self._staying.has_deleted):  # what goes may take the owner along
            self._unsettled.setdefault(key_of(live), set()).update(gone)
        if (has_new_owner and not gone) or (is_late and (gone or is_owned_again)):
            self._look()
        elif gone or is_owned_again:  # gone: the cache of an operator is late, or the watch
            self._look_within(AGAIN)

    def knows(self, live: Object) -> None:
        """Notes an object that is not deleted, and whose owners were just read: new are those that a watch has shown since."""
        self.observe(live)
        self._staying.note(live)
        if self._staying.has_other_owners(live):
            self._unsettled.setdefault(key_of(live), set())
            self._look()

    def released(self, key: ObjectKey) -> None:
        """No watch selects an object any more, and operators may own it now."""
        self._released.add(key)
        self._look_later()

    def follows(self, live: Object) -> None:
        """Notes an object as `knows` does that no watch selects: each look reads it."""
        self.knows(live)
        self.released(key_of(live))

    def leaves(self, live: Object) -> None:
        """An object is to be deleted, with its owner or without, perhaps after others."""
        self.observe(live)
        self._staying.leave(live)
        self._unsettled.pop(key_of(live), None)

    def lists(self, live: Object) -> None:
        """Notes what was listed, unless it goes. No watch may tell when it goes later: looks read it as an owner."""
        if uid_of(live) in self._staying.leaving or field(live, "metadata", "deletionTimestamp"):
            return
        is_watched = uid_of(live) in self._staying.uids
        self.stays(live)
        if not is_watched:
            self._staying.uids.pop(uid_of(live), None)

    def observe(self, live: Object) -> None:
        """Others, such as a former run, may have deleted an object, or created it again."""
        deleted = self._staying.deleted_uid(key_of(live))
        if deleted not in ("", uid_of(live)):
            self.gone(key_of(live))
        if field(live, "metadata", "deletionTimestamp") and not self._staying.deleted_uid(key_of(live)):
            self._staying.deletes(live)
            self._look(is_full=True)

    def take_along(self, owners: Mapping[str, Takers]) -> None:
        """Notes owners that go with others, by uid, which a look will find again."""
        self._staying.take_along(owners)

    def goes(self, live: Object) -> None:
        """
        An object is deleted, which may take its time: until it no longer exists, it may own again what stays.

        Whoever deletes it releases that first. A look at the same time would only be in the way.
        """
        owned = [key_of(one.live) for one in self._staying.owned_with(live)]
        self._seen_at.update(dict.fromkeys(owned, time.monotonic()))
        self._staying.deletes(live)
        self._look_later()

    def is_asked(self, live: Object) -> None:
        """The request that deletes an object is answered: what it owns again from now on, or did meanwhile, is looked at."""
        for one in self._staying.owned_with(live):
            self._seen_at.pop(key_of(one.live), None)
        if self._unsettled:
            self._look()

    def remains(self, key: ObjectKey) -> None:
        """An object turns out to stay."""
        self._ended(self._staying.remains(key), frozenset())

    def gone(self, key: ObjectKey) -> None:
        """An object no longer exists. It, or an owner that goes with it, may have owned again what stays."""
        uid = self._staying.gone(key)
        self._ended(uid, self._staying.owned_by({uid, *self._staying.taken_by(key)}))

    def _ended(self, uid: str, owned: Collection[ObjectKey]) -> None:
        """An object is not to be deleted any more. With the last the look at what was released is the last, too."""
        is_last = bool(uid) and not self._staying.deleted
        released = self._released & self._staying.entries.keys() if is_last else set[ObjectKey]()
        for key in released.union(owned):
            self._unsettled.setdefault(key, set()).add(uid)
        if self._unsettled:
            self._look()

    def before(
        self, live: Object, members: Collection[ObjectKey], removal: Callable[[], Removal | None]
    ) -> Callable[[], Removal | None]:
        """The request that deletes an object, once what stays is released from it, and from the owners that go with it."""
        self.goes(live)
        staying, owners = self._staying.owned_with(live), self._owners()

        def request() -> Removal | None:
            if resource_for(live).takes_orphans():
                release_orphans(self._context, live, members, OwnedOrphans(self._context))
            for one in staying:
                # Looks release from those that are gone: each deletion would read all of them again
                if going := owners.going(self._staying.without_gone_owners(one.live)):
                    # From those too now: with no other owner left the collector would delete it
                    self._disown(one, {*going, *self._staying.gone_owners(one.live)})
            return removal()

        return request

    def _look_later(self) -> None:
        self._look_within(max(AGAIN, self._looked_at + self._pause - time.monotonic()))

    def _look_within(self, seconds: float) -> None:
        """The next look begins after so many seconds, unless one is to begin before."""
        at = time.monotonic() + seconds
        if at < self._next_at:
            self._next_at = at
            self._loop.after(seconds, functools.partial(self._look_again, at))

    def _look_again(self, at: float) -> None:
        if at == self._next_at:  # else one that was to begin before has taken its place
            self._next_at = math.inf
            self._look()

    def _look(self, *, is_full: bool = False) -> None:
        """Looks whether owners of what stays go; one look at a time."""
        if not (self._staying.deleted or self._unsettled):
            return
        self._is_full |= is_full
        if not self._is_due:
            self._is_due = True
            self._loop.post(self._begin)  # after the events of a list, which may be thousands

    def _begin(self) -> None:
        if self._is_looking or not self._is_due or self._loop.refusals:
            return
        # Each look may be full: while events come in each, no timer begins one
        is_full = self._is_full or time.monotonic() >= self._looked_at + self._pause
        self._is_due = self._is_full = False
        entries = self._staying.entries.items()
        open_ = {key: one for key, one in entries if key in self._released or self._staying.may_go(one.live)}
        self._unsettled = {key: uids for key, uids in self._unsettled.items() if key in open_}
        looked = {key: one for key, one in open_.items() if is_full or key in self._unsettled or key in self._errors}
        if not looked:
            self._look_later()
            return
        self._is_looking, self._reported = True, {}
        self._seen_at.update(dict.fromkeys(looked, time.monotonic()))
        unsettled = {key: frozenset(uids) for key, uids in self._unsettled.items()}
        look = _Look(self._owners(), looked, frozenset(self._released), unsettled, is_full)
        self._loop.send(functools.partial(self._looked, look), functools.partial(self._seen, look), self._loop.refuse)

    def _owners(self) -> Owners:
        return Owners(self._context.client, self._staying.leaving, self._staying.uids)

    def _looked(self, look: _Look) -> _Seen:
        seen = _Seen([], {}, {}, set())
        for key, (resource, live) in look.entries.items():
            if self._loop.refusals or not self._operation.remaining() or self._operation.stop.is_set():
                seen.errors[key] = TransportError(f"{key}: its owners are not read: the operation has ended")
                break
            try:
                if key in look.released:
                    read = self._context.client.find(resource, key)
                    if read is None or uid_of(read) != uid_of(live):
                        continue  # it is gone, and another one of its name is nobody's
                    seen.read.append(read)
                    live = with_owners_of_both(live, read)
                if found := look.owners.going(live):
                    if not self._disown(Entry(resource, live), found):
                        seen.gone.add(key)
                    seen.going[key] = found
            except DriverError as error:
                seen.errors[key] = error
        return seen

    def _seen(self, look: _Look, seen: _Seen) -> None:
        """What was reported since the look began may be owned again: that is not settled."""
        self._is_looking = False
        if look.is_full:
            reads = max(len({*map(key_of, seen.read), *seen.going}), look.owners.reads)
            self._looked_at, self._pause = time.monotonic(), max(AGAIN, reads / READS_PER_SECOND)
        self._failed(seen.errors)
        changed = seen.gone | {key for key in look.entries if self._may_be_owned_again(key, look, seen)}
        self._released |= seen.gone  # the next look reads them: until then a watch says what becomes of the run
        for live in seen.read:
            self._staying.note(live)
        for key, owners in seen.going.items():
            self._staying.take_along(owners)
            if key not in changed and (missing := look.owners.missing & owners.keys()):
                self._staying.forget(key, missing)
        for key in look.unsettled.keys() - seen.errors.keys() - changed:
            # Those that exist have only lost the label by which a watch selects
            exist = seen.going.get(key, {}).keys() - look.owners.missing
            self._settle(key, look.unsettled[key] - exist)
        if self._is_due:
            self._begin()
        elif seen.errors or any(self._unsettled.get(key) for key in changed):
            self._look_within(backoff.delay(max(self._failures, 1)))
        elif changed & self._unsettled.keys():  # an owner that still exists owns it again: that is not answered at once
            self._look_within(AGAIN)
        elif self._staying.deleted or self._unsettled:
            self._look_later()

    def _may_be_owned_again(self, key: ObjectKey, look: _Look, seen: _Seen) -> bool:
        """Whether an object was reported with an owner that goes, or that the look does not know."""
        owners = self._reported.get(key, set())
        return not (owners.isdisjoint(seen.going.get(key, {})) and owners.issubset(owner_uids(look.entries[key].live)))

    def _failed(self, errors: Mapping[ObjectKey, DriverError]) -> None:
        self._errors = {key: redact(str(error)) for key, error in errors.items()}
        for key, error in errors.items():
            if passes(error) or (self._operation.abandon and not isinstance(error, Superseded)):
                LOG.warning("%s is not released from its owner yet, which is deleted: %s", key, self._errors[key])
            else:
                self._loop.refuse(error)
        now, self._failures = time.monotonic(), self._failures + 1 if errors else 0
        self._failing_since = {key: self._failing_since.get(key, now) for key in errors}
        for key, since in self._failing_since.items():
            if self._operation.abandon and now - since >= self._operation.share(ABANDONED_AFTER):
                self._unsettled.pop(key, None)

    def _settle(self, key: ObjectKey, owners: Collection[str]) -> None:
        if left := self._unsettled.pop(key, set()).difference(owners):
            self._unsettled[key] = left

    def _disown(self, one: Entry, owners: Collection[str]) -> bool:
        self._context.inventory.fence.before_write()
        return disown(self._context.client, one.resource, one.live, owners)
