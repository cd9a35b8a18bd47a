# SPDX-License-Identifier: Apache-2.0
"""References of built-in kinds to objects that a package does not bring.

The objects may be on the cluster, or a controller may create them, so a reference is a warning and no error. References
that are `optional` are skipped, and those to what every cluster has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.backends import role_of
from k8s_cr_driver.objects.fields import entries, field, mapping, pod_spec
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, key_of, kind_of, split
from k8s_cr_driver.scaffold.model import enumerated

_SECRET, _CONFIG_MAP, _CLAIM = GroupKind("", "Secret"), GroupKind("", "ConfigMap"), GroupKind("", "PersistentVolumeClaim")
_ACCOUNT, _SERVICE = GroupKind("", "ServiceAccount"), GroupKind("", "Service")
_INGRESS = GroupKind("networking.k8s.io", "Ingress")
_SCALER = GroupKind("autoscaling", "HorizontalPodAutoscaler")
_RBAC = "rbac.authorization.k8s.io"
_VOLUMES = (
    ("configMap", "name", _CONFIG_MAP),
    ("secret", "secretName", _SECRET),
    ("persistentVolumeClaim", "claimName", _CLAIM),
)
_ALWAYS_THERE = {"default", "kube-root-ca.crt", "kube-system", "kube-public", "kube-node-lease"}
_ROLES = {"cluster-admin", "admin", "edit", "view"}


def undefined(objects: Sequence[Object], kinds: Collection[GroupKind]) -> Iterator[str]:
    """A sentence for each kind that is neither built-in nor of the package."""
    for kind in sorted(kinds):
        names = [obj["metadata"]["name"] for obj in objects if kind_of(obj) == kind]
        yield (
            f"{kind} ({enumerated(names)}): the cluster must have its CustomResourceDefinition, or instantiate is refused; "
            "add it to the package if nobody else installs it"
        )


def sentences(objects: Sequence[Object]) -> Iterator[str]:
    """A sentence for each object that is missing, however many refer to it."""
    there = {key_of(obj) for obj in objects}
    custom = [obj for obj in objects if not is_builtin(kind_of(obj))]
    there |= {ObjectKey(*_SECRET, key_of(obj).namespace, name) for obj in custom for name in _secrets(obj)}
    referring: dict[ObjectKey, list[ObjectKey]] = defaultdict(list)
    for obj in objects:
        for wanted in dict.fromkeys(_references(obj)):
            if wanted not in there and not _is_always_there(wanted):
                referring[wanted].append(key_of(obj))
    for wanted, found in referring.items():
        yield f"{enumerated(found)} {'refers' if len(found) == 1 else 'refer'} to {wanted}, which the package does not bring"


def _is_always_there(key: ObjectKey) -> bool:
    return key.name in _ALWAYS_THERE or (key.group == _RBAC and (key.name in _ROLES or key.name.startswith("system:")))


def _secrets(value: Any) -> Iterator[str]:
    """Secrets that a custom resource names as `secretName`: its controller may create them."""
    if isinstance(value, Mapping):
        for name, child in value.items():
            if name == "secretName" and isinstance(child, str):
                yield child
            yield from _secrets(child)
    elif isinstance(value, list):
        for child in value:
            yield from _secrets(child)


def _references(obj: Object) -> Iterator[ObjectKey]:
    key = key_of(obj)
    if key.namespace:
        yield ObjectKey(*NAMESPACE, "", key.namespace)
    spec = pod_spec(obj) or pod_spec(dict(mapping(obj, "spec", "jobTemplate")))
    if spec is not None and is_builtin(key.group_kind):
        own = {str(field(one, "metadata", "name")) for one in entries(obj, "spec", "volumeClaimTemplates")}
        for wanted, name in _of_pod(spec):
            if not (wanted == _CLAIM and name in own):
                yield ObjectKey(*wanted, key.namespace, name)
    if key.group == _RBAC and key.kind in ("RoleBinding", "ClusterRoleBinding"):
        yield role_of(obj)
    elif key.group_kind == _INGRESS:
        backends = [path.get("backend") for rule in entries(obj, "spec", "rules") for path in entries(rule, "http", "paths")]
        for backend in (field(obj, "spec", "defaultBackend"), *backends):
            if name := field(backend, "service", "name"):
                yield ObjectKey(*_SERVICE, key.namespace, str(name))
    elif key.group_kind == _SCALER:
        scaled = mapping(obj, "spec", "scaleTargetRef")
        group = split(str(scaled.get("apiVersion", "")))[0]
        yield ObjectKey(group, str(scaled.get("kind")), key.namespace, str(scaled.get("name")))


def _of_pod(spec: Mapping[str, Any]) -> Iterator[tuple[GroupKind, str]]:
    if account := spec.get("serviceAccountName"):
        yield _ACCOUNT, str(account)
    for one in entries(spec, "imagePullSecrets"):
        yield _SECRET, str(one.get("name"))
    for volume in entries(spec, "volumes"):
        for source, name, kind in _VOLUMES:
            yield from _named(volume.get(source), name, kind)
        for projected in entries(volume, "projected", "sources"):
            yield from _named(projected.get("configMap"), "name", _CONFIG_MAP)
            yield from _named(projected.get("secret"), "name", _SECRET)
    for container in [*entries(spec, "initContainers"), *entries(spec, "containers")]:
        yield from _of_environment(container)


def _of_environment(container: Mapping[str, Any]) -> Iterator[tuple[GroupKind, str]]:
    for source in entries(container, "envFrom"):
        yield from _named(source.get("configMapRef"), "name", _CONFIG_MAP)
        yield from _named(source.get("secretRef"), "name", _SECRET)
    for variable in entries(container, "env"):
        yield from _named(field(variable, "valueFrom", "configMapKeyRef"), "name", _CONFIG_MAP)
        yield from _named(field(variable, "valueFrom", "secretKeyRef"), "name", _SECRET)


def _named(reference: Any, name: str, kind: GroupKind) -> Iterator[tuple[GroupKind, str]]:
    if isinstance(reference, Mapping) and reference.get(name) and not reference.get("optional"):
        yield kind, str(reference[name])
