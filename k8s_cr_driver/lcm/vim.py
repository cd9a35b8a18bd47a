# SPDX-License-Identifier: Apache-2.0
"""A VIM of Tacker (vimConnectionInfo) as the endpoint of a cluster: its URL, CA and credentials.

Reads the keys that the in-tree driver reads, and those of an OpenID Connect provider. Every value is checked here, because
a wrong one would otherwise show as a failure of the connection.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import urllib3

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Concern, ConnectionFailed, DriverError, InvalidRequest
from k8s_cr_driver.kube import tls
from k8s_cr_driver.kube.auth import Provider, is_token
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.endpoint_rules import ANY, EndpointRules

LOG = logs.logger(__name__)

_REMEDIES = {
    Concern.ENDPOINT: "Check vimConnectionInfo.interfaceInfo.endpoint, and the network to it.",
    Concern.CA: "Give the CA in vimConnectionInfo.interfaceInfo.ssl_ca_cert.",
    Concern.CREDENTIALS: "Check bearer_token, or username and password, in vimConnectionInfo.accessInfo.",
    Concern.OIDC: "These keys stand in vimConnectionInfo.accessInfo.",
}
_ANONYMOUS = '"system:anonymous"'
"""The user of a request without credentials, as the API server quotes it."""

URL_LIMIT = 2_000
"""Characters of a URL. Several parsers look at it, for each operation."""
CA_LIMIT = 1024 * 1024
"""Characters of a CA: the system's about 140 CAs have 220,000."""


def with_remedy(error: DriverError) -> str:
    """The text of an error, with the keys of vimConnectionInfo that it is about."""
    if isinstance(error, ApiError) and error.status == 403 and _ANONYMOUS in str(error):
        return f"{error}. The request had no credentials. {_REMEDIES[Concern.CREDENTIALS]}"
    remedy = _REMEDIES.get(error.concern) if isinstance(error, (ConnectionFailed, InvalidRequest)) and error.concern else None
    return f"{error} {remedy}" if remedy else str(error)


def identifier(stored: Any) -> str:
    """The vimId of a VimConnectionInfo; "" for a VIM that is given with the request and has none."""
    return str(stored.vimId) if stored.obj_attr_is_set("vimId") else ""


def endpoint(
    interface: Mapping[str, str],
    access: Mapping[str, str],
    *,
    verify_without_ca: bool = True,
    rules: EndpointRules = ANY,
) -> Endpoint:
    """Of a VIM's interfaceInfo and accessInfo. Raises InvalidRequest, also for a URL that `rules` do not allow."""
    url = _http_url(interface.get("endpoint"), "interfaceInfo.endpoint", rules)
    given = str(interface.get("ssl_ca_cert") or "").strip()
    if len(given) > CA_LIMIT:
        raise InvalidRequest(f"vimConnectionInfo.interfaceInfo.ssl_ca_cert: has more than {CA_LIMIT:,} characters")
    ca = tls.pem(given)
    if given not in ("", "None") and not ca:  # Tacker stores a VIM's missing CA as "None"
        raise InvalidRequest("vimConnectionInfo.interfaceInfo.ssl_ca_cert: is no PEM certificate")
    if not ca and not verify_without_ca:
        LOG.warning("The certificate of %s is not verified ([k8s_cr] verify_tls_without_ca = false)", url)
    provider = _provider(access, rules)
    return Endpoint(
        url=url,
        ca=ca,
        verify=bool(ca) or verify_without_ca,
        authorization="" if provider else _authorization(access),
        provider=provider,
        judge=rules,
        plain_http=rules.plain_http,
    )


def _provider(access: Mapping[str, str], rules: EndpointRules) -> Provider | None:
    """None if accessInfo has no oidc_token_url."""
    if not access.get("oidc_token_url"):
        return None
    missing = [key for key in ("client_id", "username", "password") if not access.get(key)]
    if missing:
        raise InvalidRequest(f"vimConnectionInfo.accessInfo: oidc_token_url needs {' and '.join(missing)} beside it")
    return Provider(
        _http_url(access["oidc_token_url"], "accessInfo.oidc_token_url", rules),
        str(access["client_id"]),
        str(access["username"]),
        str(access["password"]),
        str(access.get("client_secret") or ""),
    )


def _http_url(value: Any, where: str, rules: EndpointRules) -> str:
    """`value` if it is an http(s) URL without credentials, which every error would show; else InvalidRequest."""
    text = str(value or "")
    if len(text) > URL_LIMIT:
        raise InvalidRequest(f"vimConnectionInfo.{where}: has more than {URL_LIMIT:,} characters")
    if "@" in text:
        raise InvalidRequest(f"vimConnectionInfo.{where}: holds credentials, or an @; give them as keys of accessInfo")
    try:
        url = urllib3.util.parse_url(text)
    except urllib3.exceptions.LocationParseError:
        url = urllib3.util.Url()
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest(f"vimConnectionInfo.{where}: {text!r} is not an http(s) URL, such as https://10.0.0.1:6443")
    rules.check(text, f"vimConnectionInfo.{where}")
    return text


def _authorization(access: Mapping[str, str]) -> str:
    """The header for a bearer token, which is preferred, or for a user name and password; else ""."""
    if token := str(access.get("bearer_token") or "").strip():
        if not is_token(token):
            raise InvalidRequest("vimConnectionInfo.accessInfo.bearer_token: holds a character that no token has")
        return f"Bearer {token}"
    if access.get("username") and access.get("password") is not None:
        pair = f"{access['username']}:{access['password']}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    return ""
