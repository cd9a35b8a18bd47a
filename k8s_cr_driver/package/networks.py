# SPDX-License-Identifier: Apache-2.0
"""
Networks that Pods ask Multus for, against the NetworkAttachmentDefinitions of the package.

The annotation has names, `NAMESPACE/NAME@INTERFACE` with commas between them, or a list in JSON. A network that asks for a
device names its resource in an annotation of its own, and a container must request that. What the package does not bring the
cluster may have, so all of it is for warnings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from k8s_cr_driver.objects.fields import entries, mapping, similar, text
from k8s_cr_driver.objects.keys import GroupKind, Object, annotations_of, key_of, kind_of

NETWORKS, RESOURCE = "k8s.v1.cni.cncf.io/networks", "k8s.v1.cni.cncf.io/resourceName"
_DEFINITION = GroupKind("k8s.cni.cncf.io", "NetworkAttachmentDefinition")
_LONGEST = 64 * 1024
"""Characters of an annotation."""


def problems(objects: Sequence[Object]) -> Iterator[str]:
    """A sentence for each network that is missing, and for each resource that no container requests."""
    known = {(key_of(obj).namespace, key_of(obj).name): obj for obj in objects if kind_of(obj) == _DEFINITION}
    for obj in objects:
        for template in _templates(obj):
            written = text(template, "metadata", "annotations", NETWORKS)
            try:
                wanted = list(read(written, key_of(obj).namespace)) if written else []
            except ValueError:
                yield f"{key_of(obj)}: annotation {NETWORKS}: is neither names nor a list in JSON; write NAMESPACE/NAME"
                continue
            for namespace, name in wanted:
                yield from _missing(obj, namespace, name, known)
            yield from _unrequested(obj, template, [known[one] for one in wanted if one in known])


def read(annotation: str, namespace: str) -> Iterator[tuple[str, str]]:
    """(namespace, name) of each network. Raises ValueError for what is neither names nor JSON."""
    if len(annotation) > _LONGEST:
        raise ValueError("too long")
    if annotation.lstrip().startswith("["):
        for one in json.loads(annotation):
            if not isinstance(one, dict) or not text(one, "name"):
                raise ValueError("no name")
            yield text(one, "namespace") or namespace, text(one, "name")
        return
    for word in annotation.split(","):
        match = re.fullmatch(r"\s*(?:([a-z0-9.-]+)/)?([a-z0-9.-]+)(?:@[\w.-]+)?\s*", word)
        if match is None:
            raise ValueError("no name")
        yield match[1] or namespace, match[2]


def _templates(obj: Object) -> Iterator[Mapping[str, Any]]:
    """What has the annotations of a Pod: a Pod, a template, the template of a CronJob's Job."""
    if kind_of(obj) == GroupKind("", "Pod"):
        yield obj
    for path in (("spec", "template"), ("spec", "jobTemplate", "spec", "template")):
        if template := mapping(obj, *path):
            yield template


def _missing(obj: Object, namespace: str, name: str, known: Iterable[tuple[str, str]]) -> Iterator[str]:
    known = list(known)
    if (namespace, name) in known:
        return
    near = similar(name, [other for of, other in known if of == namespace])
    elsewhere = next((of for of, other in known if other == name), "")
    remedy = f"did you mean {near}?" if near else f"write {elsewhere}/{name}" if elsewhere else "the cluster must have it"
    yield f"{key_of(obj)}: annotation {NETWORKS}: the package has no NetworkAttachmentDefinition {namespace}/{name}; {remedy}"


def _unrequested(obj: Object, template: Mapping[str, Any], networks: Iterable[Object]) -> Iterator[str]:
    requested = {
        name
        for part in ("containers", "initContainers")
        for container in entries(template, "spec", part)
        for kind in ("requests", "limits")
        for name in mapping(container, "resources", kind)
    }
    for network in networks:
        resource = annotations_of(network).get(RESOURCE, "")
        if resource and resource not in requested:
            yield (
                f"{key_of(obj)}: network {key_of(network).name} wants the resource {resource}, and no container requests it; "
                "write it into resources.requests and resources.limits"
            )
