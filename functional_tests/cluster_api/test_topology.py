# SPDX-License-Identifier: Apache-2.0
"""A cluster that a ClusterClass describes: its VDUs are parts of the Cluster, which alone has their counts."""

from pathlib import Path

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard, Use
from ..objects import Object
from ..packages import Package
from ..sample_onboarding import Sample, manifests
from ..testbed.processes import until
from ..testbed.tacker import OWN_DRIVER, TACKERS_DRIVER
from ..vnf import Vnf
from .clusters import (
    CONTROL_PLANES,
    CORE,
    INFRASTRUCTURE,
    OF_CLUSTER,
    OF_CONTROL_PLANE,
    OF_ENTRY,
    PARAMETERS,
    SYNCHRONIZED,
    agreed,
    conditions,
    follows_a_replacement,
    machines,
    parameters,
    paused,
    staying,
)

_GROUP = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
AUTOSCALED = f"metadata: {{annotations: {{{_GROUP}-min-size: '1', {_GROUP}-max-size: '5'}}}}"
ALL = f"{OF_CLUSTER}=green"
CONTROL_PLANE, WEB, BATCH = (ALL, OF_CONTROL_PLANE), (ALL, f"{OF_ENTRY}=web"), (ALL, f"{OF_ENTRY}=batch")


def test_a_cluster_of_a_class_is_made_scaled_healed_upgraded_and_terminated(
    samples: dict[str, Sample], make_vnf: MakeVnf, cluster: Cluster
):
    sample = samples["cluster_api_workload_topology"]
    green = make_vnf(sample.vnfd_id)
    green.instantiate(*sample.files, wait_timeout=240, parameters={"CLUSTER_NAME": "green"})
    made = conditions(cluster.get("Cluster", "green", "default", CORE))
    assert made["Available"] == made["TopologyReconciled"] == "True"
    control_plane = agreed(green, "ControlPlane", cluster, *CONTROL_PLANE)
    batch = agreed(green, "Batch", cluster, *BATCH)
    assert [len(one) for one in (control_plane, batch, agreed(green, "Web", cluster, *WEB))] == [1, 1, 1]

    green.scale_in("web")
    assert agreed(green, "Web", cluster, *WEB) == {}
    green.scale_out("web", 2)
    web = agreed(green, "Web", cluster, *WEB)
    green.scale_out("batch")
    assert len(web) == 2 and agreed(green, "Batch", cluster, *BATCH).items() > batch.items()
    green.scale_in("batch")

    chosen = min(web)
    green.heal(chosen)
    healed = agreed(green, "Web", cluster, *WEB)
    assert chosen not in healed and len(healed) == 2 and len(healed.keys() & web.keys()) == 1
    assert follows_a_replacement(green, "Web", cluster, *WEB), "Tacker does not know of the new Machine"

    operation = green.begin_change(sample.vnfd_id, *sample.files, parameters={"KUBERNETES_VERSION": "v1.38.0"})
    assert "upgrades by one minor version; go to v1.37 first" in green.failure(operation)["detail"]
    green.give_up(operation)
    green.change(sample.vnfd_id, *sample.files, parameters={"KUBERNETES_VERSION": "v1.37.0"})
    assert [one["spec"]["version"] for one in staying(cluster, ALL)] == ["v1.37.0"] * 4
    assert not agreed(green, "ControlPlane", cluster, *CONTROL_PLANE).keys() & control_plane.keys()
    assert len(agreed(green, "Web", cluster, *WEB)) == 2 and len(agreed(green, "Batch", cluster, *BATCH)) == 1

    green.terminate()
    assert cluster.of(green.id) == []
    assert cluster.all("Machine", "default", ALL, CORE) == []


def test_a_class_whose_template_has_changed_replaces_all_machines(
    samples: dict[str, Sample], make_vnf: MakeVnf, cluster: Cluster
):
    sample = samples["cluster_api_workload_topology"]
    grey = make_vnf(sample.vnfd_id)
    grey.instantiate(*sample.files, wait_timeout=240, parameters={"CLUSTER_NAME": "grey", "BATCH": 0})
    of_grey = f"{OF_CLUSTER}=grey"
    before = {one["metadata"]["name"] for one in staying(cluster, of_grey)}
    grey.change(sample.vnfd_id, *sample.files, parameters={"MACHINE_STARTUP": "1s"})
    made = staying(cluster, of_grey, kind="DevMachine", api_version=INFRASTRUCTURE)
    times = {one["spec"]["backend"]["inMemory"]["vm"]["provisioning"]["startupDuration"] for one in made}
    assert times == {"1s"} and len(made) == 2
    assert not before & {one["metadata"]["name"] for one in staying(cluster, of_grey)}
    assert len(staying(cluster, of_grey, kind="KubeadmControlPlane", api_version=CONTROL_PLANES)) == 1


