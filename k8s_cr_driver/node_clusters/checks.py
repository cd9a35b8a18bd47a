# SPDX-License-Identifier: Apache-2.0
"""What a value of a request may be. A check returns what is wrong with it, in words that follow its path; "" if it is right."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from k8s_cr_driver.objects.fields import similar, type_name
from k8s_cr_driver.ssh import host_keys

Check = Callable[[Any], str]
Table = Mapping[str, Check]
"""The fields of a mapping, each with its check."""
PATHS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_VERSION = re.compile(r"v?1\.\d{1,3}\.\d{1,3}")


def fields(
    where: str, table: Table, given: Mapping[str, Any], required: Iterable[str] = (), *, may_have_others: bool = False
) -> Iterator[str]:
    """What is wrong with the fields of a mapping, each with its path below `where`."""
    for key in () if may_have_others else sorted(given.keys() - table.keys()):
        hint = similar(str(key), table)
        yield f"{where}.{key}: is not a parameter" + (f"; is it {hint}?" if hint else "")
    missing = [key for key in required if not given.get(key)]
    for key, check in table.items():
        if key in given and key not in missing and (wrong := check(given[key])):
            yield f"{where}.{key}: {wrong}"
    for key in missing:
        yield f"{where}.{key}: is missing"


def is_text(value: Any) -> str:
    return "" if isinstance(value, str) else f"must be text, not {type_name(value)}"


def is_name(value: Any) -> str:
    return "" if isinstance(value, str) and _NAME.fullmatch(value) else "must be a name"


def is_name_or_none(value: Any) -> str:
    return "" if value == "" else is_name(value)


def is_user(value: Any) -> str:
    return "" if isinstance(value, str) and _USER.fullmatch(value) else "must be the name of a user of the servers"


def is_network(value: Any) -> str:
    try:
        ipaddress.ip_network(value, strict=False)
    except (ValueError, TypeError):
        return "must be a network, such as 192.168.0.0/16"
    return "" if isinstance(value, str) and "/" in value else "must be a network, such as 192.168.0.0/16"


def is_version(value: Any) -> str:
    return "" if value == "" or (isinstance(value, str) and _VERSION.fullmatch(value)) else "must be a version, such as 1.36.3"


def is_inside(path: str) -> bool:
    """Whether a path stays in the package."""
    return bool(path) and not path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def is_path(value: Any) -> str:
    return "" if value == "" or (isinstance(value, str) and is_inside(value)) else "must be a path in the package"


def are_paths(value: Any) -> str:
    is_right = isinstance(value, list) and len(value) <= PATHS and all(isinstance(one, str) and is_inside(one) for one in value)
    return "" if is_right else f"must be a list of paths in the package, of {PATHS} at most"


def are_keys(value: Any) -> str:
    is_right = isinstance(value, list) and all(isinstance(one, str) and host_keys.public_key(one) for one in value)
    return "" if is_right else "must be a list of public keys of SSH, such as `ssh-ed25519 AAAA...`"


def is_address(value: Any) -> str:
    """One that a server can have: 0.0.0.0 stands in the specification's example."""
    try:
        is_right = isinstance(value, str) and not ipaddress.ip_address(value).is_unspecified
    except ValueError:
        is_right = False
    return "" if is_right else "must be the IP address of a server"


def between(least: int, most: int) -> Check:
    def check(value: Any) -> str:
        return "" if type(value) is int and least <= value <= most else f"must be an integer from {least} to {most}"

    return check
