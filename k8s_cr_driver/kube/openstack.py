# SPDX-License-Identifier: Apache-2.0
"""
An OpenStack cloud of a clouds.yaml that a cluster keeps in a Secret: do its credentials open it, and why did a server fail?

keystoneauth forms the request of each kind of credentials, and reads the catalog. The requests are sent here: tenants write
such Secrets, so their URLs are judged as those of kubeconfigs are. A token serves one look and is not kept.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from keystoneauth1 import exceptions, loading
from keystoneauth1.access import AccessInfoV3

from k8s_cr_driver.errors import ApiError, DriverError, InvalidRequest, TransportError
from k8s_cr_driver.kube import bounded, once, tls
from k8s_cr_driver.kube.auth import is_token
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint, is_plain
from k8s_cr_driver.kube.workload import secret_value
from k8s_cr_driver.objects import fields, yaml_nodes
from k8s_cr_driver.objects.decoding import decoded
from k8s_cr_driver.objects.keys import CloudEntry, Object

WITHIN = 5.0
"""Seconds for all requests of one look."""
CA = "cacert"
"""Key of such a Secret with the CA of the cloud, as the controllers of Cluster API read it."""
URL_LIMIT = 2_000
"""Characters of a URL."""
_MALFORMED = (exceptions.ClientException, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What keystoneauth raises for credentials and for responses that are not as they should be; it copies them recursively."""
_SCOPES = ("project_", "domain_", "system_", "trust_")
"""Keys in `auth` that an application credential must not have beside it: it has the scope of its project."""

logging.getLogger("keystoneauth.identity").setLevel(logging.INFO)
"""At DEBUG keystoneauth logs the whole response to the credentials."""


class NotAsked(DriverError):
    """The Secret cannot be read, or the cloud may not be asked, so nothing is known of it."""


def check(connection: Connection, where: CloudEntry) -> str:
    """Opens the cloud; returns why the server in `where` failed, "" if Nova does not say. Raises NotAsked, DriverError."""
    secret = _secret(connection, where)
    found = _entry(secret, where)
    auth, url = fields.mapping(found, "auth"), fields.text(found, "auth", "auth_url")
    _check_url(connection.endpoint, url, f"auth_url of the {where}")
    if not connection.endpoint.consent(url):
        raise NotAsked(f"the {where} was not asked")
    context = _tls(url, secret, where, verify=found.get("verify") is not False)
    keystone = _Keystone(url, where, once.Way(connection.endpoint.judge, context))
    access = keystone.authenticate(auth)
    if not where.server:
        return ""
    nova = _compute_url(access, where.region or fields.text(found, "region_name"), url)
    _check_url(connection.endpoint, nova, f"the compute endpoint in the catalog of Keystone at {url}")
    if not connection.endpoint.consent(nova):
        raise NotAsked(f"the compute service of the {where} was not asked")
    return keystone.fault(nova, where.server, str(access.auth_token))


def _secret(connection: Connection, where: CloudEntry) -> Object:
    namespace, name, _ = where.secret
    try:
        return connection.request("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}", read_timeout=WITHIN)
    except DriverError as error:
        if isinstance(error, ApiError) and error.status == 404:
            raise InvalidRequest(f"the {where.secret}, which is to have the cloud {where.name}, does not exist") from None
        raise NotAsked(f"the {where.secret} with its credentials cannot be read: {error}") from None


def _entry(secret: Object, where: CloudEntry) -> Object:
    """The cloud in the Secret."""
    try:
        clouds = yaml_nodes.loaded(secret_value(secret, where.secret))
    except ValueError:
        raise InvalidRequest(f"{where.secret.key} of the {where.secret} is no YAML") from None
    found = fields.mapping(clouds, "clouds", where.name)
    if not fields.mapping(found, "auth"):
        raise InvalidRequest(f"there is no {where}, or it has no auth")
    return found


def _ca(secret: Object, where: CloudEntry) -> str:
    """PEM; "" for the system's CAs."""
    if not fields.field(secret, "data", CA):
        return ""
    return secret_value(secret, where.secret._replace(key=CA)).decode(errors="replace")


def _tls(url: str, secret: Object, where: CloudEntry, *, verify: bool) -> ssl.SSLContext | None:
    try:
        return tls.context(url, ca=_ca(secret, where), verify=verify)
    except InvalidRequest:
        raise InvalidRequest(f"{CA} of the {where.secret} is no CA in PEM") from None


