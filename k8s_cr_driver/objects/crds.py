# SPDX-License-Identifier: Apache-2.0
"""What a CustomResourceDefinition says of its kind: the versions, the schema of each, the status, the paths of `scale`.

One published CRD in seven declares no status: its objects are ready once stored. Where a status is declared, its absence
means that no controller has looked at the object yet.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from k8s_cr_driver.objects.fields import entries, field, mapping, texts
from k8s_cr_driver.objects.keys import CRD, GroupKind, Object, kind_of, split

PRESERVE = "x-kubernetes-preserve-unknown-fields"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a CRD that the API server removes when no object of its kind is left."""


_VERSION = re.compile(r"v([1-9]\d{0,18})(?:(alpha|beta)([1-9]\d{0,18}))?", re.ASCII)
_STAGES = (None, "beta", "alpha")


def defined_by(crd: Object) -> GroupKind:
    """The kind that a CustomResourceDefinition defines."""
    return GroupKind(str(field(crd, "spec", "group")), str(field(crd, "spec", "names", "kind")))


def crds_of(objects: Iterable[Object]) -> dict[GroupKind, Object]:
    """The CustomResourceDefinitions among `objects`, by the kind that each defines."""
    return {defined_by(obj): obj for obj in objects if kind_of(obj) == CRD}


def is_established(crd: Object) -> bool:
    """Whether the API server has begun to serve the kind, so that there may be objects of it."""
    return _has(crd, "Established", "True")


def is_in_cleanup(crd: Object) -> bool:
    """Whether the API server is deleting the custom resources of this CRD."""
    return bool(field(crd, "metadata", "deletionTimestamp")) and CLEANUP in (field(crd, "metadata", "finalizers") or ())


def is_refused(crd: Object) -> bool:
    """
    Whether another CRD of the group has one of its names, and it was never served, so that it has no objects.

    Objects of its kind are those of that other CRD. Established stays True once it is, and names are accepted before.
    """
    return _has(crd, "NamesAccepted", "False") and not is_established(crd)


def _has(crd: Object, condition: str, status: str) -> bool:
    found = entries(crd, "status", "conditions")
    return any((one.get("type"), one.get("status")) == (condition, status) for one in found)


def served_versions(crd: Object) -> dict[str, dict[str, Any]]:
    """Name -> entry of `spec.versions`, of the versions that the API server serves, in its order of preference."""
    served = {str(version.get("name")): version for version in entries(crd, "spec", "versions") if version.get("served")}
    return dict(sorted(served.items(), key=lambda item: _preference(item[0])))


@functools.lru_cache(maxsize=1024)
def _preference(version: str) -> tuple[int, int, int, int, str]:
    """Sorts v2, v1, v1beta2, v1beta1, v1alpha1, other: apimachinery, pkg/version (CompareKubeAwareVersionStrings)."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return 1, 0, 0, 0, version
    major, stage, minor = found.groups()
    return 0, _STAGES.index(stage), -int(major), -int(minor or 0), ""


def stored_version(crd: Object) -> str:
    """The version in which the API server stores objects; "" if none is marked."""
    return next((str(one.get("name")) for one in entries(crd, "spec", "versions") if one.get("storage") is True), "")


def with_stored_versions(crd: Object, live: Object) -> tuple[Object, list[str]]:
    """
    The manifest of a CRD with the versions that only `live` has, and in which objects may be stored; and their names.

    No CRD may lose these (apiextensions, ValidateCustomResourceDefinitionStoredVersions). They stay served, as there are
    clients that know no other, and a version that is served is one that others see.
    """
    own = {version.get("name") for version in entries(crd, "spec", "versions")}
    stored = set(texts(live, "status", "storedVersions")) - own
    kept = [version for version in entries(live, "spec", "versions") if version.get("name") in stored]
    if not kept or not own:
        return crd, []
    versions = [*entries(crd, "spec", "versions"), *({**version, "served": True, "storage": False} for version in kept)]
    return {**crd, "spec": {**crd["spec"], "versions": versions}}, [str(version.get("name")) for version in kept]


def lost_versions(before: Object, after: Object) -> list[str]:
    """The versions that a CRD stores or serves, and that another manifest of it does not have."""
    own = {version.get("name") for version in entries(after, "spec", "versions")}
    used = (one for one in entries(before, "spec", "versions") if one.get("storage") or one.get("served"))
    return [str(version.get("name")) for version in used if version.get("name") not in own]


def served_schema(crd: Object, version: str) -> dict[str, Any] | None:
    """The schema of a served version; None if it is not served."""
    entry = served_versions(crd).get(version)
    if entry is None:
        return None
    schema = _schema(entry)
    keep = field(crd, "spec", "preserveUnknownFields") is True or not schema
    return {PRESERVE: True, **schema} if keep else schema


def scale_path(crd: Object | None, api_version: str, name: str) -> tuple[str, ...] | None:
    """A path of the subresource `scale`: `name` is specReplicasPath, statusReplicasPath or labelSelectorPath."""
    path = field(_version(crd, api_version), "subresources", "scale", name)
    return tuple(path.lstrip(".").split(".")) if path and isinstance(path, str) else None


def status_selector(crd: Object | None, api_version: str) -> tuple[str, ...] | None:
    """The labelSelectorPath of the subresource `scale`, if it is in the status.

    It may also be in the spec (CustomResourceSubresourceScale), where whoever writes the object chooses the Pods.
    """
    path = scale_path(crd, api_version, "labelSelectorPath")
    return path if path and path[0] == "status" else None


def is_template(crd: Object, api_version: str) -> bool:
    """Whether a spec of this version holds a template and nothing else: nobody acts on the object itself."""
    return mapping(_schema(_version(crd, api_version)), "properties", "spec", "properties").keys() == {"template"}


def status_fields(crd: Object, api_version: str) -> dict[str, Any] | None:
    """The schemas of the fields that a status can have in this version; empty if any can; None without a status.

    A status that is declared without fields ("type: object" and no more, as scaffolded) counts as none: the API server
    prunes whatever a controller would write there.
    """
    version = _version(crd, api_version)
    schema = _schema(version)
    status = field(schema, "properties", "status")
    if isinstance(status, dict):
        if status.get(PRESERVE) is True or status.get("additionalProperties"):
            return {}
        return mapping(status, "properties") or None
    untyped = schema.get(PRESERVE) is True and isinstance(field(version, "subresources", "status"), dict)
    # A CRD that does not describe this version cannot rule a status out
    return {} if untyped or not version else None


def _version(crd: Object | None, api_version: str) -> dict[str, Any]:
    name = split(api_version)[1]
    return next((version for version in entries(crd, "spec", "versions") if version.get("name") == name), {})


def _schema(version: dict[str, Any]) -> dict[str, Any]:
    return mapping(version, "schema", "openAPIV3Schema")
