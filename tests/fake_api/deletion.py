# SPDX-License-Identifier: Apache-2.0
"""Deletion: preconditions, finalizers, propagation, the garbage collector, Namespaces and CRDs with contents.

The controllers that do the latter on a real cluster work here by `Cluster.later`: at once, inside the request that
removed an object, unless a test has it otherwise.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial

from tests.fake_api import crds, errors
from tests.fake_api.cluster import Cluster
from tests.fake_api.kinds import CRDS, Kind, Resource
from tests.fake_api.objects import Key, Object, dig, key_of, timestamp, without

FOREGROUND = "foregroundDeletion"
CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
NAMESPACES: Resource = ("", "namespaces")
_IMMORTAL = ("default", "kube-public", "kube-system")


def check_preconditions(kind: Kind, obj: Object, options: Object) -> None:
    """409 if the object is not the one that `preconditions` of DeleteOptions name."""
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, actual = dig(options, "preconditions", field), obj["metadata"][field]
        if wanted and wanted != actual:
            why = {"uid": "The object might have been deleted and then recreated",
                   "resourceVersion": "The object might have been modified"}[field]
            raise errors.conflict(kind.group, kind.kind, obj["metadata"]["name"],
                                  f"the {label} in the precondition ({wanted}) does not match the {label} in record "
                                  f"({actual}). {why}")


def policy_of(options: Object, query: dict[str, str]) -> str:
    if "propagationPolicy" in query:
        return query["propagationPolicy"]
    if options.get("orphanDependents") is True or query.get("orphanDependents") == "true":
        return "Orphan"
    return str(options.get("propagationPolicy") or "Background")


def check_allowed(kind: Kind, name: str) -> None:
    if kind.resource == NAMESPACES and name in _IMMORTAL:
        raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")


def delete(cluster: Cluster, resource: Resource, key: Key, policy: str = "Background") -> Object:
    """Delete or mark as deleted; gives the object as it is now or last was."""
    obj = cluster.store.get(resource, key)
    assert obj is not None
    if policy == "Orphan":
        _orphan(cluster, obj)
    if policy != "Foreground" and not obj["metadata"].get("finalizers") and resource not in (NAMESPACES, CRDS):
        return _remove(cluster, resource, key)
    obj = _mark(cluster, resource, obj, policy)
    if _is_held_by_server(resource, obj):
        cluster.later(partial(_take_down_contents, cluster, resource, key, obj["metadata"]["uid"]))
    return settle(cluster, resource, key) or obj


def settle(cluster: Cluster, resource: Resource, key: Key) -> Object | None:
    """Remove a deleted object that nothing holds any more, and what follows from that; None if it stays for now."""
    obj = cluster.store.get(resource, key)
    if obj is None or "deletionTimestamp" not in obj["metadata"]:
        return None
    if not _is_held_by_server(resource, obj):
        return None if obj["metadata"].get("finalizers") else _remove(cluster, resource, key)
    removed: list[Object] = []
    cluster.later(partial(_finish, cluster, resource, key, obj["metadata"]["uid"], removed))
    return removed[0] if removed else None


def made_custom_resource(cluster: Cluster, resource: Resource) -> None:
    """The finalizer of a CRD deletes custom resources until none is left, also one that is made meanwhile, as by an apply."""
    key = "", f"{resource[1]}.{resource[0]}"
    crd = cluster.store.get(CRDS, key)
    if crd is not None and "deletionTimestamp" in crd["metadata"]:
        cluster.later(partial(_take_down_contents, cluster, CRDS, key, crd["metadata"]["uid"]))


def _is_held_by_server(resource: Resource, obj: Object) -> bool:
    """Whether a controller of the server itself has to end the deletion."""
    finalizers = obj["metadata"].get("finalizers") or []
    return resource == NAMESPACES or CRD_CLEANUP in finalizers or FOREGROUND in finalizers


def _take_down_contents(cluster: Cluster, resource: Resource, key: Key, uid: str) -> None:
    obj = _deleted(cluster, resource, key, uid)
    if obj is None:
        return
    if resource == NAMESPACES:
        _empty_namespace(cluster, key[1])
    elif resource == CRDS:
        _delete_instances(cluster, obj)
    else:
        _delete_blocking_dependents(cluster, obj)
    settle(cluster, resource, key)


def _finish(cluster: Cluster, resource: Resource, key: Key, uid: str, removed: list[Object]) -> None:
    """`removed` gets the object if it goes."""
    obj = _deleted(cluster, resource, key, uid)
    if obj is None:
        return
    obj = _drop_served_finalizers(cluster, resource, obj)
    held = resource == NAMESPACES and (any(_contents(cluster, key[1])) or key[1] in cluster.knobs.hold_namespaces)
    if not obj["metadata"].get("finalizers") and not held:
        removed.append(_remove(cluster, resource, key))


def _deleted(cluster: Cluster, resource: Resource, key: Key, uid: str) -> Object | None:
    """The object of that uid if it is there and on its way out."""
    obj = cluster.store.get(resource, key)
    return obj if obj is not None and obj["metadata"]["uid"] == uid and "deletionTimestamp" in obj["metadata"] else None


def _remove(cluster: Cluster, resource: Resource, key: Key) -> Object:
    gone = cluster.store.remove(resource, key)
    if resource == CRDS:
        crds.removed(cluster, gone)
    _after_removal(cluster, resource, gone)
    for owner in _owners(cluster, gone):
        cluster.written(owner)  # controllers look again at what has lost a child
    return gone


def _owners(cluster: Cluster, obj: Object) -> Iterator[Object]:
    for reference in obj["metadata"].get("ownerReferences") or []:
        found = cluster.store.by_uid(reference["uid"])
        owner = cluster.store.get(*found) if found else None
        if owner is not None:
            yield owner


def _end(cluster: Cluster) -> str:
    """When the grace period of a deletion is over."""
    return timestamp(datetime.now(timezone.utc) + timedelta(seconds=cluster.knobs.grace_period))


def _mark(cluster: Cluster, resource: Resource, obj: Object, policy: str) -> Object:
    finalizers = list(obj["metadata"].get("finalizers") or [])
    blocking = policy == "Foreground" and FOREGROUND not in finalizers
    if blocking:
        finalizers.append(FOREGROUND)
    first = "deletionTimestamp" not in obj["metadata"]
    if not (first or blocking):
        return obj
    metadata = {**obj["metadata"], "deletionTimestamp": obj["metadata"].get("deletionTimestamp") or _end(cluster),
                "deletionGracePeriodSeconds": cluster.knobs.grace_period}
    if finalizers:
        metadata["finalizers"] = finalizers
    if first and "generation" in metadata:
        metadata["generation"] += 1
    marked = {**obj, "metadata": metadata}
    if resource == NAMESPACES:
        marked["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    stored = cluster.store.put(resource, marked)
    cluster.written(stored)
    return stored


def _orphan(cluster: Cluster, owner: Object) -> None:
    uid = owner["metadata"]["uid"]
    for resource, key in cluster.store.dependents(uid):
        obj = cluster.store.get(resource, key)
        if obj is not None:
            kept = [ref for ref in obj["metadata"]["ownerReferences"] if ref.get("uid") != uid]
            metadata = without(obj["metadata"], "ownerReferences")
            cluster.store.put(resource, {**obj, "metadata": {**metadata, "ownerReferences": kept} if kept else metadata})


def _blocking(cluster: Cluster, owner: Object) -> list[tuple[Resource, Key]]:
    uid = owner["metadata"]["uid"]
    found = []
    for resource, key in cluster.store.dependents(uid):
        references = dig(cluster.store.get(resource, key), "metadata", "ownerReferences", default=[])
        if any(ref.get("uid") == uid and ref.get("blockOwnerDeletion") for ref in references):
            found.append((resource, key))
    return found


def _delete_blocking_dependents(cluster: Cluster, owner: Object) -> None:
    for resource, key in cluster.store.dependents(owner["metadata"]["uid"]):
        obj = cluster.store.get(resource, key)
        if obj is not None and "deletionTimestamp" not in obj["metadata"] and not _drop_owner(cluster, obj, owner):
            delete(cluster, resource, key, "Foreground")


def _drop_owner(cluster: Cluster, obj: Object, owner: Object) -> bool:
    """Takes the reference off an object that has another owner, which lives and is not being deleted; False without one."""
    uid = owner["metadata"]["uid"]
    others = [ref for ref in obj["metadata"]["ownerReferences"] if ref.get("uid") != uid]
    lives = [cluster.store.get(*found) for ref in others if (found := cluster.store.by_uid(ref.get("uid", "")))]
    if not any(FOREGROUND not in dig(live, "metadata", "finalizers", default=[]) for live in lives):
        return False
    kind = cluster.kind_of(obj)
    cluster.store.put(kind.resource, {**obj, "metadata": {**obj["metadata"], "ownerReferences": others}})
    return True


def _empty_namespace(cluster: Cluster, name: str) -> None:
    for resource, obj in list(_contents(cluster, name)):
        if cluster.store.get(resource, key_of(obj)) is not None:
            delete(cluster, resource, key_of(obj))


def _contents(cluster: Cluster, namespace: str) -> Iterator[tuple[Resource, Object]]:
    return (found for found in cluster.store.everything() if key_of(found[1])[0] == namespace)


def _instances(cluster: Cluster, crd: Object) -> tuple[Resource, list[Object]]:
    resource = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    return resource, cluster.store.objects(resource) if any(k.custom for k in cluster.served(resource)) else []


def _delete_instances(cluster: Cluster, crd: Object) -> None:
    resource, objects = _instances(cluster, crd)
    for obj in objects:
        if cluster.store.get(resource, key_of(obj)) is not None:
            delete(cluster, resource, key_of(obj))


def _drop_served_finalizers(cluster: Cluster, resource: Resource, obj: Object) -> Object:
    """Without the finalizers that the server's own controllers remove once their work is done."""
    finalizers = list(obj["metadata"].get("finalizers") or [])
    if FOREGROUND in finalizers and not _blocking(cluster, obj):
        finalizers.remove(FOREGROUND)
    is_stalled = obj["metadata"]["name"] in cluster.knobs.stalled_crds
    if CRD_CLEANUP in finalizers and not is_stalled and not _instances(cluster, obj)[1]:
        finalizers.remove(CRD_CLEANUP)
    if finalizers == (obj["metadata"].get("finalizers") or []):
        return obj
    metadata = without(obj["metadata"], "finalizers")
    updated = {**obj, "metadata": {**metadata, "finalizers": finalizers} if finalizers else metadata}
    return cluster.store.put(resource, updated)


def _after_removal(cluster: Cluster, resource: Resource, gone: Object) -> None:
    for dependent, key in cluster.store.dependents(gone["metadata"]["uid"]):
        cluster.later(partial(collect, cluster, dependent, key))
    for reference in gone["metadata"].get("ownerReferences") or []:
        owner = cluster.store.by_uid(reference.get("uid", ""))
        if owner is not None:
            settle(cluster, *owner)
    namespace = gone["metadata"].get("namespace")
    if namespace:
        settle(cluster, NAMESPACES, ("", namespace))
    if any(kind.custom for kind in cluster.served(resource)):
        settle(cluster, CRDS, ("", f"{resource[1]}.{resource[0]}"))


def collect(cluster: Cluster, resource: Resource, key: Key) -> None:
    """The garbage collector's look at one object: it goes if it had owners and none of them is there."""
    obj = cluster.store.get(resource, key)
    owners = dig(obj, "metadata", "ownerReferences", default=[])
    if obj is not None and owners and not any(cluster.store.by_uid(ref.get("uid", "")) for ref in owners):
        delete(cluster, resource, key)
