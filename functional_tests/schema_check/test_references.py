# SPDX-License-Identifier: Apache-2.0
"""What the fields of the sample packages' CRDs name, against what their authors say of these fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from builds.manifests import rendered
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import CRD, Object, ObjectKey, kind_of
from k8s_cr_driver.objects.references import References
from k8s_cr_driver.package.documents import documents
from sample_packages.upstream import PROJECTS

BUILT_IN = [
    *(("", kind) for kind in ("ConfigMap", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "Secret")),
    *(("", kind) for kind in ("Service", "ServiceAccount")),
    *(("networking.k8s.io", kind) for kind in ("Ingress", "IngressClass", "NetworkPolicy")),
    *(("rbac.authorization.k8s.io", kind) for kind in ("ClusterRole", "Role")),
    *(("apps", "Deployment"), ("scheduling.k8s.io", "PriorityClass"), ("storage.k8s.io", "StorageClass")),
]
JUDGED = {
    ("authSecret.name", "Secret"): "described where the type is",
    ("clientSecretSecretRef.name", "Secret"): "as well",
    ("apiKeySecretRef.name", "Secret"): "as well",
    ("apiTokenSecretRef.name", "Secret"): "as well",
    ("imagePullSecret", "Secret"): "the author calls it credentials",
    ("credentialNames.[]", "Secret"): "as well",
    ("configMapName", "ConfigMap"): "not described",
    ("priorityClassName", "PriorityClass"): "not described",
    ("serviceAccounts.[]", "ServiceAccount"): "not described; who may send",
    ("notServiceAccounts.[]", "ServiceAccount"): "who may not: of no harm, as the rule works without",
    ("notNamespaces.[]", "Namespace"): "as well",
    ("applicationCredentialName", "Secret"): "a credential of OpenStack: of no harm unless a Secret has its name",
}
"""Fields, by their end, that name a kind of which their authors do not speak."""
NAMES = re.compile(r"name of (the |an? )?(\w+ ){0,3}?(secret|configmap|service ?account|(storage|priority) ?class)\b", re.I)

Path = tuple[str, ...]


@pytest.fixture(scope="module")
def definitions() -> list[Object]:
    folders = [rendered(project) for project in {one for several in PROJECTS.values() for one in several}]
    files = [path for folder in folders for path in sorted(folder.rglob("*.yaml"))]
    return [value for path in files for _, value in documents(path.read_text()) if kind_of(value) == CRD]


def test_what_fields_name_is_what_their_authors_say(definitions: list[Object]) -> None:
    references = References([
        *(ObjectKey(*kind, "blue", "x") for kind in BUILT_IN),
        *(ObjectKey(*defined_by(one), "blue", "x") for one in definitions),
    ])  # fmt: skip
    wrong, missed, right = set(), set(), 0
    for kind, path, said, obj in fields(definitions):
        named = references.of(obj)
        found = {key.kind for key in named.stated | named.by_field}
        words = "".join(said[-3:]).lower().replace(" ", "").replace("-", "")
        unsaid = {one for one in found if one.lower().removeprefix("cluster") not in words}
        right += len(found - unsaid)
        wrong |= {(kind, path, one) for one in unsaid if not is_judged(path, one)}
        if not (found or named.accounts) and NAMES.search(said[-2] if path[-1] == "name" else said[-1]):
            missed.add((kind, path))
    assert not wrong
    assert not missed
    assert right > 500


def is_judged(path: Path, kind: str) -> bool:
    return any(f".{'.'.join(path)}".endswith(f".{end}") and kind == of for end, of in JUDGED)


def fields(definitions: list[Object]) -> Iterator[tuple[str, Path, list[str], Object]]:
    """Each field for a text: its kind, its path, what is said of it and of those around it, and an object that has it alone."""
    for crd in definitions:
        kind = defined_by(crd)
        for version in crd["spec"]["versions"]:
            api_version = f"{kind.group}/{version['name']}"
            made = {"apiVersion": api_version, "kind": kind.kind, "metadata": {"name": "own", "namespace": "blue"}}
            for path, said in texts(version["schema"]["openAPIV3Schema"], (), [""]):
                if path[0] not in ("apiVersion", "kind", "metadata", "status") and path[-1] not in ("key", "namespace"):
                    yield kind.kind, path, said, made | with_text(path)


def texts(schema: Any, path: Path, said: Sequence[str]) -> Iterator[tuple[Path, list[str]]]:
    """Without those of a fixed set; a name beside a kind says nothing by itself."""
    several = [*said, schema.get("description", "")]
    properties = schema.get("properties", {})
    for name, inner in properties.items():
        if not (name == "name" and "kind" in properties):
            yield from texts(inner, (*path, name), several)
    for step, inner in (("*", schema.get("additionalProperties")), ("[]", schema.get("items"))):
        if isinstance(inner, dict):
            yield from texts(inner, (*path, step), several)
    if schema.get("type") == "string" and "enum" not in schema:
        yield path, several


def with_text(path: Path) -> Any:
    value: Any = "x"
    for step in reversed(path):
        value = [value] if step == "[]" else {step: value}
    return value
