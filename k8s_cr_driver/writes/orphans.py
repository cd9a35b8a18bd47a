# SPDX-License-Identifier: Apache-2.0
"""
Orphaned objects: what a controller creates for an object and leaves when that is deleted (claims of a StatefulSet).

Terminate deletes them too, as Tacker's in-tree driver does: else a PersistentVolume of the package stays bound to its claim
for ever. They are labelled as members first, so that they are waited for, reported, and found by a retry. A change of
package keeps them, and the data in them.

`whenDeleted: Delete`, set before, would not do. The controller makes itself the owner of the claims of Pods that it has, by
their names (kubernetes, pkg/controller/statefulset, UpdatePodClaimForRetentionPolicy): also of a user's claim that was there
first, and not of those that a scale in has left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Contended
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.fields import entries, field, uid_of
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, bare, key_of, kind_of, labels, owner_uids
from k8s_cr_driver.objects.marks import CLAIMED, INSTANCE_LABEL, appliers, is_kept, is_managed, is_released
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.hooks import Orphans
from k8s_cr_driver.resources.registry import class_of, resource_for
from k8s_cr_driver.writes.context import WriteContext, has_gone
from k8s_cr_driver.writes.release import release

LOG = logs.logger(__name__)


def claim_orphans(context: WriteContext, lives: Collection[Object]) -> list[Object]:
    """Makes the orphans of `lives` members of the instance; returns them with the instance's label."""
    found = find_orphans(context, lives)
    if found:
        context.inventory.add_members(key_of(one) for _, one in found)
    labelled = (_labelled(context, resource, one) for resource, one in found)
    return [one for one in labelled if one is not None]


def is_claimed(live: Object, instance: str) -> bool:
    """Whether the object is an orphan that a terminate of this instance has made a member."""
    return CLAIMED in annotations_of(live) and is_managed(live, instance)


def keepers(lives: Iterable[Object]) -> list[Orphans]:
    """What those of `lives` leave that are to be kept, or whose orphans are."""
    return [left for live in lives if (left := _left_by(live)) and (is_kept(live) or left.are_kept)]


def may_leave(kind: GroupKind) -> bool:
    """Whether the class of a kind says what its objects leave."""
    return class_of(kind).orphans is not CustomResource.orphans


def _left_by(live: Object) -> Orphans | None:
    """What the object leaves; None for most kinds."""
    return resource_for(live).orphans() if may_leave(kind_of(live)) else None


