# SPDX-License-Identifier: Apache-2.0
"""The settings of the sender: a YAML file of the package, and what a request's additionalParams override.

They name a receiver that the operator has defined, with its URL and its secrets, or a URL of the package's own with secrets of
the package's own, in Secrets of the management cluster. They name no place on the conductor's host. A request cannot name a
secret, since Tacker's API shows a request's parameters.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects import yaml_nodes
from k8s_cr_driver.objects.fields import similar, type_name
from k8s_cr_driver.redaction import lines

PARAMETER = "credential-sender"
"""Key in additionalParams."""
RECEIVER = "receiver"
ALLOW_INSECURE = "allow-insecure"
SECRETS = ("hmac-key", "bearer-token", "client-certificate", "client-key")
OWN = ("url", "ca-bundle", ALLOW_INSECURE, *SECRETS)
"""What a package says of a receiver of its own."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SECRET = re.compile(r"[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}/[-._a-zA-Z0-9]{1,253}")


@dataclass(frozen=True)
class Source:
    """Where a secret is: in a Secret of the management cluster, or in a file that an option of the operator names."""

    secret: str = ""
    """NAMESPACE/NAME/KEY."""
    file: str = ""
    """An absolute path on the conductor's host; no error shows it to users."""
    option: str = ""
    """The option that names the file."""

    def __str__(self) -> str:
        return self.option or f"Secret {self.secret}"


@dataclass(frozen=True)
class Settings:
    """What the settings file and a request say together."""

    url: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    """By those of SECRETS that are set."""
    receiver: str = ""
    """The name of a receiver of the operator's, which has URL, CAs and secrets; "" for one of the package's own."""
    ca_bundle: str = field(default="", repr=False)
    """PEM; "" for the system's CAs."""
    allow_insecure: bool = False
    deadline: int = 120
    """Seconds for all clusters of one operation."""
    retries: int = 100
    """Attempts after the first for each message; so many that the deadline comes first."""
    resend: bool = False
    on_failure: str = "fail"


def load(text: str, name: str, overrides: Mapping[str, Any] | None = None) -> Settings:
    """
    The settings in `text`, which errors call `name`, with those of a request.

    Raises InvalidPackage for the file, and InvalidRequest for `overrides`, which must not name a SECRETS, allow http, nor send
    the file's bearer token to another server. Of a file whose receiver a request replaces, nothing about that one counts.
    """
    content = remaining(_content(text, name), overrides or {})
    if found := _problems(content, required=False):
        raise InvalidPackage(lines(f"{name}: {problem}" for problem in found))
    given = dict(overrides or {})
    if found := [*_forbidden(content, given), *_problems({**content, **given})]:
        raise InvalidRequest(lines(f"additionalParams.{PARAMETER}: {problem}" for problem in found))
    merged = {**content, **given}
    sources = {key: Source(**merged[key]) for key in SECRETS if key in merged}
    return Settings(sources=sources, **{key.replace("-", "_"): merged[key] for key in _CHECKS if key in merged})


