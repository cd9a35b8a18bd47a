# SPDX-License-Identifier: Apache-2.0
"""Lists with merge keys: entries that repeat a key.

A server-side apply of such a list fails with 500 "failed to create typed patch object: duplicate entries", which
names no file. So packages are checked first. Source: `x-kubernetes-list-map-keys` in the OpenAPI description of
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.fields import Path, sequence, shown, walk
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of

MergeKeys = Mapping[str, tuple[str, ...]]
_POD: MergeKeys = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}

_CONTAINER: MergeKeys = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
}

_ADMISSION = "admissionregistration.k8s.io"
_BY_KIND: Mapping[GroupKind, MergeKeys] = {
    GroupKind("", "Service"): {"ports": ("port", "protocol")},
    GroupKind("", "ServiceAccount"): {"secrets": ("name",)},
    GroupKind(_ADMISSION, "MutatingWebhookConfiguration"): {"webhooks": ("name",), "matchConditions": ("name",)},
    GroupKind(_ADMISSION, "ValidatingWebhookConfiguration"): {"webhooks": ("name",), "matchConditions": ("name",)},
    GroupKind(_ADMISSION, "MutatingAdmissionPolicy"): {"matchConditions": ("name",)},
    GroupKind(_ADMISSION, "ValidatingAdmissionPolicy"): {"matchConditions": ("name",), "variables": ("name",)},
}

_DEFAULTS = {"protocol": "TCP"}


def repeated_merge_keys(obj: Object) -> Iterator[tuple[str, str]]:
    """(field path, names of the merge keys) of each list entry of a built-in kind whose merge key an earlier entry has."""
    kind = kind_of(obj)
    for path, value in walk(obj) if is_builtin(kind) else ():
        keys = _keys_within(path, value, _BY_KIND.get(kind, {})) if isinstance(value, dict) else {}
        for name in keys:
            for index, key in repeated(sequence(value, name), keys[name]):
                yield shown((*path, name, index)), key


def repeated(entries: list[Any], keys: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(index, names of the keys) of the entries whose values of `keys` an earlier entry has."""
    seen = set()
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        values = {key: entry.get(key, _DEFAULTS.get(key)) for key in keys}
        if not all(isinstance(value, str | int) for value in values.values()):
            continue
        identity = tuple(values.items())
        if identity in seen:
            yield index, ", ".join(keys)
        seen.add(identity)


def _keys_within(path: Path, value: Object, own: MergeKeys) -> MergeKeys:
    """The keys of the lists in a mapping; `own` are those of the kind of its object."""
    if isinstance(value.get("containers"), list):
        return _POD
    is_container = len(path) > 1 and str(path[-2]).endswith("ontainers") and isinstance(path[-1], int)
    return _CONTAINER if is_container else own
