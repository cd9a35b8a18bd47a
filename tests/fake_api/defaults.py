# SPDX-License-Identifier: Apache-2.0
"""What the server fills in and keeps on a write, as far as clients see it: identity, generation, a few defaults."""

import base64
import random
import string
import uuid
from collections.abc import Iterator
from typing import Any

from tests.fake_api.kinds import Kind
from tests.fake_api.objects import Object, copy, dig, now, put, with_leaf, without

_DEFAULTS: dict[str, list[tuple[tuple[str, ...], object]]] = {
    "Deployment": [(("spec", "replicas"), 1)],
    "ReplicaSet": [(("spec", "replicas"), 1)],
    "StatefulSet": [
        (("spec", "replicas"), 1),
        (("spec", "persistentVolumeClaimRetentionPolicy"), {"whenDeleted": "Retain", "whenScaled": "Retain"}),
    ],
    "Job": [(("spec", "parallelism"), 1), (("spec", "completions"), 1), (("spec", "backoffLimit"), 6)],
    "Secret": [(("type",), "Opaque")],
    "Service": [(("spec", "type"), "ClusterIP"), (("status", "loadBalancer"), {})],
    "Namespace": [(("status", "phase"), "Active"), (("spec", "finalizers"), ["kubernetes"])],
    "Pod": [(("status", "phase"), "Pending")],
    "PersistentVolumeClaim": [(("status", "phase"), "Pending")],
}


