# SPDX-License-Identifier: Apache-2.0
"""
Owners of objects: those that stay are released from an owner before that is deleted, and kin goes with its owners.

The garbage collector deletes an object when the last of its owners is deleted (`attemptToDeleteItem`, kubernetes,
pkg/controller/garbagecollector). The collector may be late: an object that still exists after its owner is not safe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import quote

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import (
    Object,
    ObjectKey,
    annotations_of,
    bare,
    key_of,
    kind_of,
    labels,
    owner_uids,
    references,
    split,
)
from k8s_cr_driver.objects.marks import (
    INSTANCE_LABEL,
    RELEASED_BY,
    appliers,
    is_managed,
    is_released,
)
from k8s_cr_driver.plan.actions import decide
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.release import disown

LOG = logs.logger(__name__)

LONGEST_CHAIN = 10
"""Owners upwards that are read."""

LONGEST_NAME = 1024
"""Characters of the name of an owner that is read: objects have 253, and servers and proxies limit a path."""


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


def release_from_owners(context: WriteContext, going: Collection[str], staying: Iterable[tuple[Resource, Object]]) -> None:
    """Removes from these objects the references to owners of the uids `going`."""
    for resource, live in staying:
        if not frozenset(going).isdisjoint(owner_uids(live)):
            LOG.warning("%s stays, so it is released from its owner, which is deleted", key_of(live))
            disown(context, resource, live, going)


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
