# SPDX-License-Identifier: Apache-2.0
"""
Objects that stay although an owner of them is deleted: they are released from it before.

The garbage collector deletes an object when the last of its owners is deleted, also if that goes only with an owner of its own
(`attemptToDeleteItem`, kubernetes, pkg/controller/garbagecollector). The collector may be late: an object that still exists
after its owner is not safe.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, TransportError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource, Resources, discover
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, ObjectKey, bare, key_of, kind_of, split
from k8s_cr_driver.ownership.context import WriteContext, selector
from k8s_cr_driver.ownership.earlier import released_earlier
from k8s_cr_driver.ownership.labels import is_managed
from k8s_cr_driver.ownership.released import disown
from k8s_cr_driver.ownership.unlabeled import find_unlabeled, may_be_unlabeled

LOG = logs.logger(__name__)

LONGEST_CHAIN = 10
"""Owners upwards that are read."""

LONGEST_NAME = 1024
"""Characters of the name of an owner that is read: objects have 253, and servers and proxies limit a path."""

Takers = frozenset[ObjectKey]
"""Objects with which an owner goes. Empty: it no longer exists, or others delete it."""

Find = Callable[[Resource | None, ObjectKey], Object | None]
"""Reads an object, as `Client.find` does."""

UNKNOWN: Object = {"metadata": {}}
"""Stands for an owner that cannot be read: the collector keeps what it owns, as far as anybody can say."""


def references(live: Object) -> list[Object]:
    """The ownerReferences of an object."""
    return live["metadata"].get("ownerReferences") or []


def named(resources: Resources, reference: Object, namespace: str) -> tuple[Resource, Object] | None:
    """The resource of an owner, and what names it; None for a kind that is not served. `namespace`: of the dependent.

    None, too, for a namespaced owner of an object of the cluster: the collector looks for it in no namespace. And for a name
    that is not itself in a path, or is too long for one: nobody can read such an owner.
    """
    with understood("ownerReferences"):
        kind, version = kind_of(reference), split(reference["apiVersion"])[1]
        name, uid = reference["name"], reference["uid"]
    resource = resources.find_any(kind, version)
    is_readable = len(name) <= LONGEST_NAME and quote(name, safe=":") == name and name not in (".", "..")
    if resource is None or not is_readable or (resource.namespaced and not namespace):
        return None
    key = ObjectKey(*kind, namespace if resource.namespaced else "", name)
    return resource, bare(key, resource.api_version, uid=uid)


class Owners:
    """
    The owners that go when a run deletes the objects `deleted`, by their uids.

    Reads those that are neither in it nor in `staying`, by their uids, once. Both may change meanwhile.
    """

    def __init__(self, client: Client, deleted: Mapping[str, Object], staying: Container[str]) -> None:
        self._client, self._deleted, self._staying = client, deleted, staying
        self._takers: dict[str, Takers | None] = {}
        self.missing: set[str] = set()
        """The uids of those that no longer exist: they own nothing again."""
        self.reads = 0

    def going(self, live: Object) -> dict[str, Takers]:
        """Owners of `live` that go, by uid: the deleted objects that take each along."""
        found = {str(owner.get("uid")): self._takers_of(live, owner, ()) for owner in references(live)}
        return {uid: takers for uid, takers in found.items() if takers is not None}

    def _takers_of(self, dependent: Object, owner: Object, below: tuple[str, ...]) -> Takers | None:
        """None if the owner stays. `below`: the owners from which this one was reached."""
        uid = str(owner.get("uid"))
        if uid in below or len(below) == LONGEST_CHAIN:
            return None
        if uid not in self._takers:
            self._takers[uid] = self._found(dependent, owner, (*below, uid))
        return self._takers[uid]

    def _found(self, dependent: Object, owner: Object, below: tuple[str, ...]) -> Takers | None:
        uid = str(owner.get("uid"))
        deleted = self._deleted.get(uid)
        if not deleted and uid in self._staying:
            return None
        live = deleted or self._read(dependent, owner)
        if live is None:
            self.missing.add(uid)
        if live is None or (not deleted and field(live, "metadata", "deletionTimestamp")):
            return frozenset()
        above = [self._takers_of(live, one, below) for one in references(live)]
        if deleted:
            return frozenset({key_of(deleted)}).union(*filter(None, above))
        return frozenset[ObjectKey]().union(*filter(None, above)) if above and None not in above else None

    def _read(self, dependent: Object, owner: Object) -> Object | None:
        """None if it no longer exists."""
        found = named(self._client.resources, owner, key_of(dependent).namespace)
        if found is None:
            return UNKNOWN
        if self._client.connection.is_over():  # whoever may write an object can name thousands of owners
            raise TransportError(f"{key_of(dependent)}: not all of its owners are read: the operation has ended")
        self.reads += 1
        try:
            return self._as_it_is(found, dependent, owner)
        except ApiError as error:
            if error.status == 404:
                return None
            if error.status not in (403, 405):
                raise
            LOG.warning("%s has an owner that the driver may not read, and is deleted with it: %s", key_of(dependent), error)
            return UNKNOWN

    def _as_it_is(self, found: tuple[Resource, Object], dependent: Object, owner: Object) -> Object:
        """ApiError 404 if it no longer exists. A change of package may have ended the version in which it is named."""
        try:
            return self._client.read_again(*found)
        except ApiError as error:
            is_of_kind = error.status == 404 and not error.subject[1]
            other = named(discover(self._client.connection), owner, key_of(dependent).namespace) if is_of_kind else None
            if other is None:
                raise
        return self._client.read_again(*other)


def release_from_owners(
    context: WriteContext, owners: Owners, staying: Iterable[tuple[Resource, Object]]
) -> dict[str, Takers]:
    """Removes from these objects the references to owners that go, or that no longer exist. Returns these, by uid."""
    found: dict[str, Takers] = {}
    for resource, live in staying:
        if going := owners.going(live):
            LOG.warning("%s stays, so it is released from its owner, which is deleted", key_of(live))
            context.inventory.fence.before_write()
            disown(context.client, resource, live, going)
            found |= going
    return found


def with_owners(context: WriteContext, lives: Iterable[tuple[Resource, Object]]) -> list[tuple[Resource, Object]]:
    """The instance's objects `lives` with the owners that they have now: a watch may be late, and a claim has data."""
    known = {key_of(live): (resource, live) for resource, live in lives}
    found = {key_of(live): (resource, live) for resource, live in dependents(context)} if known else {}
    return [found.get(key, one) for key, one in known.items()]


