# SPDX-License-Identifier: Apache-2.0
"""What comes and goes beside a running cluster: a group of workers, a Machine that Cluster API replaces, a pause."""

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..objects import Object, make
from ..testbed.processes import until
from ..vnf import Vnf
from .clusters import (
    CORE,
    OF_CLUSTER,
    OF_DEPLOYMENT,
    PLAIN,
    SYNCHRONIZED,
    WORKERS,
    Machine,
    agreed,
    machines,
    package,
    parameters,
    paused,
    reported,
    staying,
)

BATCH = WORKERS.replace("-workers", "-batch").replace("vdu: Workers", "vdu: Batch")
REMEDIATE = "cluster.x-k8s.io/remediate-machine"
"""Annotation by which a user has a MachineHealthCheck replace a Machine (Cluster API book, "MachineHealthChecking")."""

pytestmark = pytest.mark.usefixtures("samples")


def health_check() -> Object:
    selector = {"matchLabels": {OF_CLUSTER: "plum", OF_DEPLOYMENT: "plum-batch"}}
    checks = {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]}
    return make(CORE, "MachineHealthCheck", "plum-batch", spec={"clusterName": "plum", "selector": selector, "checks": checks})


TWO = package({"batch.yaml": BATCH, "health.yaml": health_check()}, {"Batch": "batch"})


def test_a_group_of_workers_is_added_remediated_paused_and_removed(onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster):
    one, two = onboard(PLAIN), onboard(TWO)
    plum = make_vnf(one)
    plum.instantiate(*PLAIN.files, wait_timeout=240, parameters=parameters("plum"))

    never = {"MACHINE_STARTUP": "90m"}
    operation = plum.begin_change(two, *TWO.files, wait_timeout=30, parameters=never)
    plum.failure(operation)
    plum.roll_back(operation)
    assert groups(cluster) == {"plum-workers"} and len(of(plum, "Workers", cluster)) == 1
    plum.change(two, *TWO.files)
    assert groups(cluster) == {"plum-workers", "plum-batch"} and len(of(plum, "Batch", cluster)) == 1

    [sick] = of(plum, "Batch", cluster)
    cluster.change("Machine", sick, "default", CORE, metadata={"annotations": {REMEDIATE: ""}})
    assert until(lambda: has_followed(plum, sick, cluster), SYNCHRONIZED), "Tacker does not know of the new Machine"

    with paused(cluster, "plum"):
        operation = plum.begin_scale("SCALE_OUT", "Batch", wait_timeout=45)
        detail = plum.failure(operation)["detail"]
    assert "(Paused)" in detail.splitlines()[1], detail
    plum.retry(operation)
    assert len(of(plum, "Batch", cluster)) == 2

    plum.heal()
    assert len(of(plum, "Batch", cluster)) == 2 and len(of(plum, "Workers", cluster)) == 1

    plum.change(one, *PLAIN.files)
    assert groups(cluster) == {"plum-workers"} and len(of(plum, "Workers", cluster)) == 1
    assert len(staying(cluster, f"{OF_CLUSTER}=plum")) == 2


def of(vnf: Vnf, vdu: str, cluster: Cluster) -> dict[str, Machine]:
    return agreed(vnf, vdu, cluster, *selectors(vdu))


def selectors(vdu: str) -> tuple[str, str]:
    return f"{OF_CLUSTER}=plum", f"{OF_DEPLOYMENT}=plum-{vdu.lower()}"


def groups(cluster: Cluster) -> set[str]:
    """The MachineDeployments of the cluster."""
    return {one["metadata"]["name"] for one in staying(cluster, f"{OF_CLUSTER}=plum", kind="MachineDeployment")}


def has_followed(vnf: Vnf, former: str, cluster: Cluster) -> bool:
    try:
        found = reported(vnf, "Batch")
        return former not in found and found == machines(cluster, *selectors("Batch"))
    except KeyError:  # a Machine that is no node yet
        return False