def _check_url(endpoint: Endpoint, url: str, what: str) -> None:
    if len(url) > URL_LIMIT or not is_plain(url):
        raise InvalidRequest(f"{what} is no plain URL, such as https://cloud.example.com:5000/v3")
    if not endpoint.may_name(url):
        raise InvalidRequest(f"{what} is {url}: not https, so the credentials were not sent there")


def _plugin(auth: Mapping[str, Any]) -> Any:
    """The plugin for these credentials. What is not given is filled in as Gophercloud does, which the controllers use."""
    by_application = bool(auth.get("application_credential_secret"))
    name = "v3applicationcredential" if by_application else "v3token" if auth.get("token") else "v3password"
    loader: Any = loading.get_plugin_loader(name)
    known = {option.dest for option in loader.get_options()}
    given = {key: str(value) for key, value in auth.items() if key in known and value is not None}
    for whose in ("user", "project"):
        if auth.get("default_domain") and f"{whose}_domain_id" in known and f"{whose}_domain_name" not in given:
            given.setdefault(f"{whose}_domain_id", str(auth["default_domain"]))
    if by_application:
        given = {key: value for key, value in given.items() if not key.startswith(_SCOPES)}
    return loader.load_from_options(**given)


def _compute_url(access: AccessInfoV3, region: str, url: str) -> str:
    try:
        found = access.service_catalog.url_for(service_type="compute", interface="public", region_name=region or None)
    except _MALFORMED:
        found = None
    if not found:
        raise InvalidRequest(f"the catalog of Keystone at {url} has no public compute endpoint")
    return str(found)


@dataclass
class _Keystone:
    """The servers of one cloud, for one look."""

    url: str
    where: CloudEntry
    way: once.Way
    until: float = field(default_factory=lambda: time.monotonic() + WITHIN)

    def authenticate(self, auth: Mapping[str, Any]) -> AccessInfoV3:
        """Requests a token. No text of keystoneauth is repeated: it may have what was given, or what the server sent."""
        try:
            access: AccessInfoV3 = _plugin(auth).get_auth_ref(self)
            if access.auth_token and is_token(str(access.auth_token)):
                return access
        except _MALFORMED:
            pass
        raise InvalidRequest(f"Keystone at {self.url} gave no token, as auth of the {self.where} misses a key, or this is none")

    def post(self, url: str, *, json: Any, headers: Mapping[str, str], **_: Any) -> Any:
        """In the place of keystoneauth's session: the one request of a plugin, POST /v3/auth/tokens."""
        response = self._send("Keystone", "POST", url, {**headers, "Content-Type": "application/json"}, dumps(json))
        if response.status == 401:
            raise InvalidRequest(f"Keystone at {self.url} refuses the credentials (401): {self.where}")
        if response.status == 404:  # of an application credential that was deleted
            raise InvalidRequest(f"Keystone at {self.url} does not know the credentials, or is no Keystone (404): {self.where}")
        if response.status != 201:
            raise InvalidRequest(f"Keystone at {self.url} responds to the credentials with {response.status}: {self.where}")
        return SimpleNamespace(headers=response.headers, json=lambda: decoded(response.data))

    def fault(self, nova: str, server: str, token: str) -> str:
        """What Nova says of a server: `fault` (Compute API, "Show Server Details")."""
        url = f"{nova.rstrip('/')}/servers/{quote(server, safe='')}"
        response = self._send("Nova", "GET", url, {"X-Auth-Token": token, "Accept": "application/json"})
        if response.status != 200:
            raise InvalidRequest(f"Nova at {nova} responds with {response.status} to a read of the server {server}")
        try:
            said = fields.text(decoded(response.data), "server", "fault", "message")
        except ValueError:
            said = ""
        return said.replace(token, "[removed]").rstrip(". ")

    def _send(self, who: str, method: str, url: str, headers: Mapping[str, str], body: str = "") -> bounded.Response:
        left = max(self.until - time.monotonic(), 0.1)
        try:
            return self.way.send(method, url, headers=headers, body=body, connect=left, within=left)
        except TransportError as error:
            raise TransportError(f"{who} cannot be reached: {error}") from None
