# SPDX-License-Identifier: Apache-2.0
"""The management cluster: which workload clusters an instance has, and their kubeconfigs.

Cluster API writes the admin kubeconfig of a Cluster into a Secret (its book, "Contracts", "Kubeconfig"), and writes it again
when the endpoint or a certificate changes. So it is read each time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field

from k8s_cr_driver.capi import contract
from k8s_cr_driver.capi.cluster import UNREACHABLE
from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.errors import ApiError, Unreadable
from k8s_cr_driver.kube import kubeconfig, workload
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import METADATA_LIST, Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object, ObjectKey, SecretEntry, annotations_of
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, is_copy, is_kept, is_managed, is_released


@dataclass(frozen=True)
class WorkloadCluster:
    """A workload cluster with its kubeconfig of now, as this driver writes it."""

    name: str
    """NAMESPACE/NAME."""
    kubeconfig: str = field(repr=False)
    endpoint: Endpoint

    @property
    def digest(self) -> str:
        return envelope.digest(self.kubeconfig)

    def open(self, deadline: float) -> None:
        """One authenticated read on its API server, until `deadline`, a time.monotonic().

        Raises ConnectionFailed, TransportError or ApiError.
        """
        workload.check_opens(self.endpoint, deadline)


@dataclass(frozen=True)
class ManagementCluster:
    """The cluster on which the instance is."""

    connection: Connection

    @functools.cached_property
    def _client(self) -> Client:
        """Discovers the kinds once for all Clusters of an operation."""
        return Client(self.connection, discover(self.connection))

    def clusters(self, instance: str, namespaces: Iterable[str]) -> list[str]:
        """NAMESPACE/NAME of the instance's Clusters in those namespaces; "" stands for all namespaces."""
        resource, selector = self._client.resources.find(contract.CLUSTERS), f"{INSTANCE_LABEL}={instance}"
        if resource is None:
            return []
        found = [live for place in namespaces for live in self._client.list(resource, place, selector, METADATA_LIST)]
        return sorted(_name(live) for live in found if _is_of(live, instance))

    def exists(self, cluster: str, instance: str) -> bool:
        """Whether the Cluster NAMESPACE/NAME is there and is the instance's, or one that an instance has released."""
        live = self._read(cluster)
        return live is not None and (_is_of(live, instance) or is_released(live))

    def is_kept(self, cluster: str) -> bool:
        """Whether a terminate releases the Cluster and does not delete it."""
        live = self._read(cluster)
        return live is not None and is_kept(live)

    def is_unreachable(self, cluster: str) -> bool:
        """Whether the Cluster's author says that the conductor cannot connect to it."""
        live = self._read(cluster)
        return live is not None and annotations_of(live).get(UNREACHABLE) == "true"

    def _read(self, cluster: str) -> Object | None:
        """None if there is no such Cluster. Unreadable if the kind is not served now: then nobody knows."""
        resource = self._client.resources.find(contract.CLUSTERS)
        if resource is None:
            raise Unreadable(f"{cluster}: the management cluster does not serve {contract.CLUSTERS} now")
        try:
            return self._client.read(resource, ObjectKey(*contract.CLUSTERS, *cluster.split("/", 1)))
        except ApiError as error:
            if error.status != 404:
                raise
        return None

    def workload(self, cluster: str) -> WorkloadCluster:
        """A Cluster of `clusters`; ApiError 404 if Cluster API has not written its kubeconfig yet.

        Whoever may write the Secret decides what is in it, so what is sent is written here.
        """
        namespace, name = cluster.split("/", 1)
        where = contract.kubeconfig_entry(namespace, name)
        endpoint = workload.workload_endpoint(self.connection, self.secret(where), where)
        return WorkloadCluster(cluster, kubeconfig.written(endpoint, name, str(where)), endpoint)

    def secret(self, where: SecretEntry) -> bytes:
        """One value of a Secret. InvalidRequest if the Secret has no such key."""
        return workload.read_secret(self.connection, where)


def _is_of(live: Object, instance: str) -> bool:
    """A copy, such as a backup that was restored, has the marks of a Cluster of the instance, but another cluster's Secret."""
    return is_managed(live, instance) and not is_copy(live, instance)


def _name(live: Object) -> str:
    return f"{live['metadata']['namespace']}/{live['metadata']['name']}"