class OwnedOrphans:
    """The orphans that objects own, so that they would go with these. Lists them once for each namespace."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._listed: dict[tuple[GroupKind, str], list[Object]] = {}

    def of(self, live: Object) -> list[tuple[Resource, Object]]:
        orphans = _left_by(live)
        resource = self._context.resources.find(orphans.kind) if orphans else None
        if resource is None:
            return []
        place = resource.group_kind, key_of(live).namespace
        if place not in self._listed:
            self._listed[place] = list(self._context.client.list(resource, place[1]))
        uid = uid_of(live)
        return [(resource, one) for one in self._listed[place] if uid in owner_uids(one)]


def staying_orphans(
    live: Object, members: Collection[ObjectKey], owned_orphans: OwnedOrphans
) -> list[tuple[Resource, Object]]:
    """What an object leaves that is to be deleted, and does not take along: it may own that all the same."""
    if (orphans := _left_by(live)) is None:
        return []
    owned = [(resource, one) for resource, one in owned_orphans.of(live) if key_of(one) not in members]
    return [(resource, one) for resource, one in owned if not orphans.are_taken or is_kept(one) or is_released(one)]


def disclaim_orphan(context: WriteContext, resource: Resource, live: Object) -> None:
    """Removes what `claim_orphans` has applied: the terminate has failed, and the instance lives on, with its data."""
    _written(context, resource, live, lambda: release(context, resource, context.client.read_again(resource, live)))


def find_orphans(context: WriteContext, lives: Collection[Object]) -> list[tuple[Resource, Object]]:
    """The orphans of `lives`, which are whole objects."""
    content = context.inventory.content
    found: list[tuple[Resource, Object]] = []
    owners = [(live, orphans) for live in lives if (orphans := _orphans(context, live))]
    if not owners:
        return []
    others = _left_by_others(context, lives, [live for live, _ in owners])
    for live, orphans in owners:
        if resource := context.resources.find(orphans.kind, orphans.version):
            own = _created(live) or content.created
            # The controller may have made older ones for others; an inventory that was lost is younger than both
            began = min(content.created, own) if key_of(live) in content.early else own
            among = [one for one in _find(context, resource, orphans, began) if _is_made_by_controller(one, live, began)]
            place = kind_of(live), key_of(live).namespace
            found += [(resource, one) for one in among if not any(other.may_include(one) for other in others[place])]
    return found


def _left_by_others(
    context: WriteContext, lives: Collection[Object], owners: Collection[Object]
) -> dict[tuple[GroupKind, str], list[Orphans]]:
    """
    By kind and namespace of `owners`, what all other objects there leave: a name may be one that several of them give.

    `lives`: what the instance had, which may no longer exist.
    """
    places = {(kind_of(live), key_of(live).namespace) for live in owners}
    resources = [(context.resources.find(kind), namespace) for kind, namespace in sorted(places)]
    listed = [live for resource, namespace in resources if resource for live in context.client.list(resource, namespace)]
    others = {uid_of(live): live for live in (*lives, *listed)}
    for live in owners:
        others.pop(uid_of(live), None)
    found: dict[tuple[GroupKind, str], list[Orphans]] = defaultdict(list)
    for live in others.values():
        if orphans := _left_by(live):
            found[kind_of(live), key_of(live).namespace].append(orphans)
    return found


def _orphans(context: WriteContext, live: Object) -> Orphans | None:
    orphans = _left_by(live)
    if orphans is None or orphans.selector is None or context.inventory.content.is_adopted(live) or is_kept(live):
        return None
    if orphans.are_kept:
        LOG.warning("%s: the objects that it leaves are kept: its policy says so, or nobody can know it", key_of(live))
        return None
    return orphans


def _find(context: WriteContext, resource: Resource, orphans: Orphans, began: str) -> list[Object]:
    """Only objects that were created after the instance began, and that no other instance has labelled or applied."""
    among = context.client.list(resource, orphans.namespace, orphans.selector) if orphans.selector is not None else []
    return [
        one
        for one in among
        if orphans.names.fullmatch(one["metadata"]["name"])
        and _created(one) >= began
        and labels(one).get(INSTANCE_LABEL, context.instance) == context.instance
        and not appliers(one) - {context.instance}
        and not (is_kept(one) or is_released(one) or context.inventory.content.is_adopted(one))
    ]


def _is_made_by_controller(one: Object, owner: Object, began: str) -> bool:
    """
    False if somebody else has created it than the controller of `owner`, which is who writes the owner's status.

    Creation times are whole seconds, and users create claims for a StatefulSet in advance. The maker of a claim applies its
    access modes, which never change. Where the fields' managers were removed, only a claim of a later second is the instance's.
    """
    of_owner, of_claim = (entries(live, "metadata", "managedFields") for live in (owner, one))
    controllers = {str(entry.get("manager")) for entry in of_owner if entry.get("subresource") == "status"}
    made = (entry for entry in of_claim if field(entry, "fieldsV1", "f:spec", "f:accessModes") is not None)
    makers = {str(entry.get("manager")) for entry in made}
    if controllers and makers:
        return not makers.isdisjoint(controllers)
    return _created(one) > began


def _created(live: Object) -> str:
    """RFC 3339; "" if the cluster does not say it."""
    return live["metadata"].get("creationTimestamp") or ""


def _labelled(context: WriteContext, resource: Resource, live: Object) -> Object | None:
    """Applies the instance's marks to the object; None if the object of that uid was deleted, or somebody else labels it."""
    marks = {"labels": {INSTANCE_LABEL: context.instance}, "annotations": {CLAIMED: "true"}}
    member = bare(key_of(live), resource.api_version, uid=live["metadata"]["uid"], **marks)
    return _written(
        context, resource, live, lambda: context.client.apply(resource, member, context.manager, force=False, live=live)
    )


def _written(context: WriteContext, resource: Resource, live: Object, write: Callable[[], Object]) -> Object | None:
    """What `write` returns; None if the object of that uid was deleted, or somebody else owns a field that it sets."""
    context.inventory.fence.before_write()
    try:
        return write()
    except ApiError as error:
        if error.status not in (404, 409):
            raise
        if error.causes:
            return None
    if has_gone(context, key_of(live), resource, live["metadata"]["uid"]):
        return None
    raise Contended(f"{key_of(live)} is changed by others all the time")
