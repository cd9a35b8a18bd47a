# SPDX-License-Identifier: Apache-2.0
"""Machine templates are immutable: a change of their content under the same name makes others, and replaces all Machines."""

from ..cluster import Cluster
from ..conftest import MakeVnf
from ..sample_onboarding import Sample
from .clusters import INFRASTRUCTURE, OF_CLUSTER, OF_DEPLOYMENT, agreed, staying, templates

WORKERS = (f"{OF_CLUSTER}=white", f"{OF_DEPLOYMENT}=white-workers")


def test_a_changed_template_replaces_all_machines_and_a_rollback_returns_to_the_former(
    samples: dict[str, Sample], make_vnf: MakeVnf, cluster: Cluster
):
    sample = samples["cluster_api_workload"]
    white = make_vnf(sample.vnfd_id)
    white.instantiate(*sample.files, wait_timeout=240, parameters={"CLUSTER_NAME": "white", "WORKERS": 1})
    first = templates(cluster, "white")
    assert first == named(cluster) == {"white-control-plane", "white-workers"}

    white.change(sample.vnfd_id, *sample.files, parameters={"MACHINE_STARTUP": "1s"})
    second = templates(cluster, "white")
    assert second == named(cluster) and len(second) == 2 and not first & second
    agreed(white, "Workers", cluster, *WORKERS)

    never = {"MACHINE_STARTUP": "90m"}
    operation = white.begin_change(sample.vnfd_id, *sample.files, wait_timeout=30, parameters=never)
    assert "white" in white.failure(operation)["detail"]
    white.roll_back(operation)
    assert templates(cluster, "white") == named(cluster) == second
    assert len(agreed(white, "Workers", cluster, *WORKERS)) == 1


def named(cluster: Cluster) -> set[str]:
    """The templates of the instance that exist."""
    found = staying(cluster, kind="DevMachineTemplate", api_version=INFRASTRUCTURE)
    return {name for one in found if (name := one["metadata"]["name"]).startswith("white-")}
