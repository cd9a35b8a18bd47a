# SPDX-License-Identifier: Apache-2.0
"""What the server refuses with 422: names, custom resources against their schema, fields that may not change."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jsonschema

from tests.fake_api import errors
from tests.fake_api.errors import cause
from tests.fake_api.kinds import Kind
from tests.fake_api.objects import Object, dig, without

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_NAME_RULE = ("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
              "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
              "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
_IMMUTABLE = "field is immutable"
_IMMUTABLE_FIELDS: dict[tuple[str, str], list[tuple[str, ...]]] = {
    ("batch", "Job"): [("spec", "template"), ("spec", "selector"), ("spec", "completionMode")],
    ("apps", "Deployment"): [("spec", "selector")],
    ("apps", "ReplicaSet"): [("spec", "selector")],
    ("apps", "DaemonSet"): [("spec", "selector")],
    ("", "Secret"): [("type",)],
}
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_STORAGE_CLASS = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
_POD_MUTABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
_STATEFULSET_MUTABLE = ("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                        "persistentVolumeClaimRetentionPolicy", "minReadySeconds")


def check(kind: Kind, old: Object | None, new: Object) -> None:
    """ApiError 422 with a cause for every fault of `new`, or of the change from `old`."""
    name = new["metadata"].get("name") or ""
    found = list(_name(kind, name)) if old is None else list(_changes(kind, old, new))
    found += _too_long(kind, new)
    strategy = dig(new, "spec", "strategy", default={}) if kind.kind == "Deployment" else {}
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate"):
        words = "Forbidden: may not be specified when strategy `type` is 'Recreate'"
        found.append(cause("FieldValueForbidden", words, "spec.strategy.rollingUpdate"))
    if kind.custom:
        found += _schema_errors(kind, new)
    if found:
        raise errors.invalid(kind.group, kind.kind, name, found)


def _name(kind: Kind, name: str) -> Iterator[Object]:
    if not name:
        yield cause("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")
    elif kind.group != "rbac.authorization.k8s.io" and not _NAME.match(name):
        yield cause("FieldValueInvalid", f"Invalid value: {errors.quoted(name)}: {_NAME_RULE}", "metadata.name")


def _too_long(kind: Kind, obj: Object) -> Iterator[Object]:
    """TotalAnnotationSizeLimitB of apimachinery, and MaxSecretSize for a ConfigMap."""
    annotations = obj["metadata"].get("annotations") or {}
    if sum(len(name) + len(value) for name, value in annotations.items()) > 256 * 1024:
        yield cause("FieldValueTooLong", "Too long: may not be more than 262144 bytes", "metadata.annotations")
    if kind.kind == "ConfigMap":
        binary = sum(len(value) * 3 // 4 for value in (obj.get("binaryData") or {}).values())
        if binary + sum(map(len, (obj.get("data") or {}).values())) > 1024 * 1024:
            yield cause("FieldValueTooLong", "Too long: may not be more than 1048576 bytes", "")


def _changes(kind: Kind, old: Object, new: Object) -> Iterator[Object]:
    for path in _IMMUTABLE_FIELDS.get((kind.group, kind.kind), []):
        if dig(old, *path) != dig(new, *path):
            yield _invalid(path, dig(new, *path), _IMMUTABLE)
    if kind.kind in ("ConfigMap", "Secret") and kind.group == "" and old.get("immutable"):
        yield from _immutable_content(old, new)
    if kind.kind == "CustomResourceDefinition" and dig(old, "status", "acceptedNames", "kind"):
        yield from _established(old, new)
        yield from _stored_versions(old, new)
    yield from _worded_otherwise(kind, old, new)
    if kind.kind == "Service" and kind.group == "":
        yield from _cluster_ip(old, new)
    if kind.kind == "StatefulSet" and _rest(old, _STATEFULSET_MUTABLE) != _rest(new, _STATEFULSET_MUTABLE):
        yield cause("FieldValueForbidden", "Forbidden: updates to statefulset spec for fields other than 'replicas', "
                    "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden", "spec")
    if kind.kind == "Pod" and kind.group == "" and _fixed_pod(old) != _fixed_pod(new):
        yield cause("FieldValueForbidden", "Forbidden: pod updates may not change fields other than "
                    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
                    "(allow it to be set to 1 if it was previously negative)", "spec")


def _established(old: Object, new: Object) -> Iterator[Object]:
    """What objects are stored under cannot change once a CRD is established."""
    for path in (("spec", "scope"), ("spec", "names", "kind")):
        if dig(old, *path) != dig(new, *path):
            yield _invalid(path, dig(new, *path), _IMMUTABLE)


def _stored_versions(old: Object, new: Object) -> Iterator[Object]:
    """apiextensions, validation.ValidateCustomResourceDefinitionStoredVersions."""
    versions = {version["name"] for version in new["spec"]["versions"]}
    for number, name in enumerate(dig(old, "status", "storedVersions", default=[])):
        if name not in versions:
            yield cause("FieldValueInvalid", f"Invalid value: {errors.quoted(name)}: missing from spec.versions; {name} was "
                        "previously a storage version, and must remain in spec.versions until a storage migration ensures "
                        f"no data remains persisted in {name} and removes {name} from status.storedVersions",
                        f"status.storedVersions[{number}]")


def _worded_otherwise(kind: Kind, old: Object, new: Object) -> Iterator[Object]:
    """Immutable fields in the words of pkg/apis/{rbac,scheduling,storage}/validation."""
    if kind.kind in _BINDINGS and old.get("roleRef") != new.get("roleRef"):
        yield _invalid(("roleRef",), new.get("roleRef"), "cannot change roleRef")
    if kind.kind == "PriorityClass" and old.get("value") != new.get("value"):
        yield cause("FieldValueForbidden", "Forbidden: may not be changed in an update.", "value")
    for name in _STORAGE_CLASS if kind.kind == "StorageClass" else ():
        if old.get(name) != new.get(name):
            yield cause("FieldValueForbidden", f"Forbidden: updates to {name} are forbidden.", name)


def _immutable_content(old: Object, new: Object) -> Iterator[Object]:
    if not new.get("immutable"):
        yield cause("FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set", "immutable")
    for name in ("data", "binaryData"):
        if old.get(name) != new.get(name):
            yield cause("FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set", name)


def _cluster_ip(old: Object, new: Object) -> Iterator[Object]:
    before, after = dig(old, "spec", "clusterIP"), dig(new, "spec", "clusterIP")
    if before and before != after and dig(new, "spec", "type") != "ExternalName":
        yield _invalid(("spec", "clusterIPs[0]"), [after], "may not change once set")


def _rest(obj: Object, mutable: tuple[str, ...]) -> Object:
    return without(obj["spec"], *mutable)


def _fixed_pod(pod: Object) -> Object:
    spec = without(pod.get("spec") or {}, *_POD_MUTABLE)
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [without(container, "image") for container in spec[name]]
    return spec


def _invalid(path: tuple[str, ...], value: Any, why: str) -> Object:
    return cause("FieldValueInvalid", f"Invalid value: {errors.compact(value)}: {why}", ".".join(path))


def _schema_errors(kind: Kind, obj: Object) -> list[Object]:
    validator = _validator(kind)
    return [_schema_cause(error) for error in sorted(validator.iter_errors(obj), key=lambda e: list(map(str, e.path)))]


@lru_cache(maxsize=256)
def _validator(kind: Kind) -> Any:
    return jsonschema.Draft4Validator(_json_schema(kind.schema or {}, top=True))


def _json_schema(schema: Any, top: bool = False) -> Any:
    """OpenAPI's dialect as JSON Schema: `nullable` and int-or-string; metadata is not the schema's matter."""
    if not isinstance(schema, dict):
        return schema
    result = {name: value for name, value in schema.items() if name not in ("default", "example", "nullable", "format")}
    for name in ("properties", "patternProperties"):
        if name in schema:
            result[name] = {key: _json_schema(child) for key, child in schema[name].items()
                            if not (top and key in ("metadata", "apiVersion", "kind"))}
    for name in ("items", "additionalProperties", "not"):
        if name in schema:
            result[name] = _json_schema(schema[name])
    for name in ("anyOf", "allOf", "oneOf"):
        if name in schema:
            result[name] = [_json_schema(child) for child in schema[name]]
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if schema.get("nullable") and isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
    return result


def _schema_cause(error: Any) -> Object:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    value, wanted = errors.compact(error.instance), error.validator_value
    if error.validator == "required":
        missing = error.message.split("'")[1]
        return cause("FieldValueRequired", "Required value", f"{path}.{missing}".lstrip("."))
    if error.validator == "enum":
        supported = ", ".join(errors.compact(one) for one in wanted)
        return cause("FieldValueNotSupported", f"Unsupported value: {value}: supported values: {supported}", path)
    if error.validator == "type":
        shown = errors.quoted(_type_name(error.instance))
        expected = wanted if isinstance(wanted, str) else wanted[0]
        return cause("FieldValueTypeInvalid",
                     f"Invalid value: {shown}: {path} in body must be of type {expected}: {shown}", path)
    rule = {"pattern": f"should match '{wanted}'",
            "minimum": f"should be greater than or equal to {wanted}",
            "maximum": f"should be less than or equal to {wanted}",
            "minLength": f"should be at least {wanted} chars long",
            "minItems": f"should have at least {wanted} items"}.get(error.validator, error.message)
    return cause("FieldValueInvalid", f"Invalid value: {value}: {path} in body {rule}", path)


def _type_name(value: Any) -> str:
    names: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array",
                              dict: "object", type(None): "null"}
    return names[type(value)]
