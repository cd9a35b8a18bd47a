# SPDX-License-Identifier: Apache-2.0
"""
Guests: objects of others that the deletion of a Namespace or CRD would delete too.

A Namespace takes all its content with it, and a CRD all objects of its kind. So the last instance that uses one looks for
guests before it deletes it, and only releases it if there are any. What cannot be listed counts as a guest. A guest of a CRD
of the instance is one of its Namespace, too. What else others have there is `taken` along: with `delete_guests` all but what
another instance has made, or its inventory names.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from k8s_cr_driver.errors import ApiError, Contended, TransportError, passes
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource, Resources, discover
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import defined_by, is_established
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import (
    CRD,
    NAMESPACE,
    GroupKind,
    Object,
    ObjectKey,
    annotations_of,
    is_of_every_namespace,
    key_of,
    kind_of,
    labels,
)
from k8s_cr_driver.ownership.context import WriteContext
from k8s_cr_driver.ownership.labels import (
    INSTANCE_LABEL,
    KEPT_BY,
    RELEASED_BY,
    SHARED,
    appliers,
    is_created,
    is_kept,
    is_managed,
    is_released,
    users,
)
from k8s_cr_driver.ownership.managed_fields import has_applier
from k8s_cr_driver.ownership.orphans import find_orphans
from k8s_cr_driver.ownership.owners import LONGEST_CHAIN, named
from k8s_cr_driver.ownership.shared import claimed_by_others

CONTENT = (GroupKind("", "Pod"), GroupKind("", "PersistentVolumeClaim"))
"""Kinds whose objects keep a Namespace: what runs, and data."""
HELM = (GroupKind("", "Secret"), GroupKind("", "ConfigMap"))
"""Kinds in which Helm stores releases, with the label `owner=helm`."""
_SERVICE, _ENDPOINTS = GroupKind("", "Service"), GroupKind("", "Endpoints")
"""The second are of the first: the controller makes them under its name, without an owner."""
EVENTS = (GroupKind("", "Event"), GroupKind("events.k8s.io", "Event"))
NAMED = 3
"""Guests that are named in the reason."""
LISTED = 1000
"""Guests that `delete_guests` takes along, and that are named before."""
TRIES, PATIENCE = 4, 15.0
"""How often, and for how many seconds, a list that fails is repeated at least."""


class Guests:
    """
    Looks for guests; one for each run, which remembers what it has learned of owners, and since when lists fail.

    `going`: objects that the instance will have deleted by then, whatever they look like now. `leaving`: objects of the
    instance that are deleted with all that their controllers leave, at whatever time these make it.
    """

    def __init__(
        self, context: WriteContext, going: Collection[ObjectKey] = (), leaving: Collection[Object] = ()
    ) -> None:
        self._context, self._client, self._going, self._leaving = context, context.client, going, leaving
        self._owners: dict[tuple[ObjectKey, str], bool] = {}
        self._own_crds = {key_of(one).name: True for one in leaving if kind_of(one) == CRD}
        """By the names of CRDs, whether an instance has brought them."""
        self._of_another: dict[tuple[ObjectKey, str], bool] = {}
        self.taken: dict[ObjectKey, list[ObjectKey]] = {}
        """By Namespace or CRD, what others have there that is no guest, when last looked for guests."""
        self._failures: dict[ObjectKey, tuple[str, list[float]]] = {}
        """Of each Namespace or CRD the request that has failed last, and when it has failed without another between."""

    def reason(self, live: Object) -> str:
        """Why a Namespace or CRD must stay; "" if nobody else needs it.

        Any error but a missing permission may pass: it is raised, so that the caller repeats the call, until the same request
        has failed for long enough.
        """
        try:
            found = self._reason(live)
        except (ApiError, TransportError, Contended) as error:
            is_forbidden = isinstance(error, ApiError) and error.status == 403
            if not is_forbidden and not self._keeps_failing(key_of(live), str(error).partition(": ")[0]):
                raise error if passes(error) else Contended(str(error)) from None
            return f"it may hold objects of others, which the driver cannot list: {error}"
        self._failures.pop(key_of(live), None)
        return found

    def taken_with(self, key: ObjectKey) -> str:
        """What is said of the deletion of one that has been looked into; "" if it takes nothing of others along."""
        taken = self.taken.get(key, [])
        shown = _shown(taken, LISTED if self._context.delete_guests else NAMED)
        return f"with objects of others: {shown}" if taken else ""

    def _keeps_failing(self, key: ObjectKey, attempt: str) -> bool:
        """
        Whether a request has failed TRIES times in a row in no less than PATIENCE seconds: one may take a minute to fail.

        A server in trouble fails now this request and now that one, for hours perhaps, and each succeeds at times.
        """
        before, times = self._failures.get(key, ("", []))
        since = [*(times if before == attempt else ()), time.monotonic()]
        self._failures[key] = attempt, since
        return len(since) >= TRIES and since[-1] - since[0] >= PATIENCE

    def _reason(self, live: Object) -> str:
        """The inventories come last: an instance that begins meanwhile claims its own before it writes any object."""
        return self._contents(live) or claimed_by_others(self._context.inventory, live)

    def _contents(self, live: Object) -> str:
        key, kind = key_of(live), defined_by(live)
        self.taken[key] = []
        if key.group_kind == NAMESPACE:
            found = list(self._in_namespace(key))
            leaving = [one for one in self._leaving if key_of(one).namespace == key.name]
            late = {key_of(one) for _, one in find_orphans(self._context, leaving)} if found else set()
            return _named(one for one in found if key_of(one) not in late)
        served = Resources()
        served.add_crd(live)
        resource = served.find(kind)
        if resource is None:
            return "it may hold objects of others: no version of it is served, so that they cannot be listed"
        # Of a kind that was ever served there may be objects, also if a server does not know it, as one that lags.
        find = self._client.list if is_established(live) else self._client.list_if_served
        return _named(self._staying(self.strangers(find(resource, "", "", METADATA_LIST)), self.taken[key]))

    def _in_namespace(self, key: ObjectKey) -> Iterator[Object]:
        """
        Pods, claims and custom resources of the instance's CRDs; of other kinds Helm's releases, and what has another
        instance's label or was released by one.
        """
        taken, namespace = self.taken[key], key.name
        served = discover(self._context.connection)
        known = {one.group_kind: one for one in (*served, *self._context.resources)}
        for resource in sorted(known.values(), key=lambda one: one.group_kind in CONTENT):  # users' data last
            if resource.group_kind in CONTENT:
                found = self._client.list_if_served(resource, namespace, "", METADATA_LIST)
                yield from self._staying(self.strangers(found), taken)
            elif _is_content(resource):
                for live in self._allowed(resource, namespace):
                    if self._is_spoken_for(live) or (self._is_own_kind(resource) and not self._goes(live, LONGEST_CHAIN)):
                        yield from self._staying([live], taken)
                    elif self._is_taken(live):
                        taken.append(key_of(live))
        if served.down:  # the Namespace could not go either: its controller asks every API
            raise Contended(f"{'/'.join(min(served.down))}: the API server does not know its kinds now")

    def _is_own_kind(self, resource: Resource) -> bool:
        """
        Whether an instance has brought the kind: the inventory or the CRD says it.

        Of a CRD that an instance has released while others used it nobody knows any more which one that was.
        """
        if is_builtin(resource.group_kind):
            return False
        key, inventory = ObjectKey(*CRD, "", resource.crd_name), self._context.inventory
        if key.name not in self._own_crds:
            is_recorded = inventory.content.is_member(key) or inventory.remembered.is_member(key)
            self._own_crds[key.name] = is_recorded or self._is_brought(key)
        return self._own_crds[key.name]

    def _is_brought(self, key: ObjectKey) -> bool:
        crd = self._client.find(self._context.resources.find(CRD), key)
        return crd is not None and bool(users(crd) or is_released(crd) or has_applier(crd, KEPT_BY))

    def _is_taken(self, live: Object) -> bool:
        """Whether a live object is neither the instance's, nor owned, nor what Kubernetes puts into each Namespace."""
        key = key_of(live)
        is_of_service = key.group_kind == _ENDPOINTS and ObjectKey(*_SERVICE, key.namespace, key.name) in self._going
        is_ours = key in self._going or is_of_service or self._is_member(live) or field(live, "metadata", "deletionTimestamp")
        return not (is_ours or field(live, "metadata", "ownerReferences") or is_of_every_namespace(key))

    def _allowed(self, resource: Resource, namespace: str) -> Sequence[Object]:
        """Kinds that the account may not list are left out, as few accounts may list all, but not those of the instance."""
        try:
            return self._client.list_if_served(resource, namespace, "", METADATA_LIST)
        except ApiError as error:
            if error.status not in (403, 405) or resource.group_kind in self._context.inventory.content.kinds:
                raise
            return []

    def _is_spoken_for(self, live: Object) -> bool:
        if self._has_marks_of_another(live) or RELEASED_BY in annotations_of(live) or self._is_left(live):
            return True
        return kind_of(live) in HELM and labels(live).get("owner") == "helm" and not self._goes(live, LONGEST_CHAIN)

    def strangers(self, found: Iterable[Object]) -> Iterator[Object]:
        """Those of the objects that neither are the instance's, nor descend from one, nor are deleted."""
        return (live for live in found if not self._goes(live, LONGEST_CHAIN))

    def _staying(self, guests: Iterable[Object], taken: list[ObjectKey]) -> Iterator[Object]:
        """Those that may not be deleted; with `delete_guests` the others are `taken` along."""
        for live in guests:
            if not self._context.delete_guests or self._is_left(live) or self._is_of_another(live, LONGEST_CHAIN):
                yield live
            else:
                taken.append(key_of(live))

    def _has_marks_of_another(self, live: Object) -> bool:
        own = self._context.instance  # it may have lost the label
        return labels(live).get(INSTANCE_LABEL, own) != own or bool(appliers(live) - {own})

    def _is_of_another(self, live: Object, chain: int) -> bool:
        """Whether another instance has made or released the object, or one that it descends from."""
        own = self._context.instance
        if self._has_marks_of_another(live) or annotations_of(live).get(RELEASED_BY, own) != own:
            return True
        owners = field(live, "metadata", "ownerReferences") or []
        return chain > 0 and any(self._is_owner_of_another(live, owner, chain - 1) for owner in owners)

    def _is_owner_of_another(self, live: Object, owner: Object, chain: int) -> bool:
        found = named(self._context.resources, owner, key_of(live).namespace)
        if found is None:
            return False
        resource, named_owner = found
        identity = (key_of(named_owner), owner["uid"])
        if identity not in self._of_another:
            try:
                read = self._client.read_again(resource, named_owner)
            except ApiError as error:
                if error.status != 404:
                    raise
                self._of_another[identity] = False
            else:
                self._of_another[identity] = self._is_of_another(read, chain)
        return self._of_another[identity]

    def _goes(self, live: Object, chain: int) -> bool:
        """Whether an object is deleted, or is to be garbage collected, or descends from an object of this instance.

        The garbage collector deletes an object only if all its owners no longer exist.
        """
        if field(live, "metadata", "deletionTimestamp"):
            return True
        if self._is_left(live):
            return False
        if key_of(live) in self._going or self._is_member(live):
            return True
        if is_released(live):  # whoever owns it may still let it go
            return False
        owners = field(live, "metadata", "ownerReferences") or []
        return bool(owners) and chain > 0 and all(self._owner_goes(live, owner, chain - 1) for owner in owners)

    def _is_member(self, live: Object) -> bool:
        """Also of what others have created again, as `kubectl replace --force` does: it is deleted, too."""
        return self._is_marked(live) and self._context.inventory.owns(live)

    def _is_marked(self, live: Object) -> bool:
        own = self._context.instance
        return is_managed(live, own) or labels(live).get(INSTANCE_LABEL) == own

    def _is_left(self, live: Object) -> bool:
        """Whether the instance only releases an object: one that is kept, was adopted, or is shared with others."""
        if self._context.inventory.content.is_adopted(live):
            return True
        if not self._is_marked(live):
            return False
        others = users(live) - {self._context.instance}
        is_shared = kind_of(live) in SHARED and (not is_created(live) or bool(others))
        return is_shared or is_kept(live)

    def _owner_goes(self, live: Object, owner: Object, chain: int) -> bool:
        """False for an owner of a kind that the cluster does not list: the garbage collector keeps what it owns."""
        found = named(self._context.resources, owner, key_of(live).namespace)
        if found is None:
            return False
        resource, named_owner = found
        identity = (key_of(named_owner), owner["uid"])
        if identity not in self._owners:
            self._owners[identity] = self._is_going(resource, named_owner, chain)
        return self._owners[identity]

    def _is_going(self, resource: Resource, owner: Object, chain: int) -> bool:
        try:
            return self._goes(self._client.read_again(resource, owner), chain)
        except ApiError as error:
            if error.status != 404:
                raise
            return True


def _named(guests: Iterable[Object]) -> str:
    keys = list(map(key_of, guests))
    return f"it holds objects of others: {_shown(keys)}" if keys else ""


def _shown(keys: Sequence[ObjectKey], most: int = NAMED) -> str:
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(map(str, keys[:most])) + more


def _is_content(resource: Resource) -> bool:
    """Whether the deletion of a Namespace deletes objects of the kind; Events are nobody's."""
    return resource.namespaced and {"list", "delete"} <= resource.verbs and resource.group_kind not in EVENTS
