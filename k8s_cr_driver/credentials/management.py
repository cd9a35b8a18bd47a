# SPDX-License-Identifier: Apache-2.0
"""The management cluster: which workload clusters an instance has, and their kubeconfigs.

Cluster API writes the admin kubeconfig of a Cluster into a Secret (its book, "Contracts", "Kubeconfig"), and writes it again
when the endpoint or a certificate changes. So it is read each time.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

from k8s_cr_driver.capi import contract
from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube import kubeconfig
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import METADATA_LIST, Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.fields import field as value_at
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, appliers


@dataclass(frozen=True)
class WorkloadCluster:
    """A workload cluster with its kubeconfig of now."""

    name: str
    """NAMESPACE/NAME."""
    kubeconfig: str = field(repr=False)
    endpoint: Endpoint

    @property
    def digest(self) -> str:
        return envelope.digest(self.kubeconfig)

    def open(self) -> None:
        """One authenticated read on its API server. Raises ConnectionFailed, TransportError or ApiError."""
        with Connection(self.endpoint) as connection:
            connection.request("GET", "/api/v1/namespaces", query=[("limit", "1")])


@dataclass(frozen=True)
class ManagementCluster:
    """The cluster on which the instance is."""

    connection: Connection

    def clusters(self, instance: str, namespaces: Iterable[str]) -> list[str]:
        """NAMESPACE/NAME of the instance's Clusters in those namespaces; "" stands for all namespaces."""
        resources = discover(self.connection)
        resource = resources.find(contract.CLUSTERS)
        if resource is None:
            return []
        client, selector = Client(self.connection, resources), f"{INSTANCE_LABEL}={instance}"
        found = [live for place in namespaces for live in client.list(resource, place, selector, METADATA_LIST)]
        return sorted(_name(live) for live in found if instance in appliers(live))

    def workload(self, cluster: str) -> WorkloadCluster:
        """A Cluster of `clusters`; ApiError 404 if Cluster API has not written its kubeconfig yet."""
        namespace, _, name = cluster.partition("/")
        secret = contract.kubeconfig_secret(name)
        text = self.secret(namespace, secret, contract.KUBECONFIG_KEY).decode(errors="replace")
        return WorkloadCluster(cluster, text, kubeconfig.parse(text, f"Secret {namespace}/{secret}"))

    def secret(self, namespace: str, name: str, key: str) -> bytes:
        """One value of a Secret. InvalidRequest if the Secret has no such key."""
        path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        value = value_at(self.connection.request("GET", path), "data", key)
        try:
            return base64.b64decode(value, validate=True)
        except (TypeError, ValueError):
            raise InvalidRequest(f"Secret {namespace}/{name} of the management cluster has no {key}") from None


def _name(live: Object) -> str:
    return f"{live['metadata']['namespace']}/{live['metadata']['name']}"
