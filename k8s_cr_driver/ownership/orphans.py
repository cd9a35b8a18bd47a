"""
What controllers make for an object and leave when it is deleted: the volume claims of a StatefulSet.

When the whole instance goes they go too, as with Tacker's own driver: a volume of the package would else be held by
its claim for ever. They are marked as members first, so that they are waited for, told of, and found by a retry like
everything else. A change of package leaves them alone, and the data in them.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.errors import ApiError, Contended
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import Object, bare, key_of
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL
from k8s_cr_driver.ownership.write import WriteContext, has_gone
from k8s_cr_driver.resources.base import Orphans
from k8s_cr_driver.resources.registry import resource_for


def take_over(target: WriteContext, lives: Iterable[Object]) -> list[Object]:
    """Makes what `lives` would leave members of the instance; what they are then."""
    record = target.inventory.record
    taken: list[Object] = []
    for live in lives:
        remains = resource_for(live).remains() if not record.keeps(live) else None
        resource = target.resources.find(remains.kind, remains.version) if remains else None
        if remains and resource:
            taken += _taken(target, resource, remains)
    return taken


def _taken(target: WriteContext, resource: Resource, remains: Orphans) -> list[Object]:
    among = target.client.list(resource, remains.namespace)
    found = [one for one in among if remains.names.fullmatch(one["metadata"]["name"])]
    if found:
        record = target.inventory.record
        kinds, namespaces = record.kinds | {remains.kind}, record.namespaces | {remains.namespace}
        target.inventory.update(kinds=kinds, namespaces=namespaces, adopted=record.adopted)
    marked = (_marked(target, resource, one) for one in found)
    return [one for one in marked if one is not None]


def _marked(target: WriteContext, resource: Resource, live: Object) -> Object | None:
    """The object with the instance's label, applied by its manager; None if it, of that uid, has gone meanwhile."""
    target.inventory.before_write()
    uid, marks = live["metadata"]["uid"], {INSTANCE_LABEL: target.instance}
    key = key_of(live)
    member = bare(key, resource.api_version, uid=uid, labels=marks)
    try:
        return target.client.apply(resource, member, target.manager, force=True)
    except ApiError as error:
        if error.status != 409:
            raise
    if has_gone(target, key, resource, uid):
        return None
    raise Contended(f"{key} is changed by others all the time")
