# SPDX-License-Identifier: Apache-2.0
"""
Objects that stay although an owner of them is deleted: they are released from it before.

The garbage collector deletes an object when the last of its owners is deleted, also if that goes only with an owner of its own
(`attemptToDeleteItem`, kubernetes, pkg/controller/garbagecollector). The collector may be late: an object that still exists
after its owner is not safe.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from urllib.parse import quote

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, TransportError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource, Resources, discover
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, ObjectKey, annotations_of, bare, key_of, kind_of, labels, split
from k8s_cr_driver.objects.marks import (
    INSTANCE_LABEL,
    RELEASED_BY,
    appliers,
    is_managed,
    is_released,
)
from k8s_cr_driver.plan.decision import decide
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.release import disown

LOG = logs.logger(__name__)

LONGEST_CHAIN = 10
"""Owners upwards that are read."""

LONGEST_NAME = 1024
"""Characters of the name of an owner that is read: objects have 253, and servers and proxies limit a path."""

Takers = frozenset[ObjectKey]
"""Objects with which an owner goes. Empty: it no longer exists, or others delete it."""

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


def by_uid(lives: Iterable[Object]) -> dict[str, Object]:
    return {str(live["metadata"]["uid"]): live for live in lives}


class Kin:
    """`going`: objects that the instance will have deleted. Reads each owner once."""

    def __init__(self, context: WriteContext, going: Collection[ObjectKey]) -> None:
        self._context, self._client, self._going = context, context.client, going
        self._owners: dict[tuple[ObjectKey, str], bool] = {}
        self._of_another: dict[tuple[ObjectKey, str], bool] = {}

    def is_of_another(self, live: Object, chain: int) -> bool:
        """Whether another instance has made or released the object, or one that it descends from."""
        own = self._context.instance  # it may have lost the label
        has_marks = labels(live).get(INSTANCE_LABEL, own) != own or bool(appliers(live) - {own})
        if has_marks or annotations_of(live).get(RELEASED_BY, own) != own:
            return True
        return chain > 0 and any(self._owner(live, one, chain - 1, self._of_another) for one in references(live))

    def goes(self, live: Object, chain: int) -> bool:
        """Whether an object is deleted, or is to be garbage collected, or descends from an object of this instance.

        The garbage collector deletes an object only if all its owners no longer exist.
        """
        if field(live, "metadata", "deletionTimestamp"):
            return True
        if self.is_left(live):
            return False
        if key_of(live) in self._going or (self._is_marked(live) and self._context.inventory.owns(live)):
            return True
        owners = [] if is_released(live) else references(live)  # whoever owns what is released may still let it go
        return bool(owners) and chain > 0 and all(self._owner(live, one, chain - 1, self._owners) for one in owners)

    def _is_marked(self, live: Object) -> bool:
        own = self._context.instance
        return is_managed(live, own) or labels(live).get(INSTANCE_LABEL) == own

    def is_left(self, live: Object) -> bool:
        """Whether the instance only releases an object: one that is kept, was adopted, or is shared with others."""
        if self._context.inventory.content.is_adopted(live):
            return True
        if not self._is_marked(live):
            return False
        return decide(self._context.inventory.content, self._context.instance, live).outlives

    def _owner(self, live: Object, owner: Object, chain: int, known: dict[tuple[ObjectKey, str], bool]) -> bool:
        """Whether an owner goes, or is another instance's; False for one of a kind that the cluster does not list."""
        found = named(self._context.resources, owner, key_of(live).namespace)
        if found is None:
            return False
        resource, named_owner = found
        identity = (key_of(named_owner), owner["uid"])
        if identity not in known:
            judge, is_missing = (self.goes, True) if known is self._owners else (self.is_of_another, False)
            try:
                known[identity] = judge(self._client.read_again(resource, named_owner), chain)
            except ApiError as error:
                if error.status != 404:
                    raise
                known[identity] = is_missing
        return known[identity]
