# SPDX-License-Identifier: Apache-2.0
"""The PersistentVolumes of a package, with the address of the storage server in place of the one in the file."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.node_clusters.storage.parameters import Storage, is_below
from k8s_cr_driver.objects.fields import mapping, text, type_name
from k8s_cr_driver.package.documents import DocumentError, documents

ANNOTATION = "k8s-cr-driver/node-cluster-volume"
"""Of a PersistentVolume that this driver has applied: the digest of what it applied."""


@dataclass(frozen=True)
class PersistentVolume:
    """One that the cluster has to have."""

    name: str
    server: str
    path: str
    digest: str
    manifest: str = field(repr=False)
    """As kubectl gets it: JSON."""


def read(given: Storage, texts: Mapping[str, str], addresses: Mapping[str, str]) -> list[PersistentVolume]:
    """
    Of all registrations, whose files `texts` has by their paths.

    Raises InvalidPackage for a file that has anything else, and for a directory that the storage server does not export.
    """
    found: dict[str, PersistentVolume] = {}
    for registration in given.registrations:
        for where, document in _documents(registration.path, texts[registration.path]):
            one = _volume(where, document, addresses[registration.server_cp])
            if given.server and not any(is_below(one.path, export.directory) for export in given.server.exports):
                listed = ", ".join(export.directory for export in given.server.exports)
                raise InvalidPackage(f"{where}: spec.nfs.path {one.path} is not exported by the storage server, but {listed}")
            if one.name in found:
                raise InvalidPackage(f"{where}: metadata.name {one.name} is that of another PersistentVolume; names are unique")
            found[one.name] = one
    return list(found.values())


def _documents(path: str, content: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    count = 0
    try:
        for number, document in documents(content):
            where = f"{path}, document {number}"
            if not isinstance(document, dict):
                raise InvalidPackage(f"{where}: must be an object, not {type_name(document)}")
            yield where, document
            count += 1
    except DocumentError as error:
        line = f", line {error.line}" if error.line else ""
        raise InvalidPackage(f"{path}, document {error.document}{line}: {error}") from None
    if not count:
        raise InvalidPackage(f"{path}: is empty, and has to have a PersistentVolume")


def _volume(where: str, document: Mapping[str, Any], address: str) -> PersistentVolume:
    if (document.get("apiVersion"), document.get("kind")) != ("v1", "PersistentVolume"):
        raise InvalidPackage(f"{where}: must be a PersistentVolume of v1; other objects belong to `manifests`")
    name, path = text(document, "metadata", "name"), text(document, "spec", "nfs", "path")
    if not name or not path.startswith("/"):
        raise InvalidPackage(f"{where}: needs metadata.name, and spec.nfs.path with a directory of the storage server")
    given = copy.deepcopy(dict(document))
    given["spec"]["nfs"]["server"] = address
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
    given["metadata"]["annotations"] = {**mapping(given, "metadata", "annotations"), ANNOTATION: digest}
    return PersistentVolume(name, address, path, digest, json.dumps(given))
