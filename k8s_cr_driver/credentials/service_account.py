# SPDX-License-Identifier: Apache-2.0
"""A ServiceAccount of Tacker's own in a workload cluster, with a role and a token: not the admin certificate.

The token is that of a Secret and does not expire (Kubernetes documents, "Manually create a long-lived API token"): Tacker
stores a VIM's token with each instance on it, and an expired one would end their LCM. Deleting the Secret revokes it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from k8s_cr_driver.errors import ApiError, ConnectionFailed, DriverError
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import Object, key_of, kind_of

MANIFESTS = Path(__file__).with_name("vim_role.yaml")
MANAGER = "k8s-cr-receive"
"""The field manager of these objects."""
TOKEN_WITHIN = 30.0
"""Seconds in which the token controller has written the token."""


def token(connection: Connection) -> str:
    """The token of Tacker's ServiceAccount, which is created if it does not exist. Raises DriverError."""
    client = Client(connection, discover(connection))
    return token_of(client, list(yaml.safe_load_all(MANIFESTS.read_text())), MANAGER)


def token_of(client: Client, manifests: Sequence[Object], manager: str) -> str:
    """
    The token in the last of these objects, a Secret, once all are applied.

    Raises DriverError for a kind that is not served, and if no token is written.
    """
    *others, secret = (_applied(client, manifest, manager) for manifest in manifests)
    del others
    return _token(client, secret)


def _applied(client: Client, manifest: Object, manager: str) -> Object:
    key, resource = key_of(manifest), client.resources.find(kind_of(manifest))
    if resource is None:
        raise DriverError(f"{key}: the cluster does not serve this kind")
    try:
        return client.apply(resource, manifest, manager, force=True)
    except ApiError as error:
        if error.status == 404 and key.namespace:
            remedy = f"kubectl create namespace {key.namespace}"
            raise DriverError(f"{key}: the Namespace {key.namespace} does not exist; make it: {remedy}") from None
        raise


def _token(client: Client, secret: Object) -> str:
    """The value in the last of the manifests, the Secret."""
    resource, end, tries = client.resources.find(kind_of(secret)), time.monotonic() + TOKEN_WITHIN, 0
    assert resource is not None
    while not (value := field(secret, "data", "token")):
        tries += 1
        if time.monotonic() > end:
            raise ConnectionFailed(f"{key_of(secret)} gets no token; is its token controller running?")
        time.sleep(backoff.delay(tries))
        secret = client.read(resource, key_of(secret))
    return base64.b64decode(value).decode()
