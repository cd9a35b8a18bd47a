# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the driver's options in the files of tacker.conf.

oslo.config ignores a name that nobody has registered, and reads a value only when somebody asks for it. So a misspelt
`denied_namespaces` would deny nothing, and nobody would see it. Only groups of this driver are judged, and what is nearly one.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from oslo_config import cfg, iniparser

from k8s_cr_driver.credentials import secrets
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.endpoint import is_plain
from k8s_cr_driver.lcm.options import GROUPS, OPTIONS
from k8s_cr_driver.objects.fields import similar
from k8s_cr_driver.package import scripts
from k8s_cr_driver.resources.health import operator_rules

_NEEDED = {
    "k8s_cr_receiver": ("url", "hmac_key_file"),
    "k8s_cr_ssh_key": ("private_key", "hosts", "keystone", "projects"),
    "k8s_cr_vim_cloud": ("clouds_file", "keystone", "projects"),
    "k8s_cr_load_balancer": ("address", "username", "private_key", "projects"),
}
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_KIND = re.compile(r"[\w*?.\[\]-]+")
_NAMESPACE = re.compile(r"[a-z0-9*?\[\]-]+")


class Found(NamedTuple):
    """What the files say of an option: the file that counts, and its value there as text."""

    file: Path
    value: str


def files(config: cfg.ConfigOpts) -> list[Path]:
    """Those that a process has read its options from."""
    folders = [path for folder in config.config_dirs for path in sorted(Path(folder).glob("*.conf"))]
    return [*map(Path, config.config_file or ()), *folders]


def mistakes(paths: Iterable[Path]) -> list[str]:
    """A line for each mistake, with file, group, option and remedy; a later file replaces options of an earlier one."""
    found: list[str] = []
    groups: dict[str, dict[str, Found]] = {}
    where: dict[str, Path] = {}
    for path in paths:
        sections: dict[str, dict[str, list[str]]] = {}
        try:
            cfg.ConfigParser(str(path), sections).parse()
        except iniparser.ParseError as error:  # its text has the line, which may be a password
            found.append(f"{path}: line {error.lineno} is neither [GROUP], nor NAME = VALUE, nor a comment")
        except (OSError, UnicodeDecodeError) as error:
            found.append(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}")
        for group, options in sections.items():
            where.setdefault(group, path)
            groups.setdefault(group, {}).update({name: Found(path, values[-1]) for name, values in options.items()})
    for group, values in groups.items():
        found += [f"{file}: [{group}]{text}" for file, text in _of_group(group, values, where[group])]
    return found


def _of_group(group: str, values: Mapping[str, Found], file: Path) -> Iterator[tuple[Path, str]]:
    begin, colon, name = group.partition(":")
    if begin not in GROUPS:
        if near := similar(begin.lower(), GROUPS, 0.8):
            yield file, f": there is no such group, so it has no effect; did you mean [{near}{colon}{name}]?"
        return
    if not name and begin != "k8s_cr":
        yield file, f": has no name; write [{begin}:NAME]"
        return
    if begin == "k8s_cr_receiver" and not _NAME.fullmatch(name):
        yield file, ": its name must have lower-case letters, digits and -"
    options = {option.dest: option for option in (GROUPS[begin] if name else OPTIONS)}
    for option, (path, value) in values.items():
        if option in options:
            yield from ((path, f" {option}: {text}") for text in _of_option(options[option], value))
        elif name and begin == "k8s_cr" and option in (one.dest for one in OPTIONS):
            yield path, f" {option}: has no effect here; it holds for all, in [k8s_cr]"
        else:
            near = similar(option, options)
            yield path, f" {option}: there is no such option, so it has no effect{f'; did you mean {near}?' if near else ''}"
    for option in _NEEDED.get(begin, ()):
        if option not in values:
            yield file, f" {option}: is missing"


def _of_option(option: cfg.Opt, text: str) -> Iterator[str]:
    try:
        value = option.type(text)
    except ValueError as error:
        yield f"{error}"
        return
    if (check := _CHECKS.get(option.dest)) and value and "$" not in text:  # oslo.config puts options in place of $NAME
        for one in value if isinstance(value, list) else [value]:
            yield from check(one)


