# SPDX-License-Identifier: Apache-2.0
"""The verbs on one resource: create, read, list, update, patch, apply, delete, and what every write has in common.

A `Call` is a routed request. Each function gives (HTTP code, body); faults are ApiError.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any

from tests.fake_api import apply, crds, defaults, deletion, errors, reviews, scale, validation
from tests.fake_api.apply import Manager
from tests.fake_api.cluster import Cluster
from tests.fake_api.kinds import CRDS, Kind
from tests.fake_api.objects import Key, Object, dig, key_of, without
from tests.fake_api.selectors import selector

APPLY, MERGE, STRATEGIC = (f"application/{name}" for name in (
    "apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json"))

_OMITTED = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})
"""What of the metadata nobody owns when it is empty: the server's Go struct leaves it out."""
_RETURNED = frozenset({"PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ResourceQuota", "Service",
                       "ServiceAccount"})
"""Core kinds of which a deletion is answered with the object, others with a Status, when the object is gone at once."""


@dataclass
class Call:
    cluster: Cluster
    kind: Kind
    namespace: str
    name: str
    subresource: str
    query: dict[str, str]
    body: Any
    content_type: str
    user_agent: str

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All" or (isinstance(self.body, dict) and self.body.get("dryRun") == ["All"])

    def manager(self, operation: str = "Update") -> Manager:
        name = self.query.get("fieldManager") or self.user_agent.partition("/")[0] or "unknown"
        return Manager(name, operation, self.kind.api_version, self.subresource)

    def stored(self) -> Object:
        """The object that the path names, else ApiError 404."""
        found = self.cluster.store.get(self.kind.resource, self.key)
        if found is None:
            raise errors.not_found(self.kind.group, self.kind.plural, self.name)
        return found


def create(call: Call) -> tuple[int, Object]:
    obj = _identified(call, call.body)
    if call.kind.verbs == ("create",):
        return 201, reviews.answer(call.cluster, obj)
    new = defaults.fresh(call.kind, obj)
    bare = {"apiVersion": new["apiVersion"], "kind": new["kind"], "metadata": {}}
    made = apply.update(bare, new, call.kind.shape, call.manager(), call.kind.status)
    if call.cluster.store.get(call.kind.resource, key_of(new)) is not None:
        validation.check(call.kind, None, made)
        raise errors.already_exists(call.kind.group, call.kind.plural, new["metadata"]["name"])
    return 201, _commit(call, None, made)


def read(call: Call) -> tuple[int, Object]:
    obj = call.stored()
    return 200, scale.of(call.kind, obj) if call.subresource == "scale" else shown(call.kind, obj)


def list_(call: Call) -> tuple[int, Object]:
    store = call.cluster.store
    with store.lock:
        fits = selector(call.query, call.namespace)
        items = [obj for obj in store.objects(call.kind.resource, call.namespace) if fits(obj)]
        metadata: Object = {"resourceVersion": str(store.revision)}
    if "continue" in call.query:
        after = tuple(json.loads(base64.b64decode(call.query["continue"])))
        items = [obj for obj in items if key_of(obj) > after]
    limit = int(call.query.get("limit") or 0)
    if limit and len(items) > limit:
        last = json.dumps(key_of(items[limit - 1])).encode()
        metadata.update({"continue": base64.b64encode(last).decode(), "remainingItemCount": len(items) - limit})
        items = items[:limit]
    # Items of built-in lists carry neither apiVersion nor kind; those of custom resources do.
    rows = [shown(call.kind, obj) if call.kind.custom else without(obj, "apiVersion", "kind") for obj in items]
    return 200, {"kind": call.kind.kind + "List", "apiVersion": call.kind.api_version, "metadata": metadata,
                 "items": rows}


def update(call: Call) -> tuple[int, Object]:
    old = call.stored()
    if call.subresource == "scale":
        return 200, scale.of(call.kind, _replace(call, old, scale.applied(call.kind, old, call.body)))
    new = _identified(call, call.body)
    version = new["metadata"].get("resourceVersion")
    if not version and call.kind.custom:
        raise errors.invalid(call.kind.group, call.kind.plural, call.name, [errors.cause(
            "FieldValueInvalid", "Invalid value: 0x0: must be specified for an update", "metadata.resourceVersion")])
    uid = new["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"]:
        raise errors.conflict(call.kind.group, call.kind.plural, call.name, "Precondition failed: UID in precondition: "
                              f"{uid}, UID in object meta: {old['metadata']['uid']}")
    return 200, _replace(call, old, new)


