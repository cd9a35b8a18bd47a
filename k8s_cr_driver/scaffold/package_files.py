# SPDX-License-Identifier: Apache-2.0
"""Files of manifests -> the files of a package that `k8s-cr package` accepts, and what was chosen for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import NAMESPACE, Object, ObjectKey, annotations_of, bare, key_of
from k8s_cr_driver.package import health_rules
from k8s_cr_driver.package.reserved_marks import OURS
from k8s_cr_driver.package.tosca_meta import MANIFESTS, TOSCA_META
from k8s_cr_driver.package.vnfd import DEFINITIONS
from k8s_cr_driver.scaffold import forecast, hooks, vdus, vnfd, yaml_text
from k8s_cr_driver.scaffold.model import Choice, ManifestFile, Parameter, Product, Scaffold

REQUEST = "request.json"
_RULES = "readiness rules for kinds"
KEEP, HELM_KEEP = f"{OURS}keep", "helm.sh/resource-policy"
_OF_CLUSTERS = ("default", "kube-")
"""How the names of Namespaces begin that every cluster has."""


def of(
    files: Sequence[ManifestFile],
    product: Product,
    descriptor_id: str,
    *,
    namespace: str = "default",
    parameters: Sequence[Parameter] = (),
) -> Scaffold:
    """The package of `files`. Raises InvalidPackage for an object that two of them have."""
    files = [*files, *_namespace_file(files, namespace)]
    objects = _distinct(files)
    kept, choices = hooks.ordered(objects, namespace)
    kept, of_policy = _policies(kept)
    defaults = {one.name: one.default for one in parameters}
    found, kept, of_vdus = vdus.of(kept, namespace, defaults)
    written = {name: text for file in files for name, text in _written(file, {key_of(obj): obj for obj in kept})}
    rules = {f"{MANIFESTS}/{file.name}": file.text for file in files if file.is_rules}
    named = {**written, **{name: text for name, text in rules.items() if name != health_rules.FILE}}
    entry = f"{DEFINITIONS}/{product.name}.yaml"
    return Scaffold(
        {
            TOSCA_META: _meta(entry),
            entry: vnfd.text(product, descriptor_id, found, parameters),
            **written,
            **rules,
            REQUEST: _request(named, namespace, parameters),
        },
        [*choices, *of_policy, *of_vdus, *forecast.of(kept, namespace), *(Choice(name, "kept", _RULES) for name in rules)],
    )


def _distinct(files: Sequence[ManifestFile]) -> list[Object]:
    found: dict[ObjectKey, Object] = {}
    places: dict[ObjectKey, str] = {}
    for file in files:
        for obj in file.objects:
            key = key_of(obj)
            if key in found:
                raise InvalidPackage(f"{key} is written twice: in {places[key]} and in {file.name}; remove one of them")
            found[key], places[key] = obj, file.name
    return list(found.values())


def _namespace_file(files: Sequence[ManifestFile], namespace: str) -> list[ManifestFile]:
    """The Namespace of the request, if neither the manifests nor every cluster has it."""
    key = ObjectKey(*NAMESPACE, "", namespace)
    if namespace.startswith(_OF_CLUSTERS) or any(key_of(obj) == key for file in files for obj in file.objects):
        return []
    manifest = bare(key, "v1")
    return [ManifestFile("namespace.yaml", yaml_text.dump(manifest), [manifest])]


def _policies(objects: Sequence[Object]) -> tuple[list[Object], list[Choice]]:
    """What Helm keeps when a release is deleted, a terminate keeps."""
    found, choices = [], []
    for obj in objects:
        annotations = annotations_of(obj)
        if annotations.get(HELM_KEEP) == "keep":
            choices.append(Choice(str(key_of(obj)), f"kept, by {KEEP}", f"{HELM_KEEP}: keep"))
            others = {name: text for name, text in annotations.items() if name != HELM_KEEP}
            obj = {**obj, "metadata": {**obj["metadata"], "annotations": {**others, KEEP: "true"}}}
        found.append(obj)
    return found, choices


def _written(file: ManifestFile, kept: Mapping[ObjectKey, Object]) -> list[tuple[str, str]]:
    """The file as it was if its objects are; none if none of them is left."""
    objects = [kept[key_of(obj)] for obj in file.objects if key_of(obj) in kept]
    if not objects:
        return []
    text = file.text if objects == list(file.objects) else yaml_text.dump_all(objects)
    return [(f"{MANIFESTS}/{file.name}", text)]


def _meta(entry: str) -> str:
    head = {"TOSCA-Meta-File-Version": "1.0", "CSAR-Version": "1.1", "Created-by": "k8s-cr init", "Entry-Definitions": entry}
    return "".join(f"{key}: {value}\n" for key, value in head.items())


def _request(manifests: Mapping[str, str], namespace: str, parameters: Sequence[Parameter]) -> str:
    """Without vimConnectionInfo, so that Tacker takes its default VIM. A parameter that must be given is null there."""
    params: dict[str, Any] = {"lcm-kubernetes-def-files": list(manifests), "namespace": namespace}
    if wanted := {one.name: None for one in parameters if one.must_be_given}:
        params["parameters"] = wanted
    return json.dumps({"flavourId": vnfd.FLAVOUR, "additionalParams": params}, indent=2) + "\n"
