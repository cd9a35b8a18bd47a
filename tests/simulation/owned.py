# SPDX-License-Identifier: Apache-2.0
"""Owners that operators have set, and when: whatever goes with one of them, somebody must have had no time to release."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fake_api.objects import Object, dig
from tests.simulation.entries import Entry
from tests.simulation.finished_jobs import DELAYS_OF_RECORDS

TIME_TO_RELEASE = 8.0
"""Seconds within which a run releases what stays from an owner that goes: two, four until a watch says so, and the way."""
_RETRIES = dict.fromkeys(("server errors", "streams not found"), 30.0)
_TAKEOVERS = dict.fromkeys(("crashes", "two workers", "early rollbacks"), 900.0)
DELAYS_OF_RELEASES = {"latency": 8.0, "silent streams": 320.0, **_RETRIES, **_TAKEOVERS, **DELAYS_OF_RECORDS}
"""More of them; a worker that takes over waits first until the one before it cannot write any more."""


class Owned:
    """`time_to_release`: what a run needs in a life with these `features`."""

    def __init__(self, features: frozenset[str]) -> None:
        self.time_to_release = TIME_TO_RELEASE + sum(DELAYS_OF_RELEASES.get(feature, 0.0) for feature in features)
        self._set: dict[tuple[str, str], float] = {}
        """When an operator has set an owner of an object last, by the uids of both."""
        self._deleted_by_users: set[str] = set()
        """The uids of objects."""

    def owns(self, owner: str, live: Object, now: float) -> None:
        """An operator has set an owner of that uid."""
        self._set[owner, live["metadata"]["uid"]] = now

    def deleted_by_user(self, old: Object) -> None:
        self._deleted_by_users.add(old["metadata"]["uid"])

    def since(self, old: Object, entries: Mapping[str, Entry]) -> float | None:
        """When an operator has set the last owner of an object that goes with its owners; None of one that does not."""
        uid, owners = old["metadata"]["uid"], _owners(old) if self._set else set()
        since = [self._set[owner, uid] for owner in owners if (owner, uid) in self._set]
        if not since or any(owner in entries and not entries[owner].marker for owner in owners):
            return None
        return max(since)

    def is_by_user(self, old: Object) -> bool:
        """Whether a user has deleted an owner."""
        return not _owners(old).isdisjoint(self._deleted_by_users)


def _owners(old: Object) -> set[str]:
    return {one["uid"] for one in dig(old, "metadata", "ownerReferences", default=None) or ()}
