# SPDX-License-Identifier: Apache-2.0
"""
The manifest files of a package -> objects, checked as far as no cluster is needed.

Every problem is one InvalidPackage that names the file, the document, the object, the field and the remedy, and never a
value of a Secret. Objects are returned as they will be applied: lists flattened, parameters filled in, the server's own
fields removed, Secrets without `stringData`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects.api_groups import REVIEWS
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import similar, type_name
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, kind_of, split
from k8s_cr_driver.package import health_rules, names, normal_form, reserved_marks
from k8s_cr_driver.package.documents import DocumentError, documents
from k8s_cr_driver.package.files import SIZE_LIMIT, Fetch, no_url, read, shown
from k8s_cr_driver.package.limits import Budget, Limits, check_paths
from k8s_cr_driver.package.limits import check as check_limits
from k8s_cr_driver.package.limits import values as value_budget
from k8s_cr_driver.package.merge_keys import repeated_merge_keys

Scope = Callable[[GroupKind, str], bool | None]
"""(kind, version) -> whether its objects live in namespaces; None: the cluster does not know it."""

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_LABEL = "write up to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends"
_NAME = re.compile(r"[^/%\s\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]{1,253}")
_API_VERSION = re.compile(r"([A-Za-z0-9][-A-Za-z0-9.]{0,252}/)?[a-z0-9]{1,63}")
_LONGEST_KIND = 253
"""Characters, far more than the API server allows: a list may give a kind to each of its many entries."""

_LONGEST_FILE = 1024
"""Characters of a file's name. Each object is known by it, and a request may write `./` in it without end."""


@dataclasses.dataclass
class Report:
    """What is wrong with single documents, in place of an error for the first of them; and where each object is written."""

    problems: list[str] = dataclasses.field(default_factory=list)
    repeated: list[tuple[ObjectKey, str, str]] = dataclasses.field(default_factory=list)
    """(object, where it is written first, and again)."""
    warnings: list[str] = dataclasses.field(default_factory=list)
    sources: list[tuple[Object, str]] = dataclasses.field(default_factory=list)

    def refused(self, error: InvalidPackage) -> None:
        self.problems.append(str(error))


def load(
    root: Path,
    files: Sequence[str],
    *,
    fill: Callable[[Any], Any] = lambda value: value,
    fetch: Fetch = no_url,
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    in_place: bool = False,
    rules_file: str = health_rules.FILE,
    warn: Callable[[str], None] = lambda text: None,
    report: Report | None = None,
) -> list[Object]:
    """
    The objects of `files`, in the order in which they are written.

    `in_place`: they are on the cluster already, so that entries of a list may repeat a merge key, as a create allows.

    `files` are paths below `root`, the unpacked CSAR, and https URLs, whose content `fetch` returns. `fill` is given
    each object as it was parsed and returns it with the parameters filled in (`substitution.filler`).
    `rules_file`: see `health_rules.file`. `warn` is given a sentence for each mistake in a rule that can be read. `report`
    takes what is wrong with single documents, and the others are returned.
    Raises InvalidPackage, and InvalidRequest for a URL with credentials. Follow with `place` and `schema.check`.
    """
    if not files:
        raise InvalidPackage("lcm-kubernetes-def-files names no file; name at least one manifest of the package")
    objects: dict[ObjectKey, Object] = {}
    sources: dict[ObjectKey, str] = {}
    refused = report.refused if report else _raised
    size, budget = 0, value_budget()
    rules = health_rules.Rules(root, files, rules_file, warn)
    for name in [*files, *health_rules.unnamed(root, files, rules_file)]:
        content = _content(root, name, fetch)
        size += len(content)
        if size > SIZE_LIMIT:
            raise InvalidPackage(f"{shown(name)}: the manifests are larger than {SIZE_LIMIT // 1024**2} MiB together")
        for source, raw in written(shown(name), content, budget, refused=refused):
            try:
                if not rules.take(raw, source, name):
                    _add(objects, sources, _prepared(raw, source, fill, in_place=in_place), source, report)
            except InvalidPackage as error:
                refused(error)
    found = list(objects.values())
    if report:
        report.sources += [(obj, sources[key]) for key, obj in objects.items()]
    if not (found or rules.of_kinds or report):
        raise InvalidPackage(f"{', '.join(map(shown, files))}: no object is written there; add one, or name other files")
    rules.write_to(found)
    check_limits(found, limits)
    return found


