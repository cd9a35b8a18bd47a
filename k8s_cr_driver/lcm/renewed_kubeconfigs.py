# SPDX-License-Identifier: Apache-2.0
"""
Workload clusters whose kubeconfig is another one than their user got last.

Cluster API writes a kubeconfig again before its certificate ends, and the credential sender runs only with operations. So the
database synchronization compares the digests, and marks the instance until the sender has delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from k8s_cr_driver import logs
from k8s_cr_driver.credentials.envelope import READY
from k8s_cr_driver.credentials.management import ManagementCluster
from k8s_cr_driver.credentials.sender import Record
from k8s_cr_driver.errors import ApiError, InvalidRequest, passes
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.lcm import credential_sender, receivers
from k8s_cr_driver.objects.fields import mapping, texts
from k8s_cr_driver.objects.keys import Object

KEY = "renewed"
"""Key beside the deliveries in the metadata of the VnfInstance: NAMESPACE/NAME of the clusters."""
MOST = 100
"""Clusters of an instance that are compared, one request each."""

LOG = logs.logger(__name__)


def differing(connection: Connection, record: Any) -> list[str] | None:
    """The clusters to mark in the `record` of an instance; None if they are marked. DriverError if they cannot be read now."""
    instance: Object = record.to_dict()
    now = sorted(_renewed(ManagementCluster(connection), instance))
    return None if now == texts(_kept(instance), KEY) else now


def mark(record: Any, clusters: list[str]) -> None:
    """Also takes the mark away, if there are none."""
    kept = {**_kept(record.to_dict()), KEY: clusters}
    if clusters:
        LOG.warning(
            "VNF instance %s: the kubeconfig of %s is another one than was delivered last; the next operation that runs the "
            "credential sender delivers it",
            record.id,
            ", ".join(clusters),
        )
    else:
        del kept[KEY]
    record.metadata = {**record.metadata, credential_sender.KEY: kept}


def _kept(instance: Object) -> Object:
    return mapping(instance, "metadata", credential_sender.KEY)


def _renewed(management: ManagementCluster, instance: Object) -> Iterator[str]:
    """No request for an instance without deliveries. Users may change the record, so only the instance's namespaces count."""
    deliveries = Record.read(mapping(_kept(instance), "clusters")).deliveries
    own = set(receivers.namespaces(instance)) if deliveries else set()
    known = [name for name, one in deliveries.items() if one.event == READY and name.partition("/")[0] in own]
    for name in sorted(known)[:MOST]:
        try:
            if management.workload(name).digest != deliveries[name].digest:
                yield name
        except (ApiError, InvalidRequest) as error:  # no kubeconfig, or the account may not read it
            if passes(error):
                raise
