# SPDX-License-Identifier: Apache-2.0
"""Reads the secrets that the settings name. Values stay in memory, and no error shows one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from k8s_cr_driver.credentials.management import ManagementCluster
from k8s_cr_driver.credentials.settings import Source
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.auth import is_token
from k8s_cr_driver.objects.keys import SecretEntry

SHORTEST_KEY = 32
"""Bytes of an HMAC key: as many as the digest has (RFC 2104, section 3)."""


@dataclass(frozen=True)
class Secrets:
    """The values; "" for those that the settings do not name."""

    hmac_key: bytes = field(repr=False)
    bearer_token: str = field(default="", repr=False)
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)


def read(sources: Mapping[str, Source], management: ManagementCluster | None) -> Secrets:
    """Raises InvalidRequest, and the errors of the management cluster."""
    values = {name: _value(name, source, management) for name, source in sources.items()}
    key = usable_key(values["hmac-key"], f"hmac-key in {sources['hmac-key']}")
    token = ""
    if source := sources.get("bearer-token"):
        token = usable_token(_text(values, "bearer-token"), f"bearer-token in {source}")
    return Secrets(key, token, _text(values, "client-certificate"), _text(values, "client-key"))


def usable_key(value: bytes, where: str) -> bytes:
    """An HMAC key without the newline at its end. Raises InvalidRequest if it is too short."""
    key = value.strip()
    if len(key) < SHORTEST_KEY:
        raise InvalidRequest(f"{where} is shorter than {SHORTEST_KEY} bytes; make one with: openssl rand -hex 32")
    return key


def usable_token(value: str, where: str) -> str:
    """A bearer token without white space at its ends. Raises InvalidRequest if it is none."""
    token = value.strip()
    if not token or not is_token(token):
        raise InvalidRequest(f"{where} is empty, or holds a character that no token has")
    return token


def _value(name: str, source: Source, management: ManagementCluster | None) -> bytes:
    if source.file:
        try:
            return Path(source.file).read_bytes()
        except OSError as error:
            raise InvalidRequest(f"{name} in {source}: {error.strerror}; ask the operator") from None
    if management is None:
        raise InvalidRequest(
            f"{name} in {source} cannot be read after the instance was terminated, because Tacker has removed its VIM; "
            "name a receiver of the operator's"
        )
    return management.secret(SecretEntry(*source.secret.split("/")))


def _text(values: Mapping[str, bytes], name: str) -> str:
    try:
        return values.get(name, b"").decode("ascii")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{name} is not ASCII text") from None
