# SPDX-License-Identifier: Apache-2.0
"""`Hand`: a test's hand in a cluster, as another client and as the controllers would write."""

from collections.abc import Callable, Iterable

from tests.fake_api import crds, deletion, verbs
from tests.fake_api.cluster import Cluster, Knobs
from tests.fake_api.kinds import Kind
from tests.fake_api.objects import Key, Object, copy, now


class Hand:
    """Objects go in and out as plain dicts; what comes out is a copy."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @property
    def knobs(self) -> Knobs:
        return self.cluster.knobs

    def put(self, obj: Object, status: bool = True, manager: str = "test") -> Object:
        """Create or replace as another client would; also the status unless `status` is false. Gives the stored object."""
        return copy(self._put(copy(obj), status, manager))

    def _put(self, obj: Object, status: bool, manager: str) -> Object:
        kind = self.cluster.kind_of(obj)
        metadata = obj.setdefault("metadata", {})
        namespace = metadata.setdefault("namespace", "default") if kind.namespaced else ""
        call = self._call(kind, namespace, metadata["name"], obj, manager)
        with self.cluster.writing():
            old = self.cluster.store.get(kind.resource, call.key)
            if old is None:
                call.name = ""
                verbs.create(call)
                call.name = metadata["name"]
            else:
                metadata.setdefault("resourceVersion", old["metadata"]["resourceVersion"])
                verbs.update(call)
        if status and kind.status and "status" in obj:
            self._set_status(kind, call.key, obj["status"], "controller")
        return self._shown(kind, call.key)

    def find(self, kind: str, namespace: str | None, name: str, api_version: str | None = None) -> Object | None:
        return copy(self.stored(kind, namespace, name, api_version))

    def stored(self, kind: str, namespace: str | None, name: str, api_version: str | None = None) -> Object | None:
        """The same itself, not to be changed."""
        found = self.cluster.by_kind(kind, api_version)
        stored = self.cluster.store.get(found.resource, _key(found, namespace, name))
        return None if stored is None else verbs.shown(found, stored)

    def get(self, kind: str, namespace: str | None, name: str, api_version: str | None = None) -> Object:
        """The stored object; LookupError if there is none."""
        found = self.cluster.by_kind(kind, api_version)
        return copy(self._shown(found, _key(found, namespace, name)))

    def _shown(self, kind: Kind, key: Key) -> Object:
        """The stored object itself, not to be changed; LookupError if there is none."""
        stored = self.cluster.store.get(kind.resource, key)
        if stored is None:
            raise LookupError(f"no {kind.kind} {'/'.join(key)}")
        return verbs.shown(kind, stored)

    def objects(self, kind: str, namespace: str | None = None, api_version: str | None = None) -> list[Object]:
        found = self.cluster.by_kind(kind, api_version)
        return [copy(verbs.shown(found, obj)) for obj in self.cluster.store.objects(found.resource, namespace or "")]

    def names(self, kind: str, namespace: str | None = None) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.objects(kind, namespace)]

    def delete(self, kind: str, namespace: str | None, name: str, policy: str = "Background") -> None:
        """Delete as another client would; finalizers hold."""
        found = self.cluster.by_kind(kind)
        obj = self.get(kind, namespace, name)
        with self.cluster.writing():
            deletion.delete(self.cluster, found.resource, (obj["metadata"].get("namespace") or "", name), policy)

    def set_status(self, kind: str, namespace: str | None, name: str, status: Object, *,
                   api_version: str | None = None, manager: str = "controller") -> Object:
        """Replace the status as a controller does; kinds without the subresource get it as a plain field."""
        found = self.cluster.by_kind(kind, api_version)
        key = _key(found, namespace, name)
        self._set_status(found, key, copy(status), manager)
        return copy(self._shown(found, key))

    def _set_status(self, kind: Kind, key: Key, status: Object, manager: str) -> None:
        call = self._call(kind, *key, {**self._shown(kind, key), "status": status}, manager)
        call.subresource = "status" if kind.status else ""
        with self.cluster.writing():
            verbs.update(call)

    def edit(self, kind: str, namespace: str | None, name: str, change: Callable[[Object], None],
             manager: str = "test") -> Object:
        """Change a stored object in place by a function and put it back; nobody writes it meanwhile."""
        with self.cluster.writing():
            obj = self.get(kind, namespace, name)
            change(obj)
            return copy(self._put(obj, True, manager))

    def release(self, kind: str, namespace: str | None, name: str, finalizers: Iterable[str] = ()) -> None:
        """Remove finalizers (all by default), as their controllers do when their work is done."""
        removed = set(finalizers)

        def change(obj: Object) -> None:
            held = obj["metadata"].get("finalizers") or []
            obj["metadata"]["finalizers"] = [one for one in held if removed and one not in removed]

        with self.cluster.writing():
            obj = self.get(kind, namespace, name)
            change(obj)
            found = self.cluster.kind_of(obj)
            verbs.update(self._call(found, obj["metadata"].get("namespace") or "", name, obj, "controller"))

    def establish(self, crd_name: str) -> None:
        """Establish a CRD that waited because `knobs.establish_crds` is false."""
        crds.establish(self.cluster, crd_name)

    def event(self, involved: Object, reason: str, message: str, type_: str = "Warning", count: int = 1) -> Object:
        """An Event about an object, in its namespace."""
        metadata = involved["metadata"]
        namespace = metadata.get("namespace") or "default"
        name = f"{metadata['name']}.{len(self.objects('Event')):016x}"
        return self.put({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"apiVersion": involved["apiVersion"], "kind": involved["kind"],
                               "name": metadata["name"], "namespace": metadata.get("namespace", ""),
                               "uid": metadata.get("uid", "")},
            "reason": reason, "message": message, "type": type_, "count": count, "firstTimestamp": now(),
            "lastTimestamp": now(), "source": {"component": "test"}})

    def react(self, kind: str, reaction: Callable[[Object], None], group: str | None = None) -> None:
        """Call `reaction(object)` after each write of such an object, before the writer has its answer.

        It gets the object as stored and may use this FakeApi; a write that changes nothing ends the recursion.
        """
        self.cluster.reactions.append((kind, group, reaction))

    def _call(self, kind: Kind, namespace: str, name: str, body: Object, manager: str) -> verbs.Call:
        return verbs.Call(self.cluster, kind, namespace, name, "", {"fieldManager": manager}, body, "", manager)


def _key(kind: Kind, namespace: str | None, name: str) -> Key:
    return (namespace or "") if kind.namespaced else "", name
