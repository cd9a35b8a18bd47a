# SPDX-License-Identifier: Apache-2.0
"""What somebody forgot to render: templates of Helm, and kustomizations, among the manifests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from k8s_cr_driver.objects.fields import shown, walk
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of, kind_of

OF_CHART = "is a Helm chart, which is not applied: its files are no manifests; render it with k8s-cr init FOLDER --from CHART"
_TEMPLATE = re.compile(r"\{\{[^{}]{0,200}?(\.(Values|Release|Chart|Capabilities)\b|\b(include|tpl|toYaml|nindent|define)\b)")
"""What only Helm knows. Alerts of Prometheus and others have templates of the same language."""
_KUSTOMIZATION = re.compile(rb"^(apiVersion:\s*kustomize\.config\.k8s\.io/|kind:\s*Kustomization\s*$|resources:\s*$)", re.M)
_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_DATA = (GroupKind("", "ConfigMap"), GroupKind("", "Secret"))
_LARGEST = 4 * 1024 * 1024


def instead(folder: Path, problem: str) -> tuple[str, str]:
    """(code, sentence) for a document that cannot be read: a better one if it was never meant to be applied."""
    name = re.split(r", document |, line |: ", problem)[0]
    path = folder / name
    try:
        content = path.read_bytes() if path.is_file() and path.stat().st_size <= _LARGEST else b""
    except OSError:
        content = b""
    if (path.name in _NAMES or b"kustomize.config.k8s.io/" in content) and _KUSTOMIZATION.search(content):
        return "leftover", f"{name}: is a kustomization, which kubectl renders; make the package with k8s-cr init --from FOLDER"
    if found := _TEMPLATE.search(content.decode(errors="replace")):
        line = content.decode(errors="replace").count("\n", 0, found.start()) + 1
        text = "has a template of Helm, {{ }}, which nobody has rendered; make the package with k8s-cr init --from CHART"
        return "leftover", f"{name}, line {line}: {text}"
    return "manifest", problem


def problems(objects: Iterable[Object]) -> Iterator[str]:
    """A sentence for each object with a template of Helm in a field; data of ConfigMaps may be another program's."""
    for obj in objects:
        parts = {name: value for name, value in obj.items() if not (kind_of(obj) in _DATA and name != "metadata")}
        texts = ((path, value) for path, value in walk(parts) if isinstance(value, str))
        if field := next((shown(path) for path, value in texts if _TEMPLATE.search(value)), ""):
            yield f"{key_of(obj)}: {field}: has a template of Helm, {{{{ }}}}, that nobody has rendered; render the chart first"