def _add(
    objects: dict[ObjectKey, Object], sources: dict[ObjectKey, str], obj: Object, source: str, report: Report | None
) -> None:
    key = key_of(obj)
    if key not in objects:
        objects[key], sources[key] = obj, source
    elif report:
        report.repeated.append((key, sources[key], source))
    else:
        raise InvalidPackage(f"{key} is written twice: {sources[key]} and {source}; remove one of them")


def is_namespace(name: str) -> bool:
    """Whether a Namespace can have this name."""
    return _NAMESPACE.fullmatch(name) is not None


def place(objects: Iterable[Object], scope_of: Scope, default: str = "default") -> None:
    """
    Give every object its namespace, in place: its own, else `default`; none to objects of the cluster.

    A namespace written into an object of the cluster is dropped, as the API server does. The package's own
    CustomResourceDefinitions say the scope of their kinds; `scope_of` is asked for the rest. Raises InvalidPackage for
    a kind that nobody knows and for two documents that become one object, InvalidRequest for a bad `default`.
    """
    if not is_namespace(default):
        raise InvalidRequest(f"additionalParams.namespace: {default!r} is not a DNS label; {_DNS_LABEL}")
    objects = list(objects)
    crds = crds_of(objects)
    unknown: list[Object] = []
    placed: set[ObjectKey] = set()
    for obj in objects:
        kind, version = kind_of(obj), split(obj["apiVersion"])[1]
        crd = crds.get(kind)
        namespaced = crd["spec"].get("scope") != "Cluster" if crd else scope_of(kind, version)
        if namespaced is None:
            unknown.append(obj)
        elif namespaced:
            obj["metadata"]["namespace"] = obj["metadata"].get("namespace") or default
        else:
            obj["metadata"].pop("namespace", None)
        if key_of(obj) in placed:
            raise InvalidPackage(f"{key_of(obj)} is written twice, once without its namespace; remove one of them")
        placed.add(key_of(obj))
    if unknown:
        raise InvalidPackage(
            f"unknown kind: {'; '.join(_unknown(obj, crds) for obj in unknown[:10])}. Install its "
            "CustomResourceDefinition on the cluster, or add it to the package; if it is there, check the apiVersion"
        )


def foreign_kinds(objects: Iterable[Object]) -> set[tuple[GroupKind, str]]:
    """(kind, version) of the objects of kinds that they do not define themselves: what the cluster has to serve."""
    objects = list(objects)
    crds = crds_of(objects)
    return {(kind_of(obj), split(obj["apiVersion"])[1]) for obj in objects if kind_of(obj) not in crds}


def _unknown(obj: Object, crds: Iterable[GroupKind]) -> str:
    near = similar(str(kind_of(obj)), map(str, crds), cutoff=0.8)
    guess = f", did you mean {near}?" if near else ""
    return f"{obj['apiVersion']} {obj['kind']} (object {obj['metadata']['name']}){guess}"


def _content(root: Path, name: str, fetch: Fetch) -> bytes:
    content = read(root, name, fetch=fetch)
    if len(shown(name)) > _LONGEST_FILE:
        raise InvalidRequest(f"lcm-kubernetes-def-files: an entry has more than {_LONGEST_FILE:,} characters; shorten it")
    return content


def _raised(error: InvalidPackage) -> None:
    raise error


