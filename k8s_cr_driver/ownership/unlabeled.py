"""
Members without their label, such as an object that somebody has replaced from a file of his own.

Streams select by label and do not tell of them, but the server still knows which fields our manager has applied. Their
label is put back before a prune, so that they are deleted, waited for and told of like everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from k8s_cr_driver.errors import ApiError, Contended
from k8s_cr_driver.kube.connection import MERGE, METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.responses import checked
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, is_managed
from k8s_cr_driver.ownership.write import SHARED, WriteContext, has_gone


def find_unlabeled(target: WriteContext, resources: Iterable[Resource]) -> Iterator[tuple[Resource, Object]]:
    """
    Those of these kinds in the instance's namespaces, with no more than their metadata.

    Shared objects have no such label, and adopted ones are only let go.
    """
    record = target.inventory.record
    for resource in resources:
        if resource.group_kind not in SHARED:
            for namespace in sorted(record.namespaces) if resource.namespaced else [""]:
                for live in _unlabelled(target, resource, namespace):
                    if is_managed(live, target.instance) and not record.keeps(live):
                        yield resource, live


def _unlabelled(target: WriteContext, resource: Resource, namespace: str) -> list[Object]:
    try:
        return target.client.list(resource, namespace, f"!{INSTANCE_LABEL}", METADATA_LIST)
    except ApiError as error:
        if error.status != 404:  # else the kind has gone meanwhile, and its objects with it
            raise
        return []


def reclaim(target: WriteContext, resource: Resource, stray: Object) -> Object | None:
    """The object with its label; None if it has gone meanwhile. Asked twice, as when an answer is lost, it is the same.

    A plain patch: an apply that names the label alone would drop our other fields.
    """
    target.inventory.before_write()
    key, uid = key_of(stray), stray["metadata"]["uid"]
    path = resource.path(key.namespace, key.name)
    body = {"metadata": {"uid": uid, "labels": {INSTANCE_LABEL: target.instance}}}
    query = [("fieldManager", target.manager)]
    try:
        answer = target.connection.request("PATCH", path, query=query, body=body, content_type=MERGE)
    except ApiError as error:
        if error.status in (404, 409, 422) and has_gone(target, key, resource, uid):
            return None
        raise (Contended(f"{key} is changed by others all the time") if error.status == 409 else error) from None
    return checked(answer, resource.group_kind, f"PATCH {path}")