def patch(call: Call) -> tuple[int, Object]:
    if call.content_type == APPLY:
        return _apply(call)
    if "force" in call.query:
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [errors.cause(
            "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force")])
    accepted = [MERGE, *([] if call.kind.custom else [STRATEGIC]), APPLY]
    if call.content_type not in accepted:
        raise errors.unsupported_media_type(accepted)
    stored = call.stored()
    scaled = call.subresource == "scale"
    old = scale.of(call.kind, stored) if scaled else shown(call.kind, stored)
    if call.content_type == STRATEGIC:
        new = _without_nulls(apply.merge(old, call.body, call.kind.shape))
    else:
        new = _merge_patch(old, call.body)
    if scaled:
        return 200, scale.of(call.kind, _replace(call, stored, scale.applied(call.kind, stored, new)))
    return 200, _replace(call, stored, new)


def _apply(call: Call) -> tuple[int, Object]:
    if not call.query.get("fieldManager"):
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [errors.cause(
            "FieldValueRequired", "Required value: is required for apply patch", "fieldManager")])
    force = call.query.get("force", "").lower() in ("true", "1", "t")
    manager = call.manager("Apply")
    live = call.cluster.store.get(call.kind.resource, call.key)
    if call.subresource:
        live = call.stored()
    config = _typed(call)
    if call.subresource == "scale" and live is not None:
        config = scale.config(call.kind, live, config)
    config = _identified(call, config)
    if dig(call.body, "metadata", "managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    base = live or without(config, *(set(config) - {"apiVersion", "kind"}))
    base = {**shown(call.kind, base), "metadata": base.get("metadata") or {
        name: value for name, value in config["metadata"].items() if name in ("name", "namespace")}}
    wanted = {**config, "metadata": without(config["metadata"], "resourceVersion", "uid", "creationTimestamp",
                                            "generation", "managedFields")}
    try:
        merged = apply.apply(base, wanted, call.kind.shape, manager, force, call.kind.status)
    except apply.TypedError as error:
        written = dig(call.body, "metadata", "namespace", default="")
        place = f"{written}/{call.name}; {call.kind.api_version}, Kind={call.kind.kind}"
        raise errors.ApiError(500, "", f"failed to create typed patch object ({place}): {error}") from None
    version = config["metadata"].get("resourceVersion")
    if live is not None and version and version != live["metadata"]["resourceVersion"]:
        raise errors.modified(call.kind.group, call.kind.plural, call.name)
    _check_uid(call, live, config)
    if live is None:
        return 201, _commit(call, None, defaults.fresh(call.kind, merged))
    new = defaults.fill(call.kind, defaults.carried_over(call.kind, live, merged, call.subresource))
    result = _commit(call, live, new)
    return 200, scale.of(call.kind, result) if call.subresource == "scale" else result


def delete(call: Call) -> tuple[int, Object]:
    obj = call.stored()
    options = call.body if isinstance(call.body, dict) else {}
    deletion.check_allowed(call.kind, call.name)
    deletion.check_preconditions(call.kind, obj, options)
    if not call.dry_run:
        obj = deletion.delete(call.cluster, call.kind.resource, call.key, deletion.policy_of(options, call.query))
    stays = call.cluster.store.get(call.kind.resource, call.key) is not None and not call.dry_run
    if stays or (call.kind.group == "" and call.kind.kind in _RETURNED):
        return 200, shown(call.kind, obj)
    details = {"name": call.name, "group": call.kind.group, "kind": call.kind.plural, "uid": obj["metadata"]["uid"]}
    return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                 "details": {name: value for name, value in details.items() if value}}


def delete_collection(call: Call) -> tuple[int, Object]:
    fits = selector(call.query, call.namespace)
    options = call.body if isinstance(call.body, dict) else {}
    found = [obj for obj in call.cluster.store.objects(call.kind.resource, call.namespace) if fits(obj)]
    for obj in found:
        if not call.dry_run and call.cluster.store.get(call.kind.resource, key_of(obj)) is not None:
            deletion.delete(call.cluster, call.kind.resource, key_of(obj), deletion.policy_of(options, call.query))
    return 200, {"kind": call.kind.kind + "List", "apiVersion": call.kind.api_version,
                 "metadata": {"resourceVersion": str(call.cluster.store.revision)},
                 "items": [shown(call.kind, obj) for obj in found]}


