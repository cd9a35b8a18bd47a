# SPDX-License-Identifier: Apache-2.0
"""What etcd and the watch cache are to a real server: objects by resource, one revision counter, a log for watches.

Everything is guarded by one re-entrant lock (`changed` is its condition); stored objects are never changed in place.
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, key_of

FIRST_REVISION = 100


class Change(NamedTuple):
    """One write: `old` is None for a new object, `new` is None for a removed one (then `old` has the new revision).

    Both None: a bookmark.
    """

    revision: int
    old: Object | None
    new: Object | None


class Store:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.revision = FIRST_REVISION
        self.oldest = FIRST_REVISION
        self._objects: dict[Resource, dict[Key, Object]] = defaultdict(dict)
        self._log: dict[Resource, list[Change]] = defaultdict(list)
        self._epoch: dict[Resource, int] = defaultdict(int)
        self._uids: dict[str, tuple[Resource, Key]] = {}
        self._dependents: dict[str, dict[tuple[Resource, Key], None]] = defaultdict(dict)

    def copy(self) -> "Store":
        """A store of its own with the same past and present."""
        twin = Store()
        with self.lock:
            twin.revision, twin.oldest = self.revision, self.oldest
            for resource, objects in self._objects.items():
                twin._objects[resource] = dict(objects)
                for key, obj in objects.items():
                    twin._index(resource, key, None, obj)
            for resource, changes in self._log.items():
                twin._log[resource] = list(changes)
        return twin

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._objects[resource].get(key)

    def objects(self, resource: Resource, namespace: str = "") -> list[Object]:
        """Sorted by namespace and name, as the server lists."""
        with self.lock:
            items = sorted(self._objects[resource].items())
        return [obj for key, obj in items if not namespace or key[0] == namespace]

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store `obj` under a new revision and tell the watches; gives the object as stored."""
        with self.changed:
            self.revision += 1
            stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
            key = key_of(stored)
            old = self._objects[resource].get(key)
            self._objects[resource][key] = stored
            self._index(resource, key, old, stored)
            self._log[resource].append(Change(self.revision, old, stored))
            self.changed.notify_all()
            return stored

    def remove(self, resource: Resource, key: Key) -> Object:
        with self.changed:
            old = self._objects[resource].pop(key)
            self.revision += 1
            last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.revision)}}
            self._index(resource, key, old, None)
            self._log[resource].append(Change(self.revision, last, None))
            self.changed.notify_all()
            return last

    def bookmark(self, resource: Resource) -> None:
        """Note in the log that nothing happened up to now."""
        with self.changed:
            self._log[resource].append(Change(self.revision, None, None))
            self.changed.notify_all()

    def compact(self) -> None:
        """Forget the past: watches from an earlier revision get 410."""
        with self.lock:
            self.oldest = self.revision

    def end_streams(self, resource: Resource | None = None) -> None:
        """Let open watches of one resource, or of all, end with EOF."""
        with self.changed:
            for one in [resource] if resource else list(self._objects):
                self._epoch[one] += 1
            self.changed.notify_all()

    def epoch(self, resource: Resource) -> int:
        return self._epoch[resource]

    def log(self, resource: Resource) -> list[Change]:
        return self._log[resource]

    def dependents(self, uid: str) -> list[tuple[Resource, Key]]:
        return list(self._dependents.get(uid, ()))

    def everything(self) -> Iterator[tuple[Resource, Object]]:
        for resource, objects in list(self._objects.items()):
            for obj in list(objects.values()):
                yield resource, obj

    def by_uid(self, uid: str) -> tuple[Resource, Key] | None:
        return self._uids.get(uid)

    def _index(self, resource: Resource, key: Key, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._uids.pop(old["metadata"]["uid"], None)
        if new is not None:
            self._uids[new["metadata"]["uid"]] = resource, key
        for owner in _owner_uids(old):
            self._dependents[owner].pop((resource, key), None)
        for owner in _owner_uids(new):
            self._dependents[owner][resource, key] = None


def _owner_uids(obj: Object | None) -> list[str]:
    references = obj["metadata"].get("ownerReferences") if obj else None
    return [reference.get("uid", "") for reference in references or ()]
