# SPDX-License-Identifier: Apache-2.0
"""The sections `storage_server` and `pv_registration_params`, with the names of the specification.

Either may be without the other.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.node_clusters import checks
from k8s_cr_driver.objects.fields import entries, mapping, text, type_name

SERVER, VOLUMES, EXPORTS = "storage_server", "cinder_volume_setup_params", "nfs_server_setup_params"
REGISTRATIONS = "pv_registration_params"
SECTIONS = (SERVER, REGISTRATIONS)
KERNEL, GANESHA = "kernel", "ganesha"
COUNT = 100
"""Entries of each list."""
_FOLDER = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*){1,16}")


@dataclass(frozen=True)
class Volume:
    """A Cinder volume of the template, and where it is mounted."""

    resource: str
    mount_to: str


@dataclass(frozen=True)
class Export:
    """A directory on a volume, and the networks whose hosts may mount it."""

    directory: str
    networks: tuple[str, ...]

    def is_for(self, address: str) -> bool:
        """Whether a host with this address may mount it."""
        return any(ipaddress.ip_address(address) in ipaddress.ip_network(one) for one in self.networks)


@dataclass(frozen=True)
class Server:
    """The storage server."""

    ssh_cp_name: str
    username: str
    password: str = field(repr=False)
    nfs_server: str
    """KERNEL or GANESHA."""
    volumes: tuple[Volume, ...]
    exports: tuple[Export, ...]


@dataclass(frozen=True)
class Registration:
    """A manifest of the package with PersistentVolumes, and the port whose address they get."""

    path: str
    server_cp: str


@dataclass(frozen=True)
class Storage:
    """What a request says of persistent volumes; empty if it says nothing."""

    server: Server | None = None
    registrations: tuple[Registration, ...] = ()
    force: bool = False
    """Of this request only: volumes that are in use go all the same."""

    def __bool__(self) -> bool:
        return self.server is not None or bool(self.registrations)


def read(merged: Mapping[str, Any]) -> Storage:
    """Of parameters without `problems`."""
    given, listed = mapping(merged, SERVER), entries(merged, REGISTRATIONS)
    found = tuple(Registration(one["pv_manifest_file_path"], one["nfs_server_cp"]) for one in listed)
    return Storage(_server(given) if given else None, found, given.get("force") is True)


def problems(merged: Mapping[str, Any]) -> Iterator[str]:
    """Each begins with the path below the parameter."""
    given = merged.get(SERVER)
    if isinstance(given, Mapping):
        yield from checks.fields(f".{SERVER}", _SERVER, given, ("ssh_cp_name", "username"))
        wrong = [_rows(f".{SERVER}.{name}", table, given.get(name), least=1) for name, table in _LISTS.items()]
        yield from [problem for one in wrong for problem in one] or _places(given)
    elif given is not None:
        yield f".{SERVER}: must be a mapping, not {type_name(given)}"
    yield from _rows(f".{REGISTRATIONS}", _REGISTRATION, merged.get(REGISTRATIONS, []), least=0)


def _server(given: Mapping[str, Any]) -> Server:
    networks: dict[str, dict[str, None]] = {}
    for one in entries(given, EXPORTS):
        networks.setdefault(one["export_dir"], {})[str(ipaddress.ip_network(one["export_to"], strict=False))] = None
    return Server(
        text(given, "ssh_cp_name"),
        text(given, "username"),
        text(given, "password"),
        text(given, "nfs_server") or KERNEL,
        tuple(Volume(one["volume_resource_id"], one["mount_to"]) for one in entries(given, VOLUMES)),
        tuple(Export(directory, tuple(found)) for directory, found in networks.items()),
    )


def _rows(where: str, table: checks.Table, given: Any, least: int) -> Iterator[str]:
    """What is wrong with a list of mappings, all of whose fields are needed."""
    if not isinstance(given, list) or not least <= len(given) <= COUNT:
        yield f"{where}: must be a list of {least} to {COUNT} mappings"
        return
    for number, row in enumerate(given):
        if isinstance(row, Mapping):
            yield from checks.fields(f"{where}[{number}]", table, row, table)
        else:
            yield f"{where}[{number}]: must be a mapping, not {type_name(row)}"


def _places(given: Mapping[str, Any]) -> Iterator[str]:
    """Of two lists that are right each, what is wrong between them."""
    volumes, mounts = ([one[key] for one in given[VOLUMES]] for key in ("volume_resource_id", "mount_to"))
    for name, values in (("volume_resource_id", volumes), ("mount_to", mounts)):
        for value in sorted({value for value in values if values.count(value) > 1}):
            yield f".{SERVER}.{VOLUMES}: several have the {name} {value}"
    for number, one in enumerate(given[EXPORTS]):
        if not any(is_below(one["export_dir"], mount) for mount in mounts):
            where = f".{SERVER}.{EXPORTS}[{number}].export_dir"
            yield f"{where}: {one['export_dir']} is on none of the volumes, which are mounted to {', '.join(mounts)}"


def is_below(path: str, folder: str) -> bool:
    """Whether a path is `folder`, or in it."""
    return f"{path}/".startswith(f"{folder}/")


def _is_folder(value: Any) -> str:
    return "" if isinstance(value, str) and _FOLDER.fullmatch(value) else "must be an absolute path, such as /volume/nfs"


def _is_server(value: Any) -> str:
    return "" if value in (KERNEL, GANESHA) else f"must be {KERNEL} or {GANESHA}"


def _is_truth(value: Any) -> str:
    return "" if isinstance(value, bool) else f"must be true or false, not {type_name(value)}"


_LISTS: Mapping[str, checks.Table] = {
    VOLUMES: {"volume_resource_id": checks.is_name, "mount_to": _is_folder},
    EXPORTS: {"export_dir": _is_folder, "export_to": checks.is_network},
}
_SERVER: checks.Table = {
    "ssh_cp_name": checks.is_name,
    "nic_cp_name": checks.is_name,
    "username": checks.is_user,
    "password": checks.is_text,
    "nfs_server": _is_server,
    "force": _is_truth,
    **dict.fromkeys(_LISTS, lambda _: ""),
}
_REGISTRATION: checks.Table = {"pv_manifest_file_path": checks.is_path, "nfs_server_cp": checks.is_name}
