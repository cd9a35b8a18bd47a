# SPDX-License-Identifier: Apache-2.0
"""Jobs that have run to their end, and who knows of it: nobody runs them again."""

from __future__ import annotations

from collections.abc import Collection

from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, dig, key_of
from tests.simulation.entries import JOBS

TIME_TO_RECORD = 10.0
"""Seconds within which a worker, unless it crashes, has stored that it has seen the end of a Job."""
DELAYS_OF_RECORDS = {"lost answers": 125.0, "webhooks": 900.0}
"""More of them: two lost responses in a row, and a webhook that refuses the inventory as long as an operation lasts."""


class FinishedJobs:
    """`completed`: the Jobs that have run to their end, whether anybody was shown that or not."""

    def __init__(self, features: frozenset[str]) -> None:
        self._time_to_record = TIME_TO_RECORD + sum(DELAYS_OF_RECORDS.get(feature, 0.0) for feature in features)
        self.completed: set[str] = set()
        self._seen: dict[tuple[Resource, Key, str], dict[str, float]] = {}
        """Of each Job, and its image, the workers that were shown its end, and when."""
        self._taken: set[str] = set()
        """The uids of Jobs that their instance has deleted; a watch may show them later."""
        self._applied: set[tuple[str, Resource, Key]] = set()
        """The names of workers, and the objects that each has applied."""

    def show(self, worker: str, now: float, resource: Resource, live: Object) -> None:
        """A watch shows an object to a worker."""
        if resource == JOBS and dig(live, "status", "succeeded") and live["metadata"]["uid"] not in self._taken:
            self._seen.setdefault((resource, key_of(live), _image(live)), {}).setdefault(worker, now)

    def applied(self, worker: str, resource: Resource, key: Key) -> None:
        """A worker knows that the server has applied an object, whether that changed it or not."""
        self._applied.add((worker, resource, key))

    def taken(self, old: Object) -> None:
        """Its instance has deleted it, by a change without it, or with another one in its place. A rollback may come."""
        self._taken.add(old["metadata"]["uid"])
        self._seen.pop((JOBS, key_of(old), _image(old)), None)

    def forget(self, kept: Collection[tuple[Resource, Key]]) -> None:
        """What a package no longer contains may run again when another one brings it."""
        self._seen = {job: seen for job, seen in self._seen.items() if job[:2] in kept}

    def may_run(self, worker: str, resource: Resource, new: Object, ends: dict[str, float]) -> bool:
        """
        Nobody runs again what it has seen finished, or what another worker has, and had the time to record.

        The end of a Job that a worker has not applied yet may be that of another manifest: then the Job has to run. `ends`:
        since when each worker cannot record any more.
        """
        key = key_of(new)
        for name, when in self._seen.get((resource, key, _image(new)), {}).items():
            has_applied = (name, resource, key) in self._applied
            if (name == worker and has_applied) or ends.get(name, -1000.0) - when > self._time_to_record:
                return False
        return True


def _image(job: Object) -> str:
    """What distinguishes one version of a Job from the next."""
    containers = dig(job, "spec", "template", "spec", "containers", default=None) or [{}]
    return str(containers[0].get("image"))
