# SPDX-License-Identifier: Apache-2.0
"""Machine templates are immutable: a change of their content under the same name makes others, and replaces all Machines."""

from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..sample_onboarding import Sample
from .clusters import (
    BOOTSTRAP,
    CLONED_FROM,
    INFRASTRUCTURE,
    OF_CLUSTER,
    OF_CONTROL_PLANE,
    OF_DEPLOYMENT,
    PLAIN,
    WORKERS,
    agreed,
    package,
    parameters,
    staying,
    templates,
)

OF_WORKERS = (f"{OF_CLUSTER}=white", f"{OF_DEPLOYMENT}=white-workers")
GREETS = package(
    {"workers.yaml": WORKERS.replace("format: cloud-config", "format: cloud-config\n      preKubeadmCommands: [hostname]")}, {}
)


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
    agreed(white, "Workers", cluster, *OF_WORKERS)

    never = {"MACHINE_STARTUP": "90m"}
    operation = white.begin_change(sample.vnfd_id, *sample.files, wait_timeout=30, parameters=never)
    assert "white" in white.failure(operation)["detail"]
    white.roll_back(operation)
    assert templates(cluster, "white") == named(cluster) == second
    assert len(agreed(white, "Workers", cluster, *OF_WORKERS)) == 1


def named(cluster: Cluster) -> set[str]:
    """The templates of the instance that exist."""
    found = staying(cluster, kind="DevMachineTemplate", api_version=INFRASTRUCTURE)
    return {name for one in found if (name := one["metadata"]["name"]).startswith("white-")}


def test_a_changed_bootstrap_template_replaces_the_workers_alone(
    samples: dict[str, Sample], onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster
):
    del samples
    of_all = f"{OF_CLUSTER}=cream"
    of_workers = (of_all, f"{OF_DEPLOYMENT}=cream-workers")
    plain, greets = onboard(PLAIN), onboard(GREETS)
    cream = make_vnf(plain)
    cream.instantiate(*PLAIN.files, wait_timeout=240, parameters=parameters("cream"))
    control_plane = agreed(cream, "ControlPlane", cluster, of_all, OF_CONTROL_PLANE)
    workers = agreed(cream, "Workers", cluster, *of_workers)

    cream.change(greets, *GREETS.files)
    replaced = agreed(cream, "Workers", cluster, *of_workers)
    assert len(replaced) == 1 and not replaced.keys() & workers.keys()
    assert agreed(cream, "ControlPlane", cluster, of_all, OF_CONTROL_PLANE) == control_plane
    [template] = [name for name in bootstraps(cluster) if name.startswith("cream-")]
    [config] = staying(cluster, of_all, f"{OF_DEPLOYMENT}=cream-workers", kind="KubeadmConfig", api_version=BOOTSTRAP)
    assert config["metadata"]["annotations"][CLONED_FROM] == template
    assert config["spec"]["preKubeadmCommands"] == ["hostname"]


def bootstraps(cluster: Cluster) -> set[str]:
    """The names of the bootstrap templates."""
    return {one["metadata"]["name"] for one in staying(cluster, kind="KubeadmConfigTemplate", api_version=BOOTSTRAP)}
