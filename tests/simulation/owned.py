# SPDX-License-Identifier: Apache-2.0
"""
Owners that operators have set, and when.

Before an object is deleted, references to it are removed from objects that stay, once. What an operator has set since is the
garbage collector's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tests.fake_api.objects import Object, dig
from tests.simulation.entries import Entry
from tests.simulation.finished_jobs import DELAYS_OF_RECORDS

TIME_TO_HEAR = 4.5
"""Seconds within which a watch tells a run of an owner."""
_RETRIES = dict.fromkeys(("server errors", "streams not found"), 30.0)
_TAKEOVERS = dict.fromkeys(("crashes", "two workers", "early rollbacks"), 900.0)
DELAYS = {"latency": 8.0, "silent streams": 320.0, **_RETRIES, **_TAKEOVERS, **DELAYS_OF_RECORDS}
"""More of them; a worker that takes over waits first until the one before it cannot write any more."""


class Ownership(NamedTuple):
    """When an operator has last set an owner of one object, and who has deleted the last owner of these."""

    last: float
    taker: str


class Owned:
    """`time_to_hear` of an owner: what a run needs in a life with these `features`."""

    def __init__(self, features: frozenset[str]) -> None:
        self.time_to_hear = TIME_TO_HEAR + sum(DELAYS.get(feature, 0.0) for feature in features)
        self._set: dict[tuple[str, str], float] = {}
        """When an operator has last set an owner of an object, by the uids of both."""
        self._deleted: dict[str, tuple[float, str]] = {}
        """When the deletion of an object has begun, and by whom."""
        self._deleted_by_users: set[str] = set()
        """The uids of objects."""

    def owns(self, owner: str, live: Object, now: float) -> None:
        """An operator has set an owner of that uid."""
        self._set[owner, live["metadata"]["uid"]] = now

    def deleted(self, old: Object, worker: str, now: float) -> None:
        self._deleted.setdefault(old["metadata"]["uid"], (now, worker))

    def deleted_by_user(self, old: Object) -> None:
        self._deleted_by_users.add(old["metadata"]["uid"])

    def ownership(self, old: Object, entries: Mapping[str, Entry]) -> Ownership | None:
        """By those whose owners an operator has set; None of an object that does not go with its owners."""
        uid, owners = old["metadata"]["uid"], _owners(old) if self._set else set()
        found = [self._set[owner, uid] for owner in owners if (owner, uid) in self._set]
        if not found or any(owner in entries and not entries[owner].marker for owner in owners):
            return None
        _, taker = max(self._deleted.get(owner, (math.inf, "")) for owner in owners)
        return Ownership(max(found), taker)

    def is_by_user(self, old: Object) -> bool:
        """Whether a user has deleted an owner."""
        return not _owners(old).isdisjoint(self._deleted_by_users)


def _owners(old: Object) -> set[str]:
    return {one["uid"] for one in dig(old, "metadata", "ownerReferences", default=None) or ()}
