# SPDX-License-Identifier: Apache-2.0
"""A kubeconfig that one cluster keeps in a Secret, and whether it opens the cluster that it is of."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from http.client import responses

from k8s_cr_driver.errors import ApiError, InvalidRequest
from k8s_cr_driver.kube import kubeconfig
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, SecretEntry

RESPONSE_LIMIT = 1024 * 1024
"""Bytes of the response to it: one Namespace."""
READ_TIMEOUT = 15.0
"""Seconds for the read that opens a cluster."""


def read_secret(connection: Connection, where: SecretEntry) -> bytes:
    """One value of a Secret. ApiError 404 without the Secret, InvalidRequest if it has no such key."""
    return secret_value(connection.request("GET", f"/api/v1/namespaces/{where.namespace}/secrets/{where.name}"), where)


def secret_value(secret: Object, where: SecretEntry) -> bytes:
    """The same of a Secret that was read."""
    value = field(secret, "data", where.key)
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise InvalidRequest(f"{where} of the management cluster has no {where.key}") from None


def workload_endpoint(connection: Connection, content: str | bytes, where: SecretEntry) -> Endpoint:
    """Of a kubeconfig, to an address to which `connection` itself may go. Raises InvalidRequest."""
    endpoint = kubeconfig.parse(content, str(where))
    if not connection.endpoint.may_name(endpoint.url):
        raise InvalidRequest(f"{where}: server is not https, as that of the management cluster is")
    return replace(endpoint, judge=connection.endpoint.judge, plain_http=connection.endpoint.plain_http)


def check_kubeconfig(connection: Connection, where: SecretEntry) -> None:
    """Opens the cluster of a kubeconfig. Raises DriverError."""
    endpoint = workload_endpoint(connection, read_secret(connection, where), where)
    with connection.to(endpoint, RESPONSE_LIMIT) as opened:
        _read(opened)


def check_opens(endpoint: Endpoint, deadline: float) -> None:
    """One authenticated read on an API server, until `deadline`, a time.monotonic().

    Raises ConnectionFailed, TransportError or ApiError.
    """
    with Connection(endpoint, deadline=deadline, response_limit=RESPONSE_LIMIT) as opened:
        _read(opened)


@contextlib.contextmanager
def unquoted() -> Iterator[None]:
    """Errors of the requests in it repeat nothing that the server says: it has the credentials, and may be anybody's."""
    try:
        yield
    except ApiError as error:
        reason, silence = responses.get(error.status, ""), "what the server says is not shown"
        raise ApiError(error.attempt, error.status, reason, silence, retry_after=error.retry_after) from None


def _read(opened: Connection) -> None:
    with unquoted():
        opened.request("GET", "/api/v1/namespaces", query=[("limit", "1")], read_timeout=READ_TIMEOUT)