def written(
    name: str, content: bytes, budget: Budget, *, refused: Callable[[InvalidPackage], None] = _raised
) -> Iterator[tuple[str, Object]]:
    """(where it is written, object) of every object in one file, lists flattened.

    `refused` takes the error for what is no object, and raises it unless the following ones are wanted.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        refused(InvalidPackage(f"{name}, line {line}: is not UTF-8; manifests are UTF-8 text"))
        return
    try:
        for number, value in _counted(name, text, budget):
            try:
                yield from _flattened(value, f"{name}, document {number}")
            except InvalidPackage as error:
                refused(error)
    except DocumentError as error:
        line_text = f", line {error.line}" if error.line else ""
        refused(InvalidPackage(f"{name}, document {error.document}{line_text}: {error}"))


def _counted(name: str, text: str, budget: Budget) -> Iterator[tuple[int, Any]]:
    """The documents of a file, whose name is in the error if they are too much."""
    try:
        yield from documents(text, budget)
    except InvalidPackage as error:
        raise InvalidPackage(f"{name}: {error}") from None


def _flattened(value: Any, source: str) -> Iterator[tuple[str, Object]]:
    if not isinstance(value, dict):
        what = "a list; write each object as a document of its own" if isinstance(value, list) else "no object"
        raise InvalidPackage(f"{source}: is {what}; a manifest is a mapping with apiVersion, kind and metadata")
    kind, items = value.get("kind"), value.get("items")
    if kind == "List" and not isinstance(items, list):
        raise InvalidPackage(f"{source}: items: is {type_name(items)}, must be a list of objects")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield source, value
        return
    # Entries of a typed list, as an API server returns it, do not name their kind.
    said = {} if kind == "List" else {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in enumerate(items):
        yield from _flattened({**said, **item} if isinstance(item, dict) else item, f"{source}, items[{index}]")


def _prepared(raw: Object, source: str, fill: Callable[[Any], Any], *, in_place: bool) -> Object:
    try:
        check_paths(raw)
        obj: Object = fill(raw)
        _name_review(obj)
        check_identity(obj)
        names.check(obj)
        source = f"{source}, {obj['kind']} {'/'.join(filter(None, key_of(obj)[2:]))}"
        normal_form.bring(obj)
        reserved_marks.check(obj)
        for field, key in () if in_place else repeated_merge_keys(obj):
            raise InvalidPackage(f"{field}: another entry of this list has the same {key}; the API server refuses that")
    except InvalidPackage as error:
        raise InvalidPackage(f"{source}: {error}") from None
    return obj


def _name_review(obj: Object) -> None:
    """Names a review by its spec, because it need not have a name, nor metadata at all."""
    if str(obj.get("apiVersion")).partition("/")[0] not in REVIEWS:
        return
    metadata = obj.setdefault("metadata", {})
    if isinstance(metadata, dict) and isinstance(obj.get("kind"), str):
        asked = hashlib.sha256(repr(obj.get("spec")).encode()).hexdigest()
        metadata.setdefault("name", f"{obj['kind'].lower()}-{asked[:10]}")


def check_identity(obj: Object) -> None:
    """InvalidPackage for an object without apiVersion, kind and name, or with one that is none."""
    api_version, kind, metadata = obj.get("apiVersion"), obj.get("kind"), obj.get("metadata")
    if not (isinstance(api_version, str) and _API_VERSION.fullmatch(api_version)):
        raise InvalidPackage("apiVersion: is missing or no API version; write one such as v1 or apps/v1")
    if not (isinstance(kind, str) and len(kind) <= _LONGEST_KIND and kind.isalnum()):
        raise InvalidPackage("kind: is missing or no name of a kind; write one such as ConfigMap")
    if not isinstance(metadata, dict):
        raise InvalidPackage(f"metadata: is missing in this {kind}; give it at least a name")
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if name is None and "generateName" in metadata:
        raise InvalidPackage(
            f"metadata.generateName: is not possible in this {kind}: an operation that is tried again could not find "
            "the object that it created; write metadata.name"
        )
    if not (isinstance(name, str) and _NAME.fullmatch(name)) or name in (".", ".."):
        raise InvalidPackage(
            f"metadata.name: is missing in this {kind}, or no name: text of at most 253 characters without /, % and control "
            "characters"
        )
    if namespace and not (isinstance(namespace, str) and is_namespace(namespace)):
        raise InvalidPackage(f"metadata.namespace: of {kind} {name} is not a DNS label; {_DNS_LABEL}")