def remaining(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `before` that hold beside `given`: a receiver of the operator's and a URL of one's own replace each other."""
    replaced = OWN if RECEIVER in given else (RECEIVER,) if "url" in given else ()
    return {name: value for name, value in before.items() if name not in replaced}


def problems(text: str, name: str) -> list[str]:
    """
    The mistakes in a settings file, a sentence each. Receiver and URL may be missing: a request can give one.

    CAs that cannot be used are among them only here, for a package's author: with `load` they are a failure to deliver, which
    `on-failure` and a request's `ca-bundle` are for.
    """
    try:
        content = _content(text, name)
    except InvalidPackage as error:
        return [str(error)]
    return [f"{name}: {problem}" for problem in _problems(content, required=False) or _unusable(content.get("ca-bundle"))]


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of a URL, as the library reads it that connects; empty if it cannot.

    Other parsers take another host from a URL with a backslash before an `@`.
    """
    from urllib3.exceptions import LocationParseError  # with what it imports it takes a tenth of a second
    from urllib3.util import parse_url

    try:
        parts = parse_url(url)
    except LocationParseError:
        return "", "", None
    scheme = parts.scheme or ""
    return scheme, parts.host or "", parts.port or {"https": 443, "http": 80}.get(scheme)


def _content(text: str, name: str) -> dict[str, Any]:
    try:
        content = yaml_nodes.loaded(text)
    except ValueError as error:
        raise InvalidPackage(f"{name}: {error}") from None
    if not isinstance(content, dict):
        raise InvalidPackage(f"{name}: must be a mapping, not {type_name(content)}")
    if repeated := yaml_nodes.repeated_keys(text):
        raise InvalidPackage(f"{name}: {', '.join(repeated)}: is written more than once; remove the others")
    return content


def _problems(content: Mapping[str, Any], *, required: bool = True) -> list[str]:
    found = [_unknown(key) for key in content if key not in _CHECKS and key not in SECRETS]
    found += [f"{key} {wrong}" for key, check in _CHECKS.items() if key in content and (wrong := check(content[key]))]
    found += [f"{key} {wrong}" for key in SECRETS if key in content and (wrong := _source(content[key]))]
    own = [key for key in OWN if key in content]
    if RECEIVER in content and own:
        found.append(f"{own[0]} stands beside receiver, whose URL and secrets are the operator's; remove one of them")
    if RECEIVER not in content and "hmac-key" not in content and (own or required):
        found.append("hmac-key is missing: a URL of a package's own needs a secret of its own; or name a receiver")
    if ("client-certificate" in content) != ("client-key" in content):
        found.append("client-certificate and client-key belong together, and one is missing")
    if required and "url" not in content and RECEIVER not in content:
        found.append("url is missing, and so is receiver, the name of one that the operator has defined")
    if str(content.get("url", "")).lower().startswith("http:") and content.get(ALLOW_INSECURE) is not True:
        found.append("url must be https; http sends kubeconfigs in clear text, and needs allow-insecure: true")
    return found


def _forbidden(content: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    found = [f"{key} can be set by the package only" for key in (*SECRETS, ALLOW_INSECURE) if key in given]
    both = [one["url"] for one in (content, given) if not _url(one.get("url"))]
    if "bearer-token" in content and len(set(map(origin, both))) > 1:
        found.append("url is on another server than that of the package, whose bearer-token it must not get")
    if "bearer-token" in content and "url" in given and "url" not in content:
        found.append("url must be in the package too, whose bearer-token would go to any server that a request names")
    return found


def _unknown(key: Any) -> str:
    hint = similar(str(key), [*_CHECKS, *SECRETS])
    return f"{key} is not a setting" + (f"; is it {hint}?" if hint else "")


def _url(value: Any) -> str:
    scheme, host, _ = origin(value) if isinstance(value, str) else ("", "", None)
    if scheme not in ("https", "http") or not host:
        return "must be a URL, such as https://receiver.example.com:8443/"
    return "must not hold credentials, which would be shown" if "@" in value else ""


def _source(value: Any) -> str:
    match value:
        case {"secret": str(name), **others} if not others:
            return "" if _SECRET.fullmatch(name) else "must have as secret NAMESPACE/NAME/KEY"
        case {"file": _}:
            return "names a file on the conductor's host, which only the operator may: name a receiver of the operator's"
    return "must have secret: the place where the value is, never the value itself"


def _name(value: Any) -> str:
    """A group of tacker.conf has the name, and oslo.config ignores the case of that."""
    is_name = isinstance(value, str) and _NAME.fullmatch(value)
    return "" if is_name else "must be the name of a receiver: lower-case letters, digits and -"


def _pem(value: Any) -> str:
    return "" if isinstance(value, str) and "-----BEGIN CERTIFICATE-----" in value else "must be certificates as PEM"


def _unusable(bundle: str | None) -> list[str]:
    """What is wrong with CAs that look like PEM."""
    if bundle is None:
        return []
    store = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        store.load_verify_locations(cadata=bundle)
    except (OSError, ValueError):
        return ["ca-bundle is damaged, or is no certificate: copy the CA's whole PEM file"]
    ends = sorted((str(ca["notAfter"]) for ca in store.get_ca_certs()), key=ssl.cert_time_to_seconds)
    if ends and ssl.cert_time_to_seconds(ends[-1]) < time.time():
        return [f"ca-bundle has no CA that is still valid: the last one has expired on {ends[-1]}"]
    return []


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _between(least: int, most: int) -> Any:
    def check(value: Any) -> str:
        return "" if type(value) is int and least <= value <= most else f"must be an integer from {least} to {most}"

    return check


def _choice(value: Any) -> str:
    return "" if value in ("fail", "warn") else "must be fail or warn"


_CHECKS: Mapping[str, Any] = {
    RECEIVER: _name,
    "url": _url,
    "ca-bundle": _pem,
    ALLOW_INSECURE: _flag,
    "deadline": _between(1, 3600),
    "retries": _between(0, 100),
    "resend": _flag,
    "on-failure": _choice,
}
