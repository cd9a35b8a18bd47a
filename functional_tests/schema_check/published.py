# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions and custom resources that projects publish in their Go modules: manifests, samples and tests."""

from __future__ import annotations

import json
import os
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builds import cache, commands, programs
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import CRD, GroupKind, kind_of
from k8s_cr_driver.package.documents import DocumentError, documents

from .oracle import Object

PUBLISHED = {
    "github.com/argoproj/argo-rollouts@v1.10.2": 190,
    "github.com/aws/karpenter-provider-aws@v1.15.1": 30,
    "github.com/cilium/cilium@v1.20.2": 160,
    "github.com/elastic/cloud-on-k8s/v3@v3.5.0": 140,
    "github.com/external-secrets/external-secrets@v1.3.2": 190,
    "github.com/fluxcd/source-controller@v1.10.1": 25,
    "github.com/kyverno/kyverno@v1.19.1": 1700,
    "github.com/traefik/traefik/v3@v3.7.13": 440,
    "istio.io/istio@v0.0.0-20260827124520-eed52ebb66ad": 900,
    "sigs.k8s.io/gateway-api@v1.7.0": 130,
}
"""Modules and the least number of custom resources that each has."""
SMALL = ("github.com/fluxcd/source-controller@v1.10.1", "sigs.k8s.io/gateway-api@v1.7.0")
"""Those that are read in seconds."""

_LARGE = 3 * 1024 * 1024


def published(module: str) -> Iterator[tuple[Object, list[Object]]]:
    """Each CustomResourceDefinition of a module, in its longest form, with the objects of its kind."""
    crds: dict[GroupKind, Object] = {}
    objects: dict[GroupKind, dict[str, Object]] = defaultdict(dict)
    for obj in _objects(_folder(module)):
        obj.pop("status", None)
        if kind_of(obj) == CRD:
            crds[defined_by(obj)] = max(obj, crds.get(defined_by(obj), {}), key=lambda one: len(json.dumps(one)))
        else:
            objects[kind_of(obj)][json.dumps(obj, sort_keys=True)] = obj
    for kind, crd in crds.items():
        yield crd, list(objects[kind].values())


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