def _host(one: str) -> Iterator[str]:
    """Of a name with `*`, an address or a network."""
    if "#" in one or any(map(str.isspace, one)):
        yield f"{one!r} is no name, address or network; a comment stands on a line of its own"
    elif "://" in one:
        yield f"{one!r} is a URL; write its host alone"
    elif "/" in one:
        yield from _network(one)
    elif re.fullmatch(r"[^:]+:\d+", one):
        yield f"{one!r} has a port; write the host alone"


def _network(one: str) -> Iterator[str]:
    try:
        network = ipaddress.ip_network(one, strict=False)
    except ValueError:
        yield f"{one!r} is no network, such as 10.20.0.0/16"
        return
    if str(network.network_address) != str(ipaddress.ip_address(one.partition("/")[0])):
        yield f"{one!r} is an address in a network; write {network} for all of it"


def _kind(one: str) -> Iterator[str]:
    if not _KIND.fullmatch(one):
        yield f"{one!r} is no kind; write Kind or Kind.group, such as Deployment.apps, with * for any part"


def _namespace(one: str) -> Iterator[str]:
    if not _NAMESPACE.fullmatch(one):
        yield f"{one!r} is no name of a namespace, with * for any part"


def _https(one: str) -> Iterator[str]:
    if not (one.startswith("https://") and is_plain(one)):
        yield f"{one!r} is no https URL with a host, such as https://receiver.example.com:8443/"


def _url(one: str) -> Iterator[str]:
    if not is_plain(one):
        yield f"{one!r} is no URL with a host, such as https://keystone.example.com/v3"


def _rules(folder: str) -> Iterator[str]:
    yield from _refusal(lambda: operator_rules.read(Path(folder)))


def _file(path: str) -> Iterator[str]:
    """That this user can read a file."""
    try:
        Path(path).open("rb").close()
    except OSError as error:
        yield f"{path}: {error.strerror}; the conductor's user must be able to read it"


def _certificate(path: str) -> Iterator[str]:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        yield f"{path}: is no certificate as PEM"
    except OSError:
        yield from _file(path)


def _secret(path: str) -> Iterator[str]:
    if (unreadable := list(_file(path))) or not Path(path).stat().st_mode & stat.S_IROTH:
        yield from unreadable
    else:
        yield f"{path}: other users may read it; change that with: chmod o-r {path}"


def _hmac_key(path: str) -> Iterator[str]:
    yield from _secret(path)
    if not list(_file(path)):
        yield from _refusal(lambda: secrets.usable_key(Path(path).read_bytes(), path))


def _token(path: str) -> Iterator[str]:
    yield from _secret(path)
    if not list(_file(path)):
        yield from _refusal(lambda: secrets.usable_token(Path(path).read_text(encoding="ascii", errors="replace"), path))


def _refusal(read: Callable[[], Any]) -> Iterator[str]:
    try:
        read()
    except InvalidRequest as error:
        yield str(error)


_HOSTS = (
    *("allowed_endpoints", "allowed_receivers", "allowed_ssh_hosts", "allow_remote_manifests", "hosts"),
    "tenant_external_names",
)
_CHECKS: Mapping[str, Callable[[str], Iterable[str]]] = {
    **dict.fromkeys(_HOSTS, _host),
    **dict.fromkeys(("allowed_kinds", "denied_kinds", "tenant_kinds"), _kind),
    **dict.fromkeys(("allowed_namespaces", "denied_namespaces", "inventory_namespace"), _namespace),
    **dict.fromkeys(("private_key", "client_key_file", "clouds_file"), _secret),
    **dict.fromkeys(("ca_file", "client_certificate_file"), _certificate),
    "allowed_scripts": lambda one: scripts.unusable([one]),
    "url": _https,
    "keystone": _url,
    "health_rules": _rules,
    "ssh_known_hosts": _file,
    "hmac_key_file": _hmac_key,
    "bearer_token_file": _token,
}
