# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions and custom resources that projects publish in their Go modules: manifests, samples and tests."""

from __future__ import annotations

import json
import os
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from builds import cache, commands, programs
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import CRD, GroupKind, kind_of
from k8s_cr_driver.package.documents import DocumentError, documents

from .oracle import Object

PUBLISHED = {
    "github.com/NVIDIA/gpu-operator@v1.11.1": 1,
    "github.com/argoproj/argo-cd/v3@v3.6.1": 70,
    "github.com/argoproj/argo-rollouts@v1.10.2": 190,
    "github.com/aws/karpenter-provider-aws@v1.15.1": 30,
    "github.com/cert-manager/cert-manager@v1.21.2": 3,
    "github.com/cilium/cilium@v1.20.2": 160,
    "github.com/elastic/cloud-on-k8s/v3@v3.5.0": 140,
    "github.com/envoyproxy/gateway@v1.9.1": 120,
    "github.com/external-secrets/external-secrets@v1.3.2": 190,
    "github.com/fluxcd/kustomize-controller@v1.10.1": 10,
    "github.com/fluxcd/source-controller@v1.10.1": 25,
    "github.com/kedacore/keda/v2@v2.21.0": 5,
    "github.com/kyverno/kyverno@v1.19.1": 1700,
    "github.com/open-policy-agent/gatekeeper/v3@v3.23.1": 140,
    "github.com/openshift/api@v0.0.0-20210924154557-a4f696157341": 0,
    "github.com/projectcontour/contour@v1.33.8": 50,
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": 25,
    "github.com/traefik/traefik/v3@v3.7.13": 440,
    "github.com/vmware-tanzu/velero@v1.18.3": 5,
    "go.universe.tf/metallb@v0.16.2": 35,
    "istio.io/api@v1.31.1": 0,
    "istio.io/istio@v0.0.0-20260827124520-eed52ebb66ad": 900,
    "k8s.io/kubernetes@v1.36.3": 0,
    "knative.dev/serving@v0.51.0": 45,
    "sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0": 120,
    "sigs.k8s.io/cluster-api/test@v1.14.0": 0,
    "sigs.k8s.io/cluster-api@v1.14.0": 0,
    "sigs.k8s.io/controller-runtime@v0.24.1": 0,
    "sigs.k8s.io/gateway-api@v1.7.0": 130,
    "sigs.k8s.io/karpenter@v1.15.0": 5,
    "sigs.k8s.io/mcs-api@v0.3.0": 0,
}
"""Modules and the least number of custom resources that each has."""
SMALL = ("github.com/fluxcd/source-controller@v1.10.1", "sigs.k8s.io/gateway-api@v1.7.0")
"""Those that are read in seconds."""

_LARGE = 3 * 1024 * 1024


class Kind(NamedTuple):
    """A CustomResourceDefinition, the module that it is of, and the objects of its kind with the modules that they are of."""

    module: str
    definition: Object
    objects: list[tuple[str, Object]]


def published(modules: Iterable[str]) -> Iterator[Kind]:
    """Each CustomResourceDefinition of the modules, in its longest form, with the different objects of all of them."""
    definitions: dict[GroupKind, tuple[str, Object]] = {}
    objects: dict[GroupKind, dict[str, tuple[str, Object]]] = defaultdict(dict)
    for module in modules:
        for obj in _objects(_folder(module)):
            obj.pop("status", None)
            if kind_of(obj) != CRD:
                objects[kind_of(obj)].setdefault(json.dumps(obj, sort_keys=True), (module, obj))
            elif len(json.dumps(obj)) > len(json.dumps(definitions.get(defined_by(obj), ("", {}))[1])):
                definitions[defined_by(obj)] = module, obj
    for kind, (module, definition) in definitions.items():
        yield Kind(module, definition, list(objects[kind].values()))


def _folder(module: str) -> Path:
    """The module's sources, verified against Go's checksum database."""
    go = Path(sysconfig.get_path("scripts")) / "go"
    cache.folder().mkdir(parents=True, exist_ok=True)
    downloaded = commands.run([go, "mod", "download", "-json", module], env=os.environ | programs.SETTINGS, cwd=cache.folder())
    return Path(json.loads(downloaded)["Dir"])


def _objects(folder: Path) -> Iterator[Object]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".yaml", ".yml", ".json") and path.is_file() and path.stat().st_size < _LARGE:
            for part in path.read_text(errors="replace").split("\n---"):  # templates among them hide no other document
                yield from _parsed(part)


def _parsed(text: str) -> Iterator[Object]:
    try:
        for _, value in documents(text):
            yield from _flattened(value)
    except DocumentError:
        return


def _flattened(value: Any) -> Iterator[Object]:
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _flattened(item)
    elif isinstance(value, dict) and isinstance(value.get("apiVersion"), str) and isinstance(value.get("metadata"), dict):
        yield value
