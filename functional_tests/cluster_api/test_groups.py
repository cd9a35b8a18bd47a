# SPDX-License-Identifier: Apache-2.0
"""What comes and goes beside a running cluster: a group of workers, a Machine that Cluster API replaces, a pause."""

from pathlib import Path

import pytest

import sample_packages
from k8s_cr_driver.package.tosca_meta import MANIFESTS

from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..objects import Object, make
from ..packages import Package
from ..testbed.processes import until
from ..vnf import Vnf
from .clusters import CORE, OF_CLUSTER, OF_DEPLOYMENT, SYNCHRONIZED, Machine, agreed, machines, reported, staying

SAMPLE = Path(sample_packages.__file__).parent / "cluster_api_workload" / MANIFESTS
FILES = {path.name: path.read_text() for path in sorted(SAMPLE.iterdir())}
BATCH = FILES["workers.yaml"].replace("-workers", "-batch").replace("vdu: Workers", "vdu: Batch")
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
PARAMETERS = {
    "CLUSTER_NAME": TEXT, "KUBERNETES_VERSION": TEXT, "MACHINE_STARTUP": TEXT, "CONTROL_PLANES": NUMBER, "WORKERS": NUMBER
}  # fmt: skip
VDUS = {"ControlPlane": "control-plane", "Workers": "workers"}
GIVEN = {"CLUSTER_NAME": "plum", "KUBERNETES_VERSION": "v1.36.3", "MACHINE_STARTUP": "1s", "CONTROL_PLANES": 1, "WORKERS": 1}
REMEDIATE = "cluster.x-k8s.io/remediate-machine"
"""Annotation by which a user has a MachineHealthCheck replace a Machine (Cluster API book, "MachineHealthChecking")."""

pytestmark = pytest.mark.usefixtures("samples")


def health_check() -> Object:
    selector = {"matchLabels": {OF_CLUSTER: "plum", OF_DEPLOYMENT: "plum-batch"}}
    checks = {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]}
    return make(CORE, "MachineHealthCheck", "plum-batch", spec={"clusterName": "plum", "selector": selector, "checks": checks})


ONE = Package(FILES, VDUS, parameters=PARAMETERS)
TWO = Package({**FILES, "batch.yaml": BATCH, "health.yaml": health_check()}, {**VDUS, "Batch": "batch"}, parameters=PARAMETERS)


def test_a_group_of_workers_is_added_remediated_paused_and_removed(onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster):
    one, two = onboard(ONE), onboard(TWO)
    plum = make_vnf(one)
    plum.instantiate(*ONE.files, wait_timeout=240, parameters=GIVEN)

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

    cluster.change("Cluster", "plum", "default", CORE, spec={"paused": True})
    operation = plum.begin_scale("SCALE_OUT", "Batch", wait_timeout=45)
    assert "(Paused)" in plum.failure(operation)["detail"].splitlines()[1]
    cluster.change("Cluster", "plum", "default", CORE, spec={"paused": None})
    plum.retry(operation)
    assert len(of(plum, "Batch", cluster)) == 2

    plum.heal()
    assert len(of(plum, "Batch", cluster)) == 2 and len(of(plum, "Workers", cluster)) == 1

    plum.change(one, *ONE.files)
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
