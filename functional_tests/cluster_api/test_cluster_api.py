# SPDX-License-Identifier: Apache-2.0
"""The main job: Cluster API and a cluster that it makes, as two CNFs, with the unmodified controllers in real pods."""

import pytest

from ..client import Body
from ..cluster import Cluster
from ..conftest import MakeVnf
from ..sample_onboarding import Sample
from ..testbed.processes import until
from .clusters import (
    CORE,
    INFRASTRUCTURE,
    OF_CLUSTER,
    OF_CONTROL_PLANE,
    OF_DEPLOYMENT,
    agreed,
    conditions,
    follows_a_replacement,
    reported,
    staying,
)

ALL = f"{OF_CLUSTER}=blue"
CONTROL_PLANE, WORKERS = (ALL, OF_CONTROL_PLANE), (ALL, f"{OF_DEPLOYMENT}=blue-workers")


@pytest.mark.parametrize("vim_with", ["workload_cluster_role.yaml"], indirect=True)
def test_a_workload_cluster_is_made_scaled_healed_upgraded_and_terminated(
    samples: dict[str, Sample], vim_with: Body, make_vnf: MakeVnf, cluster: Cluster
):
    """With the role of the operator guide."""
    sample = samples["cluster_api_workload"]
    blue = make_vnf(sample.vnfd_id)
    given = {"CLUSTER_NAME": "blue", "WORKERS": 2}
    blue.wait(blue.begin_instantiate(*sample.files, vim=vim_with, wait_timeout=240, parameters=given))
    assert conditions(cluster.get("Cluster", "blue", "default", CORE))["Available"] == "True"
    assert len(agreed(blue, "ControlPlane", cluster, *CONTROL_PLANE)) == 1
    assert len(agreed(blue, "Workers", cluster, *WORKERS)) == 2

    blue.scale_in("workers", 2)
    assert agreed(blue, "Workers", cluster, *WORKERS) == {}
    blue.scale_out("workers", 5)
    five = agreed(blue, "Workers", cluster, *WORKERS)
    newest = {vnfc["id"] for vnfc in blue.vnfcs("Workers")[:3]}
    blue.scale_in("workers", 3)
    workers = agreed(blue, "Workers", cluster, *WORKERS)
    assert len(five) == 5 and workers.keys() == five.keys() - newest

    chosen = min(workers)
    blue.heal(chosen)
    healed = agreed(blue, "Workers", cluster, *WORKERS)
    assert chosen not in healed and len(healed) == 2 and len(healed.keys() & workers.keys()) == 1

    assert follows_a_replacement(blue, "Workers", cluster, *WORKERS), "Tacker does not know of the new Machine"

    control_plane = blue.vnfcs("ControlPlane")[0]["id"]
    operation = blue.begin_heal(control_plane)
    assert "at most 0 may be unavailable" in blue.failure(operation)["detail"]
    blue.give_up(operation)

    blue.change(sample.vnfd_id, *sample.files, parameters={"KUBERNETES_VERSION": "v1.36.4"})
    assert [one["spec"]["version"] for one in staying(cluster, ALL)] == ["v1.36.4"] * 3
    agreed(blue, "Workers", cluster, *WORKERS)
    assert not reported(blue, "ControlPlane").keys() & {control_plane}

    operation = blue.begin_terminate()
    watch_the_end(cluster)
    blue.wait(operation)
    assert cluster.of(blue.id) == []
    assert cluster.all("Machine", "default", ALL, CORE) == []


def watch_the_end(cluster: Cluster) -> None:
    """While the Cluster is there, nobody has asked for the deletion of what its machines are made from."""

    def ended() -> bool:
        found = staying(cluster, kind="DevMachineTemplate", api_version=INFRASTRUCTURE)
        kept = [one for one in found if one["metadata"]["name"].startswith("blue-")]
        is_going = cluster.get("Cluster", "blue", "default", CORE) is not None
        assert not is_going or len(kept) == 2, "a template went before the Cluster"
        return not is_going

    assert until(ended, 120), "the Cluster is still there"