def _identified(call: Call, obj: Any) -> Object:
    """The body with the names of the path, or ApiError 400 where they contradict.

    Built-in kinds need not say what they are, except in an apply.
    """
    if isinstance(obj, dict) and not call.kind.custom and call.content_type != APPLY:
        obj = {"apiVersion": call.kind.api_version, "kind": call.kind.kind, **obj}
    if not isinstance(obj, dict) or not obj.get("kind") or not obj.get("apiVersion"):
        raise errors.bad_request("Object 'Kind' is missing in " + errors.quoted(json.dumps(obj)))
    if (obj["apiVersion"], obj["kind"]) != (call.kind.api_version, call.kind.kind):
        raise errors.bad_request(f"{obj['kind']} in version {errors.quoted(obj['apiVersion'])} cannot be handled as "
                                 f"a {call.kind.kind}")
    metadata = dict(obj.get("metadata") or {})
    if call.name and metadata.setdefault("name", call.name) != call.name:
        raise errors.bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL "
                                 f"({call.name})")
    if not call.kind.namespaced:
        metadata.pop("namespace", None)
    elif metadata.setdefault("namespace", call.namespace) != call.namespace:
        raise errors.bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return {**obj, "metadata": metadata}


def _replace(call: Call, old: Object, new: Object) -> Object:
    version = dig(new, "metadata", "resourceVersion")
    if version and version != old["metadata"]["resourceVersion"]:
        raise errors.modified(call.kind.group, call.kind.plural, call.name)
    _check_uid(call, old, new)
    new = {**new, "metadata": {name: value for name, value in new["metadata"].items() if value or name not in _OMITTED}}
    new = defaults.fill(call.kind, defaults.carried_over(call.kind, old, new, call.subresource))
    return _commit(call, old, apply.update(old, new, call.kind.shape, call.manager(), call.kind.status))


def _check_uid(call: Call, old: Object | None, new: Object) -> None:
    uid = dig(new, "metadata", "uid")
    if uid and old is None:
        raise errors.conflict(call.kind.group, call.kind.plural, call.name, "uid mismatch: the provided object "
                              f"specified uid {uid}, and no existing object was found")
    if uid and old is not None and uid != old["metadata"]["uid"]:
        raise errors.invalid(call.kind.group, call.kind.kind, call.name, [errors.cause(
            "FieldValueInvalid", f"Invalid value: {errors.quoted(uid)}: field is immutable", "metadata.uid")])


def _commit(call: Call, old: Object | None, new: Object) -> Object:
    """Validate and store; a write that changes nothing keeps the resourceVersion."""
    cluster, kind = call.cluster, call.kind
    if old is not None:
        metadata = {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}
        new = {**new, "metadata": {name: value for name, value in metadata.items() if value not in ([], {})}}
        if {**old, "apiVersion": ""} == {**new, "apiVersion": ""}:
            return shown(kind, old)
    if kind.resource == CRDS and old is not None:
        new = crds.with_stored_versions(old, new)
    validation.check(kind, old, new)
    if old is None and kind.namespaced:
        _check_namespace(call, new)
    if call.dry_run:
        return new
    stored = cluster.store.put(kind.resource, new)
    cluster.written(stored)
    if kind.resource == CRDS:
        if old is not None and "deletionTimestamp" in old["metadata"]:
            cluster.knobs.stalled_crds.discard(stored["metadata"]["name"])
        crds.written(cluster, old, stored)
    if old is None and kind.custom:
        deletion.made_custom_resource(cluster, kind.resource)
    deletion.settle(cluster, kind.resource, key_of(stored))
    return stored


def _check_namespace(call: Call, obj: Object) -> None:
    namespace = call.cluster.store.get(deletion.NAMESPACES, ("", call.namespace))
    if namespace is None:
        raise errors.not_found("", "namespaces", call.namespace)
    if "deletionTimestamp" in namespace["metadata"]:
        raise errors.forbidden(
            call.kind.group, call.kind.plural, obj["metadata"]["name"],
            f"unable to create new content in namespace {call.namespace} because it is being terminated",
            [errors.cause("NamespaceTerminating", f"namespace {call.namespace} is being terminated",
                          "metadata.namespace")])


def shown(kind: Kind, obj: Object) -> Object:
    """The object in the version that was asked for."""
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind}


def _merge_patch(old: Any, patch_: Any) -> Any:
    if not isinstance(patch_, dict):
        return patch_
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch_.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge_patch(result.get(name), value)
    return result


def _typed(call: Call) -> Object:
    """A null says nothing in a Go struct; what is applied of a custom resource keeps it, and validation refuses it."""
    if not call.kind.custom:
        return _without_nulls(call.body)
    return {**call.body, "metadata": _without_nulls(call.body.get("metadata") or {})}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        found = {}
        for name, child in value.items():
            if isinstance(child, (dict, list)):
                found[name] = _without_nulls(child)
            elif child is not None:
                found[name] = child
        return found
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
