# SPDX-License-Identifier: Apache-2.0
"""Which objects of a package become VDUs: each one that can be scaled, as Tacker scales VDUs and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from k8s_cr_driver.objects.crds import crds_of, served_schema
from k8s_cr_driver.objects.fields import field, mapping, text
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of, split
from k8s_cr_driver.package.reserved_marks import OURS
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.resources.replicas import explicit_count
from k8s_cr_driver.scaffold.model import Choice, Vdu

ANNOTATION = f"{OURS}vdu"
_AUTOSCALER = GroupKind("autoscaling", "HorizontalPodAutoscaler")
_DELTAS = 2
"""The largest step that is tried: a control plane has an odd number of Machines."""


def of(objects: Sequence[Object], namespace: str, defaults: Mapping[str, Any]) -> tuple[list[Vdu], list[Object], list[Choice]]:
    """
    The VDUs, the objects with an annotation where the name alone does not say which one is meant, and why.

    `namespace` is that of objects that name none, `defaults` are those of the parameters, by name, for counts that are one.
    """
    crds = crds_of(objects)
    whole = [resource_for(obj, crds.get(kind_of(obj))) for obj in objects]
    resources = [one for obj in whole for one in (obj, *obj.parts())]
    named = Counter(one.name for one in resources if one.children() or one.replicas())
    autoscaled = _autoscaled(objects, namespace)
    vdus: list[Vdu] = []
    choices: list[Choice] = []
    annotated: dict[ObjectKey, str] = {}
    for one in resources:
        if not one.replicas():
            continue
        wanted = annotations_of(one.manifest).get(ANNOTATION, "") if not one.part else ""
        is_plain = named[one.name] == 1 and "${" not in one.name and not wanted
        if not is_plain and one.part:
            choices.append(Choice(str(one), "no VDU", "another object has the same name; annotate one in the VNFD's words"))
            continue
        key = one.key._replace(namespace=one.key.namespace or namespace)
        autoscaler = one.scaling().autoscaler() or autoscaled.get(key, "")
        vdu = _vdu(one, wanted or _id(one, {vdu.id for vdu in vdus}), autoscaler, defaults)
        if not is_plain and not wanted:
            annotated[one.key] = vdu.id
        vdus.append(vdu)
        choices.append(_choice(one, vdu, autoscaler))
    return vdus, [_annotated(obj, annotated.get(key_of(obj))) for obj in objects], choices


def _id(obj: CustomResource, taken: set[str]) -> str:
    """The object's name, with its kind if another VDU has that name, and a number if that is not enough."""
    plain = re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)[^}]*\}", lambda match: match[1].lower(), obj.name)
    base = re.sub(r"[^A-Za-z0-9_-]", "-", plain).strip("-") or obj.key.kind.lower()
    candidates = [base, f"{base}-{obj.key.kind.lower()}", *(f"{base}-{number}" for number in range(2, len(taken) + 4))]
    return next(one for one in candidates if one not in taken and one != "VNF")


def _vdu(obj: CustomResource, id: str, autoscaler: str, defaults: Mapping[str, Any]) -> Vdu:
    about = f"{obj.key.group_kind} {obj.name}"
    if autoscaler:
        return Vdu(id, obj.name, about)
    written = field(obj.manifest, *(obj.replicas() or ()))
    if isinstance(written, str):  # a parameter
        name = re.match(r"\$\{([A-Za-z_][A-Za-z0-9_]*)", written)
        default = defaults.get(name[1]) if name else None
        least = default if isinstance(default, int) else 1
        return Vdu(id, obj.name, about, None, aspect=True, least=least, delta=_delta(obj, least))
    count = _count(obj)
    if count is None:
        return Vdu(id, obj.name, about)
    delta = _delta(obj, count)
    least = count if count < 1 else (count - 1) % delta + 1  # as few as steps lead to, but none only if there is none at first
    return Vdu(id, obj.name, about, count, aspect=True, least=least, delta=delta)


def _count(obj: CustomResource) -> int | None:
    """The count in the manifest, else the default of the CRD; built-in kinds have one replica without a number."""
    found = explicit_count(obj)
    if found is not None or obj.crd is None:
        return 1 if found is None else found
    node: Any = served_schema(obj.crd, split(obj.manifest["apiVersion"])[1])
    for step in obj.replicas() or ():
        node = mapping(node, "properties", step)
    default = mapping(node).get("default")
    return default if isinstance(default, int) else None


def _delta(obj: CustomResource, count: int) -> int:
    return next((step for step in range(1, _DELTAS + 1) if not obj.scaling().error(count + step)), 1)


def _autoscaled(objects: Sequence[Object], namespace: str) -> dict[ObjectKey, str]:
    """The objects whose count a HorizontalPodAutoscaler of the package sets, with a sentence on it."""
    found = {}
    for obj in objects:
        target = field(obj, "spec", "scaleTargetRef") if kind_of(obj) == _AUTOSCALER else None
        group, _ = split(text(target, "apiVersion"))
        key = ObjectKey(group, text(target, "kind"), key_of(obj).namespace or namespace, text(target, "name"))
        if target:
            found[key] = f"{key_of(obj)} sets its count"
    return found


def _choice(obj: CustomResource, vdu: Vdu, autoscaler: str) -> Choice:
    if vdu.aspect:
        first = "a parameter sets the first" if vdu.count is None else f"{vdu.count} at first"
        return Choice(str(obj), f"VDU {vdu.id}, scaling aspect {vdu.id}", f"has a count: {first}, {vdu.delta} a step")
    why = autoscaler or f"names no count; write {'.'.join(obj.replicas() or ())} to have it scaled"
    return Choice(str(obj), f"VDU {vdu.id}, no scaling aspect", why)


def _annotated(obj: Object, vdu: str | None) -> Object:
    if vdu is None:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations_of(obj), ANNOTATION: vdu}}}