def fresh(kind: Kind, obj: Object) -> Object:
    """A new object with identity: uid, creationTimestamp, generation; status is not the creator's to set."""
    if kind.status:
        obj = without(obj, "status")
    metadata = without(obj["metadata"], "resourceVersion", "uid", "creationTimestamp", "generation",
                       "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
    if not metadata.get("name") and metadata.get("generateName"):
        suffix = "".join(random.choices(string.ascii_lowercase + string.digits, k=5))
        metadata["name"] = metadata["generateName"] + suffix
    metadata.update(uid=str(uuid.uuid4()), creationTimestamp=now())
    if kind.generation:
        metadata["generation"] = 1
    if kind.kind == "CustomResourceDefinition":
        metadata.setdefault("finalizers", ["customresourcecleanup.apiextensions.k8s.io"])
    return fill(kind, {**obj, "metadata": metadata})


def fill(kind: Kind, obj: Object) -> Object:
    """The defaults of built-in kinds that a driver can meet, and those that a custom resource's schema declares."""
    if kind.custom:
        return {**_fill_from_schema(obj, kind.schema or {}, top=True), "metadata": obj["metadata"]}
    obj = copy(obj) if kind.kind == "Job" else dict(obj)
    if kind.status:
        obj.setdefault("status", {})
    for path, value in _DEFAULTS.get(kind.kind, []):
        if dig(obj, *path) is None:
            obj = with_leaf(obj, path, copy(value))
    if kind.kind == "Secret" and kind.group == "" and "stringData" in obj:
        written = {name: base64.b64encode(text.encode()).decode() for name, text in obj.pop("stringData").items()}
        obj["data"] = {**(obj.get("data") or {}), **written}
    if kind.kind == "Service" and obj["spec"]["type"] != "ExternalName" and not obj["spec"].get("clusterIP"):
        address = f"10.96.{random.randrange(256)}.{random.randrange(1, 255)}"
        obj["spec"] = {**obj["spec"], "clusterIP": address, "clusterIPs": [address]}
    if kind.kind == "Job" and kind.group == "batch":
        _fill_job(obj)
    for path, value in _derived(kind, obj):
        obj = with_leaf(obj, path, value)
    return obj


def _derived(kind: Kind, obj: Object) -> Iterator[tuple[tuple[str, ...], object]]:
    """What is derived from other fields, and stays when these are gone (pkg/apis/{core,apps,networking}/v1)."""
    if kind.group == "apps":
        base = ("spec", "template", "spec")
        name, twin = (dig(obj, *base, field) for field in ("serviceAccountName", "serviceAccount"))
        if (name or twin) and name != twin:
            yield (*base, "serviceAccountName" if not name else "serviceAccount"), name or twin
    if kind.kind == "Deployment" and dig(obj, "spec", "strategy", "type") in (None, "RollingUpdate"):
        given = dig(obj, "spec", "strategy", "rollingUpdate", default={})
        parameters = {"maxSurge": "25%", "maxUnavailable": "25%", **given}
        yield ("spec", "strategy"), {"type": "RollingUpdate", "rollingUpdate": parameters}
    if kind.kind == "NetworkPolicy" and not dig(obj, "spec", "policyTypes"):
        yield ("spec", "policyTypes"), ["Ingress", *(["Egress"] if dig(obj, "spec", "egress") else [])]


def _fill_job(job: Object) -> None:
    uid, labels = job["metadata"].get("uid"), {}
    if not dig(job, "spec", "selector"):
        labels = {"batch.kubernetes.io/controller-uid": uid}
        put(job, ("spec", "selector"), {"matchLabels": labels})
    template = job["spec"].setdefault("template", {})
    present = template.setdefault("metadata", {}).setdefault("labels", {})
    for name, value in {**dig(job, "spec", "selector", "matchLabels", default={}),
                        "batch.kubernetes.io/job-name": job["metadata"]["name"]}.items():
        present.setdefault(name, value)


def _kept(name: str, schema: Object, top: bool) -> bool:
    """A custom resource's fields that its schema does not declare are pruned."""
    return (name in (schema.get("properties") or {}) or bool(schema.get("additionalProperties"))
            or bool(schema.get("x-kubernetes-preserve-unknown-fields")) or not schema
            or (top and name in ("metadata", "apiVersion", "kind")))


def _fill_from_schema(value: Any, schema: Object, top: bool = False) -> Any:
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        other = extra if isinstance(extra, dict) else {}
        filled = {name: _fill_from_schema(child, properties.get(name) or other) for name, child in value.items()
                  if _kept(name, schema, top)}
        for name, declared in properties.items():
            if name not in filled and "default" in declared:
                filled[name] = _fill_from_schema(copy(declared["default"]), declared)
        return filled
    if isinstance(value, list):
        return [_fill_from_schema(item, schema.get("items") or {}) for item in value]
    return value


def carried_over(kind: Kind, old: Object, new: Object, subresource: str) -> Object:
    """`new` with what a write at this endpoint cannot change taken from `old`, and the generation counted."""
    if subresource == "status":
        new = {**old, "status": new.get("status"), "metadata": {**old["metadata"], **_keep(new["metadata"])}}
        if new["status"] is None:
            del new["status"]
    elif kind.status:
        new = {**without(new, "status"), **({"status": old["status"]} if "status" in old else {})}
    if kind.kind == "Service":
        new = _with_address(old, new)
    kept = {name: old["metadata"][name] for name in (
        "uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
        if name in old["metadata"]}
    metadata = {**without(new["metadata"], "deletionTimestamp", "deletionGracePeriodSeconds", "generation"), **kept}
    if "generation" in kept and _counted(kind, old) != _counted(kind, new):
        metadata["generation"] = kept["generation"] + 1
    return {**new, "metadata": metadata}


def _with_address(old: Object, new: Object) -> Object:
    """A Service that names no address keeps the one that it has (patchAllocatedValues)."""
    before, spec = old.get("spec") or {}, new.get("spec") or {}
    is_free = "clusterIP" in before and not spec.get("clusterIP")
    if not is_free or "ExternalName" in (before.get("type"), spec.get("type")):
        return new
    return {**new, "spec": {**spec, "clusterIP": before["clusterIP"]}}


def _keep(metadata: Object) -> Object:
    return {name: metadata[name] for name in ("managedFields", "resourceVersion") if name in metadata}


def _counted(kind: Kind, obj: Object) -> Object:
    """What the generation counts: the spec of built-in kinds; all but metadata and status of custom resources."""
    if kind.custom or "spec" not in obj:
        return without(obj, "metadata", "apiVersion", "kind", *(["status"] if kind.status else []))
    return {"spec": obj["spec"]}