def dependents(context: WriteContext) -> Iterator[tuple[Resource, Object]]:
    """The objects of the instance that have owners."""
    return (one for one in _listed(context) if _is_dependent(context, one[1]))


def dependents_and_released(context: WriteContext) -> tuple[list[tuple[Resource, Object]], list[tuple[Resource, Object]]]:
    """The objects of the instance that have owners, and what a run before this one has released."""
    found = list[tuple[Resource, Object]]()
    missing = set(context.inventory.content.members or ())
    for resource, live in _listed(context):
        missing.discard(key_of(live))
        if _is_dependent(context, live):
            found.append((resource, live))
    return found, list(released_earlier(context, missing))


def holders(
    context: WriteContext, deleted: Iterable[Object], keys: Iterable[ObjectKey] | None, find: Find
) -> list[tuple[Resource, Object]]:
    """The Namespaces and CRDs of others that hold objects of these `keys`, which stay.

    An operator makes them for objects without a namespace: if none of `deleted` is such a one, nothing is read. `keys` None:
    all objects of the instance, of which an inventory that was lost has kinds and namespaces alone. `find` reads one.
    """
    if all(key_of(live).namespace for live in deleted):
        return []
    content, stay = context.inventory.content, set(keys or ())
    groups = content.kinds if keys is None else {key.group_kind for key in stay}
    namespaces = content.namespaces if keys is None else {key.namespace for key in stay} - {""}
    kinds = filter(None, map(context.resources.find, groups))
    named = {ObjectKey(*CRD, "", kind.crd_name) for kind in kinds if kind.group_kind.group}
    named |= {ObjectKey(*NAMESPACE, "", namespace) for namespace in namespaces}
    read = ((context.resources.find(key.group_kind), key) for key in sorted(named - stay))
    found = [(resource, find(resource, key)) for resource, key in read]
    return [(resource, live) for resource, live in found if resource and live and not _is_going(live)]


def _is_going(live: Object) -> bool:
    """Whether it is deleted already: it takes along what it holds, and no watch would report when it no longer exists."""
    return bool(field(live, "metadata", "deletionTimestamp"))


def _is_dependent(context: WriteContext, live: Object) -> bool:
    """Whether it is one of the instance's objects, and has owners; `managedFields` may be cleared."""
    return bool(references(live)) and (is_managed(live, context.instance) or context.inventory.owns(live))


def _listed(context: WriteContext) -> Iterator[tuple[Resource, Object]]:
    """What has the instance's label, or has lost it: one LIST of each for a kind, or for each of its namespaces."""
    found = filter(None, map(context.resources.find, sorted(context.inventory.content.kinds)))
    resources = [resource for resource in found if "list" in resource.verbs]
    for resource in resources:
        for live in _labelled(context, resource):
            yield resource, live
    for resource, namespace in may_be_unlabeled(context, resources):
        for live in find_unlabeled(context, resource, namespace):
            yield resource, live


def _labelled(context: WriteContext, resource: Resource) -> Sequence[Object]:
    wanted = selector(context.instance, resource.group_kind)
    try:
        return context.client.list_if_served(resource, "", wanted)
    except ApiError as error:
        if error.status != 403 or not resource.namespaced:
            raise
    places = context.inventory.content.places(resource.group_kind)
    return [live for place in places for live in context.client.list_if_served(resource, place, wanted)]


def by_uid(lives: Iterable[Object]) -> dict[str, Object]:
    return {str(live["metadata"]["uid"]): live for live in lives}
