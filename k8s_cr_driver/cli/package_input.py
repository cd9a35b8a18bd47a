# SPDX-License-Identifier: Apache-2.0
"""A package as the commands read it: a folder or a CSAR, with parameters from the command line.

A parameter without a value gets a sample of its type, so that a package can be checked before it is used.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from k8s_cr_driver import redaction
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.fields import text, type_name
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, kind_of, split
from k8s_cr_driver.package import (
    builtin,
    health_rules,
    helm_hooks,
    manifests,
    parameters,
    samples,
    substitution,
    tosca_meta,
    vnfd,
)

SIZE_LIMIT = 1024**3
"""Bytes of an unpacked CSAR."""
FILES_LIMIT = 20_000
REQUEST = "request.json"
"""A request for an instantiate that a package may have."""
_REQUEST_LIMIT = 1024 * 1024
_DAMAGED = (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, struct.error, zlib.error, lzma.LZMAError)
"""What zipfile raises for files that are no zip files, or damaged ones."""


WANTED = "give the folder with TOSCA-Metadata/TOSCA.meta, or a CSAR file"


class PackagePath(click.Path):
    """A folder or a CSAR file."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of what exists."""
        if not Path(value).exists():
            self.fail(f"{value} does not exist; {WANTED}", param, ctx)
        return super().convert(value, param, ctx)


def body(request: Path) -> dict[str, Any]:
    """The body of a request, a file of JSON. Raises InvalidRequest."""
    try:
        with request.open(encoding="utf-8") as file:
            found = json.loads(file.read(_REQUEST_LIMIT))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"{request}: cannot be read as JSON: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise InvalidRequest(f"{request}: must be a mapping, not {type_name(found)}")
    return found


def with_namespace(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --namespace, which is None if it is not given; see `requested`."""
    about = "For objects that name none; else that of request.json in the package, else default."
    return click.option("--namespace", metavar="NAME", help=about)(command)


def requested(folder: Path) -> str:
    """The namespace that the request.json of a package names, as `init` writes it; else `default`."""
    return text(request_of(folder), "additionalParams", "namespace") or "default"


def dns_label(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """A callback for the name of an instance or a Namespace."""
    if name is not None and not manifests.is_namespace(name):
        raise click.BadParameter(f"{name!r}: give up to 63 small letters, digits and hyphens", context, parameter)
    return name


def label_of(path: Path) -> str:
    """The name of a package's folder or file as a DNS label."""
    name = path.resolve().name.lower().removesuffix(".csar").removesuffix(".zip")
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:63].strip("-") or "vnf"


def request_of(folder: Path) -> dict[str, Any]:
    """The request.json of a package; empty if it has none, or one that is no request."""
    path = folder / REQUEST
    try:
        return body(path) if path.is_file() else {}  # a named pipe has no end
    except InvalidRequest:
        return {}


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The folder of a package; a CSAR is unpacked for the duration. Raises InvalidPackage."""
    if path.is_dir():
        tosca_meta.check_links(path)
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="k8s-cr-") as folder:
        try:
            with zipfile.ZipFile(path) as csar:
                entries = csar.infolist()
                if len(entries) > FILES_LIMIT:
                    raise InvalidPackage(f"{path}: has more than {FILES_LIMIT:,} files, the limit")
                if sum(entry.file_size for entry in entries) > SIZE_LIMIT:
                    raise InvalidPackage(f"{path}: is larger than {SIZE_LIMIT // 1024**3} GiB unpacked")
                csar.extractall(folder)
        except _DAMAGED as error:
            raise InvalidPackage(f"{path}: is neither a folder nor a CSAR file: {error}; {WANTED}") from None
        yield Path(folder)


def load(
    folder: Path,
    given: Mapping[str, str],
    files: Sequence[str] = (),
    *,
    requested: Mapping[str, Any] | None = None,
    lenient: bool = False,
    all_hooks: bool = False,
    warn: Callable[[str], None] = lambda text: None,
) -> list[Object]:
    """
    The objects of a package with the parameters `given`. Raises InvalidPackage.

    `requested` are parameters in their types, as a request has them; those `given` come first.
    `lenient`: what the package does not declare is left out, and a sample stands for what it needs besides. `all_hooks`: with
    the hooks of Helm that an operation leaves out. `warn`: see `manifests.load`.
    """
    contents = vnfd.definitions(folder)
    declared, rules_file = parameters.declared(contents), health_rules.file(contents)
    if lenient:
        values, _ = with_samples(declared, {name: text for name, text in given.items() if name in declared})
    else:
        values = parameters.resolve(declared, {**(requested or {}), **_typed(declared, given)})
    names = list(files) or tosca_meta.manifest_files(folder) or health_rules.unnamed(folder, [], rules_file)
    fill = substitution.filler(declared, values)
    objects = manifests.load(folder, names, fill=fill, rules_file=rules_file, warn=warn) if names else []
    return objects if all_hooks else helm_hooks.applied(objects)


def with_samples(
    declared: Mapping[str, parameters.Declaration], given: Mapping[str, str], requested: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The values of all parameters, and the names of those for which samples stand. Raises InvalidRequest."""
    typed = {**(requested or {}), **_typed(declared, given)}
    missing = [name for name, one in declared.items() if one.must_be_given and name not in typed]
    if unknown := {name: value for name, value in typed.items() if name not in declared}:
        parameters.resolve(declared, unknown)  # its error names the similar one
    values = parameters.resolve({name: one for name, one in declared.items() if name not in missing}, typed)
    return values | {name: samples.sample(declared[name]) for name in missing}, missing


def _typed(declared: Mapping[str, parameters.Declaration], given: Mapping[str, str]) -> dict[str, Any]:
    return {name: _value(text, declared[name]) if name in declared else text for name, text in given.items()}


def _value(text: str, declared: parameters.Declaration) -> Any:
    """The text as a value of the parameter's type; a secret parameter is NAME/KEY of a Secret."""
    if declared.secret:
        name, slash, key = text.partition("/")
        if not slash:
            raise InvalidRequest(f"--param {declared.name}: is secret; give SECRET/KEY, the name of a Secret and its key")
        return {"secretRef": {"name": name, "key": key}}
    if declared.type == "string":
        return text
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return text


def place(objects: Sequence[Object], namespace: str) -> set[GroupKind]:
    """Sets the objects' namespaces as far as possible without a cluster; returns the kinds whose scope only a cluster knows."""
    unknown: set[GroupKind] = set()

    def scope_of(kind: GroupKind, version: str) -> bool | None:
        if not is_builtin(kind):
            unknown.add(kind)
            return True
        return builtin.is_namespaced(kind, version)

    if wrong := [text for _, text in not_served(objects)]:
        raise InvalidPackage(redaction.lines(wrong))
    manifests.place(objects, scope_of, namespace)
    return unknown


def not_served(objects: Sequence[Object]) -> Iterator[tuple[ObjectKey, str]]:
    """(object, sentence) for each object of a kind, or a version, that Kubernetes does not have, or has no longer."""
    defined = crds_of(objects)
    for obj in objects:
        kind, version = kind_of(obj), split(obj["apiVersion"])[1]
        if kind in defined or not (is_builtin(kind) or builtin.is_none_of_crds(kind)):
            continue
        if builtin.is_namespaced(kind, version) is None and (other := builtin.instead(kind)):
            what = f"{obj['apiVersion']} {obj['kind']}"
            text = f"apiVersion: Kubernetes {builtin.release()} does not serve {what}; write {other}"
            yield key_of(obj), f"{key_of(obj)}: {text}"