def test_a_cluster_gets_another_class(
    samples: dict[str, Sample], onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster, tmp_path: Path
):
    """Only what the classes differ in replaces Machines: nothing here (Cluster API book, "Rebase a Cluster")."""
    del samples
    files = manifests("cluster_api_workload_topology", tmp_path)
    former = of_class(files)
    other = of_class({name: text.replace("-in-memory", "-simulated") for name, text in files.items()})
    pink = make_vnf(onboard(former))
    pink.instantiate(*former.files, wait_timeout=240, parameters={**parameters("pink"), "WEB": 1, "BATCH": 0})
    of_pink = f"{OF_CLUSTER}=pink"
    before = machines(cluster, of_pink)
    assert len(before) == 2 and classes(cluster) == {"pink-in-memory"}

    pink.change(onboard(other), *other.files)
    live = cluster.get("Cluster", "pink", "default", CORE)
    assert live and live["spec"]["topology"]["classRef"]["name"] == "pink-simulated"
    assert machines(cluster, of_pink) == before
    assert classes(cluster) == {"pink-simulated"}


def classes(cluster: Cluster) -> set[str]:
    found = staying(cluster, kind="ClusterClass")
    return {name for one in found if (name := one["metadata"]["name"]).startswith("pink-")}


def of_class(files: dict[str, str]) -> Package:
    numbers = {name: {"type": "integer"} for name in ("WEB", "BATCH")}
    vdus = {"ControlPlane": "control-plane", "Web": "web", "Batch": "batch"}
    return Package(files, vdus, parameters={**PARAMETERS, **numbers})


def test_one_of_the_counts_of_a_cluster_is_rolled_back_synchronized_or_left_to_the_autoscaler(
    samples: dict[str, Sample], onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster, tmp_path: Path
):
    del samples
    files = manifests("cluster_api_workload_topology", tmp_path)
    package = of_class({**files, "cluster.yaml": files["cluster.yaml"].replace("replicas: ${BATCH}", AUTOSCALED)})
    rose = make_vnf(onboard(package))
    rose.instantiate(*package.files, wait_timeout=240, parameters={**parameters("rose"), "WEB": 2, "BATCH": 0})
    assert counts(cluster) == {"web": 2, "batch": None} and numbers(rose) == (1, 2, 1)
    with paused(cluster, "rose"):
        operation = rose.begin_scale("SCALE_OUT", "Web", wait_timeout=10)
        rose.failure(operation)
        assert counts(cluster) == {"web": 3, "batch": None}
    rose.roll_back(operation)
    assert counts(cluster) == {"web": 2, "batch": None} and numbers(rose) == (1, 2, 1)

    [group] = staying(cluster, f"{OF_CLUSTER}=rose", f"{OF_ENTRY}=batch", kind="MachineDeployment")
    cluster.scale("MachineDeployment", group["metadata"]["name"], "default", CORE, 2)
    assert until(lambda: numbers(rose) == (1, 2, 2), SYNCHRONIZED), "Tacker does not know of the autoscaler's Machine"
    rose.scale_out("Web")
    assert numbers(rose) == (1, 3, 2)

    entries = [{**entry, "replicas": 2} if entry["name"] == "web" else entry for entry in entries_of(cluster)]
    cluster.change("Cluster", "rose", "default", CORE, spec={"topology": {"workers": {"machineDeployments": entries}}})
    assert until(lambda: numbers(rose) == (1, 2, 2), SYNCHRONIZED), "Tacker still reports the Machine that a user removed"

    operation = rose.begin_scale("SCALE_OUT", "Batch")
    assert "the cluster autoscaler sets it" in rose.failure(operation)["detail"]
    rose.give_up(operation)


@pytest.mark.alone("tacker")
def test_the_counts_of_a_cluster_outlast_tackers_driver(
    samples: dict[str, Sample], onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster, use: Use, tmp_path: Path
):
    """It knows no Cluster: its operations fail before they change anything, and this driver rolls them back."""
    del samples
    package = of_class(manifests("cluster_api_workload_topology", tmp_path))
    rose = make_vnf(onboard(package))
    rose.instantiate(*package.files, wait_timeout=240, parameters={**parameters("rose"), "WEB": 2, "BATCH": 1})
    use(TACKERS_DRIVER)
    operation = rose.begin_scale("SCALE_OUT", "Web")
    assert "no attribute 'Cluster'" in rose.failure(operation)["detail"]

    use(OWN_DRIVER)
    rose.roll_back(operation)
    assert numbers(rose) == (1, 2, 1) and counts(cluster) == {"web": 2, "batch": 1}
    rose.scale_out("Batch")
    assert counts(cluster) == {"web": 2, "batch": 2} and numbers(rose) == (1, 2, 2)
    rose.scale_out("Web")
    assert counts(cluster) == {"web": 3, "batch": 2} and numbers(rose) == (1, 3, 2)
    rose.terminate()
    assert cluster.of(rose.id) == []


def numbers(vnf: Vnf) -> tuple[int, int, int]:
    control_planes, web, batch = (len(vnf.vnfcs(vdu)) for vdu in ("ControlPlane", "Web", "Batch"))
    return control_planes, web, batch


def entries_of(cluster: Cluster) -> list[Object]:
    """The groups of workers of the Cluster `rose`."""
    live = cluster.get("Cluster", "rose", "default", CORE) or {}
    return list(live["spec"]["topology"]["workers"]["machineDeployments"])


def counts(cluster: Cluster) -> dict[str, int | None]:
    return {one["name"]: one.get("replicas") for one in entries_of(cluster)}
