# SPDX-License-Identifier: Apache-2.0
"""What befalls a cloud, while Tacker works on a cluster of its servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import openstack
import pytest

from ..client import Client
from ..cluster import Cluster
from ..cluster_api.clusters import CORE, OF_CLUSTER, OF_DEPLOYMENT
from ..conftest import MakeVnf
from ..credentials.receiver import Receiver
from ..families import BROUGHT
from ..objects import Place, make
from ..sample_onboarding import Sample
from ..testbed import processes
from ..testbed.kubernetes import Kubernetes
from ..testbed.ledger import Ledger
from ..testbed.openstack import offer
from ..testbed.tacker import Conductor, worker
from ..vnf import Vnf
from .clusters import PATIENCE, belongings, nodes, parameters, reported
from .conftest import away, eventually
from .servers import machine_of

TENANT = offer.TENANT
PLACE = Place("storm")
AWAY = 60.0
"""Seconds."""
pytestmark = [pytest.mark.usefixtures("secret"), pytest.mark.alone("tacker", *BROUGHT)]


@contextmanager
def limited(admin: openstack.connection.Connection, tenant: openstack.connection.Connection, servers: int) -> Iterator[None]:
    """The tenant may have no more servers."""
    admin.compute.update_quota_set(tenant.current_project_id, instances=servers)
    try:
        yield
    finally:
        admin.compute.update_quota_set(tenant.current_project_id, instances=offer.UNLIMITED)


def test_a_cluster_outlives_what_befalls_its_cloud(
    sample: Sample,
    receiver: Receiver,
    tenant: openstack.connection.Connection,
    admin: openstack.connection.Connection,
    tacker: Client,
    make_vnf: MakeVnf,
    cluster: Cluster,
    kubernetes: Kubernetes,
    conductors: dict[str, Conductor],
    ledger: Ledger,
):
    """Its API server has the floating IP of its one control plane."""
    ash = make_vnf(sample.vnfd_id)
    ash.patience = PATIENCE

    given = parameters("ash", API_LOAD_BALANCER=False)
    operation = ash.begin_instantiate(*sample.files, wait_timeout=PATIENCE, parameters=given)
    eventually(lambda: list(tenant.compute.servers()), "the first server is there", PATIENCE)
    with away(ledger, "nova-api"):
        processes.until(lambda: False, AWAY)
    ash.wait(operation)
    [kubeconfig] = receiver.kubeconfigs
    assert len(nodes(kubernetes, kubeconfig)) == 2

    with limited(admin, tenant, servers=2):
        operation = ash.begin_scale("SCALE_OUT", "workers", wait_timeout=90)
        busy = worker(conductors, ash.id)
        eventually(lambda: len(workers(cluster)) == 2, "Cluster API has made the Machine")
        busy.kill()
        busy.start()
        ash.wait(operation, "FAILED_TEMP")
        tacker.retry(operation)
        detail = ash.failure(operation)["detail"]
        assert "Quota exceeded" in detail.splitlines()[1], detail
        ash.roll_back(operation)  # CAPO does not try a failed server again
    assert len(workers(cluster)) == 1
    operation = ash.begin_scale("SCALE_OUT", "workers", wait_timeout=PATIENCE)
    eventually(lambda: len(workers(cluster)) == 2, "Cluster API has made the Machine")
    with away(ledger, "keystone"):
        processes.until(lambda: False, AWAY)
    ash.wait(operation)
    assert len(nodes(kubernetes, kubeconfig)) == 3 and nodes(kubernetes, kubeconfig) == reported(ash)

    replaced_by_its_health_check(ash, cluster)
    eventually(lambda: nodes(kubernetes, kubeconfig) == reported(ash), "only the new node is Ready", PATIENCE)

    operation = ash.begin_terminate()
    eventually(lambda: len(list(tenant.compute.servers())) < 3, "the first server goes", PATIENCE)
    with away(ledger, "nova-api"):
        processes.until(lambda: False, AWAY)
    ash.wait(operation)
    assert belongings(tenant) == {}


def replaced_by_its_health_check(vnf: Vnf, cluster: Cluster) -> None:
    """The machine of a worker dies, and a MachineHealthCheck of a user has another made, of which Tacker comes to know."""
    selector = {"matchLabels": {OF_CLUSTER: "ash", OF_DEPLOYMENT: "ash-workers"}}
    conditions = [{"type": "Ready", "status": status, "timeoutSeconds": 30} for status in ("Unknown", "False")]
    spec = {"clusterName": "ash", "selector": selector, "checks": {"unhealthyNodeConditions": conditions}}
    with cluster.holding(make(CORE, "MachineHealthCheck", "ash", PLACE.name, spec=spec)):
        dead = vnf.vnfcs("Workers")[0]
        machine_of(dead).cut_off()

        def followed() -> bool:
            found = [one["id"] for one in vnf.vnfcs("Workers") if one["metadata"].get("node")]
            return len(found) == 2 and dead["id"] not in found

        eventually(followed, "Tacker reports the new Machine", PATIENCE)


def workers(cluster: Cluster) -> list[str]:
    found = cluster.all("Machine", PLACE.name, f"{OF_DEPLOYMENT}=ash-workers", CORE)
    return [one["metadata"]["name"] for one in found]
