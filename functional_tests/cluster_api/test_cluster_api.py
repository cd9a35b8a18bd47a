# SPDX-License-Identifier: Apache-2.0
"""The main job: Cluster API and a cluster that it makes, as two CNFs, with the unmodified controllers in real pods."""

from typing import Any

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf, OnboardSamples
from ..objects import Object
from ..testbed.processes import until
from ..vnf import Vnf

CORE = "cluster.x-k8s.io/v1beta2"
TEMPLATES = "infrastructure.cluster.x-k8s.io/v1beta2"
# Seconds, for a Machine to be replaced and Tacker's next look, which the bed has it take every 10 s.
SYNCHRONIZED = 120


@pytest.mark.alone("cert-manager", "cluster-api")
def test_a_workload_cluster_is_made_scaled_healed_upgraded_and_terminated(
    onboard_samples: OnboardSamples, make_vnf: MakeVnf, cluster: Cluster
):
    controllers, workload = onboard_samples("cluster_api_management", "cluster_api_workload")
    management = make_vnf(controllers.vnfd_id)
    management.instantiate(*controllers.files, wait_timeout=200)
    blue = make_vnf(workload.vnfd_id)
    blue.instantiate(*workload.files, wait_timeout=200, parameters={"CLUSTER_NAME": "blue", "WORKERS": 2})

    made = cluster.get("Cluster", "blue", "default", CORE)
    assert made and {"type": "Available", "status": "True"}.items() <= condition(made, "Available").items()
    assert len(reported_machines(blue, "ControlPlane")) == 1
    workers = reported_machines(blue, "Workers")
    assert workers == machines(cluster, "blue-workers") and len(workers) == 2

    blue.scale_out("workers")
    more = reported_machines(blue, "Workers")
    assert more == machines(cluster, "blue-workers") and len(more) == 3 and workers.items() < more.items()
    blue.scale_in("workers")
    assert reported_machines(blue, "Workers") == machines(cluster, "blue-workers")
    workers = reported_machines(blue, "Workers")
    assert len(workers) == 2

    chosen = min(workers)
    blue.heal(chosen)
    healed = reported_machines(blue, "Workers")
    assert healed == machines(cluster, "blue-workers") and len(healed) == 2
    assert chosen not in healed and len(healed.keys() & workers.keys()) == 1

    gone = min(healed)
    cluster.delete("Machine", gone, "default", CORE)
    assert until(lambda: has_all(blue, cluster, without=gone), SYNCHRONIZED), "Tacker does not know of the new Machine"

    control_plane = blue.vnfcs("ControlPlane")[0]["id"]
    operation = blue.begin_heal(control_plane)
    assert "at most 0 may be unavailable" in blue.failure(operation)["detail"]
    blue.give_up(operation)

    blue.change(workload.vnfd_id, *workload.files, parameters={"KUBERNETES_VERSION": "v1.36.4"})
    # Cluster API no longer counts a Machine that it deletes: the last old worker may still be being deleted.
    found = cluster.all("Machine", "default", api_version=CORE)
    upgraded = [one for one in found if "deletionTimestamp" not in one["metadata"]]
    assert {one["spec"]["version"] for one in upgraded} == {"v1.36.4"} and len(upgraded) == 3
    assert reported_machines(blue, "Workers") == machines(cluster, "blue-workers")
    assert not reported_machines(blue, "ControlPlane").keys() & {control_plane}

    operation = blue.begin_terminate()
    watch_the_end(cluster)
    blue.wait(operation)
    assert cluster.of(blue.id) == []
    assert cluster.all("Machine", "default", api_version=CORE) == []
    management.terminate()
    assert cluster.of(management.id) == []


def reported_machines(vnf: Vnf, vdu: str) -> dict[str, tuple[str, str]]:
    """The VNFCs of a VDU: name -> node and provider ID."""
    return {vnfc["id"]: (vnfc["metadata"]["node"], vnfc["metadata"]["providerID"]) for vnfc in vnf.vnfcs(vdu)}


def has_all(vnf: Vnf, cluster: Cluster, without: str) -> bool:
    """Does Tacker report two workers with their Nodes, both there, and not the one that is gone?"""
    there = {one["metadata"]["name"] for one in cluster.all("Machine", "default", api_version=CORE)}
    reported = {vnfc["id"]: "node" in (vnfc.get("metadata") or {}) for vnfc in vnf.vnfcs("Workers")}
    return len(reported) == 2 and all(reported.values()) and reported.keys() <= there - {without}


def machines(cluster: Cluster, deployment: str) -> dict[str, tuple[str, str]]:
    """The same as the cluster has it."""
    found = cluster.all("Machine", "default", f"cluster.x-k8s.io/deployment-name={deployment}", CORE)
    return {
        one["metadata"]["name"]: (one["status"]["nodeRef"]["name"], one["spec"]["providerID"])
        for one in found
        if "deletionTimestamp" not in one["metadata"]
    }


def condition(live: Object, type_: str) -> dict[str, Any]:
    [found] = [one for one in live["status"]["conditions"] if one["type"] == type_]
    return dict(found)


def watch_the_end(cluster: Cluster) -> None:
    """While the Cluster is there, nobody has asked for the deletion of what its machines are made from."""

    def ended() -> bool:
        templates = cluster.all("DevMachineTemplate", "default", api_version=TEMPLATES)
        is_going = cluster.get("Cluster", "blue", "default", CORE) is not None
        kept = [one for one in templates if "deletionTimestamp" not in one["metadata"]]
        assert not is_going or len(kept) == 2, "a template went before the Cluster"
        return not is_going

    assert until(ended, 120), "the Cluster is still there"
