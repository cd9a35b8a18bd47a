# SPDX-License-Identifier: Apache-2.0
"""Instances that change hands: made by Tacker's own Kubernetes driver and taken over by ours, and the other way round."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..client import Client
from ..cluster import INVENTORY, Cluster
from ..conftest import Onboard, Use
from ..objects import Object, config_map, deployment, make, namespace
from ..packages import Package, paths
from ..testbed import bed as testbed
from ..testbed.processes import until
from ..testbed.tacker import OWN_DRIVER, TACKERS_DRIVER
from ..vnf import SYNCHRONIZED, Vnf, purge

pytestmark = pytest.mark.alone("tacker")

# Instantiated in the namespace `default`: Tacker's driver puts everything there that it does not forget.
ROLE = make("rbac.authorization.k8s.io/v1", "Role", "reader", "tackers", rules=[])
POD = make("v1", "Pod", "single", spec={"terminationGracePeriodSeconds": 0, "containers": [{"name": "web", "image": "nginx"}]})


def ports(*names: str) -> Object:
    """A Deployment with so many names of one port: a POST accepts it, and no server-side apply can touch it."""
    made = deployment("ports")
    [container] = made["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": name, "containerPort": 8000} for name in names]
    return made


PACKAGE = Package(
    {"all.yaml": [namespace("tackers"), ROLE, config_map("kept", "elsewhere", x="1", y="1"), config_map("old"),
                  deployment("web"), POD]},
    vdus={"Web": "web", "Single": "single"},
    counts={"Web": 1, "Single": 1},
)  # fmt: skip
PORTS = Package({}, vdus={"Ports": "ports"}, counts={"Ports": 1}, unchecked={"ports.yaml": ports("web", "metrics")})
MENDED = Package({"ports.yaml": ports("web")}, vdus={"Ports": "ports"}, counts={"Ports": 1})
NEW = Package(
    {"all.yaml": [config_map("kept", x="2"), config_map("new"), deployment("web"), POD]},
    vdus={"Web": "web", "Single": "single"},
    counts={"Web": 1, "Single": 1},
)
MANAGER = "OpenAPI-Generator"


@pytest.fixture
def new_package(tacker: Client, tmp_path: Path) -> Iterator[str]:
    """Its VNFD id."""
    info = tacker.onboard(NEW.make(tmp_path / "new.csar"))
    yield info["vnfdId"]
    tacker.delete_package(info["id"])


def test_ours_takes_over_what_tackers_driver_has_made(use: Use, new_package: str, vnf: Vnf, tacker: Client, cluster: Cluster):
    use(TACKERS_DRIVER)
    vnf.instantiate("all.yaml", namespace="default")
    vnf.scale_out("Web")
    made = cluster.of(vnf.id)
    pods = uids(cluster)

    use(OWN_DRIVER)
    vnf.scale_out("Web")
    assert replicas(cluster) == 3
    assert cluster.of(vnf.id) == made
    assert pods.items() < uids(cluster).items()
    assert not [live for live in owned(cluster) if MANAGER in managers(live)]

    [single] = vnf.vnfcs("Single")
    vnf.wait(tacker.heal(vnf.id, [f"Single-{single['id']}"]))
    assert uids(cluster)["single"] != pods["single"]

    vnf.wait(tacker.heal(vnf.id))
    assert cluster.of(vnf.id) == made
    assert len(vnf.vnfcs("Web")) == 3

    healed = uids(cluster)
    change(tacker, vnf, new_package)
    kept = cluster.get("ConfigMap", "kept", "default")
    assert kept is not None and kept["data"] == {"x": "2"}
    there = ["ConfigMap default/kept", "ConfigMap default/new", "Deployment default/web", "Pod default/single"]
    assert cluster.of(vnf.id) == there
    assert uids(cluster) == healed

    vnf.terminate()
    assert cluster.leftovers([vnf.id]) == []


def test_an_object_that_no_apply_can_touch_is_scaled_healed_and_mended(
    use: Use, onboard: Onboard, make_vnf: Callable[[str], Vnf], tacker: Client, cluster: Cluster
):
    broken = onboard(PORTS)
    vnf = make_vnf(broken)
    use(TACKERS_DRIVER)
    vnf.instantiate("ports.yaml", namespace="default")
    use(OWN_DRIVER)
    vnf.scale_out("Ports")
    assert (replicas(cluster, "ports"), named_ports(cluster)) == (2, {"web", "metrics"})
    [first, _] = vnf.vnfcs("Ports")
    vnf.wait(tacker.heal(vnf.id, [f"Ports-{first['id']}"]))
    assert named_ports(cluster) == {"web", "metrics"}
    operation = vnf.begin_change(broken, "ports.yaml")
    assert "ports.yaml, document 1, Deployment ports" in vnf.failure(operation)["detail"]
    vnf.give_up(operation)
    vnf.change(onboard(MENDED), "ports.yaml")
    assert (replicas(cluster, "ports"), named_ports(cluster)) == (2, {"web"})
    vnf.terminate()
    assert cluster.leftovers([vnf.id]) == []


def named_ports(cluster: Cluster) -> set[str]:
    live = cluster.get("Deployment", "ports", "default", "apps/v1")
    assert live is not None
    return {one["name"] for one in live["spec"]["template"]["spec"]["containers"][0]["ports"]}


def test_ours_synchronizes_and_terminates_what_tackers_driver_has_made(use: Use, vnf: Vnf, cluster: Cluster):
    use(TACKERS_DRIVER)
    vnf.instantiate("all.yaml", namespace="default")
    use(OWN_DRIVER)
    cluster.scale("Deployment", "web", "default", "apps/v1", 2)
    assert until(lambda: (len(vnf.vnfcs("Web")), vnf.level("Web")) == (2, 1), SYNCHRONIZED)
    vnf.terminate()
    assert cluster.leftovers([vnf.id]) == []
    assert cluster.get("Namespace", "tackers") is None


def test_tackers_driver_goes_on_with_what_ours_has_made(
    use: Use, new_package: str, make_vnf: Callable[[str], Vnf], tacker: Client, cluster: Cluster, bed: testbed.Environment
):
    vnf = make_vnf(new_package)
    vnf.instantiate("all.yaml")
    use(TACKERS_DRIVER)
    vnf.scale_out("Web")
    assert replicas(cluster) == 2
    vnf.wait(tacker.heal(vnf.id, [f"Single-{vnf.vnfcs('Single')[0]['id']}"]))

    use(OWN_DRIVER)
    vnf.scale_out("Web")
    assert replicas(cluster) == 3
    assert not [live for live in owned(cluster) if MANAGER in managers(live)]

    use(TACKERS_DRIVER)
    vnf.scale_in("Web")
    assert replicas(cluster) == 2
    vnf.terminate()
    assert cluster.of(vnf.id) == []
    assert len(cluster.all("ConfigMap", "default", f"{INVENTORY}={vnf.id}")) == 1
    purge(vnf.id, bed)
    assert cluster.leftovers([vnf.id]) == []


def change(tacker: Client, vnf: Vnf, package: str) -> None:
    params = {"upgrade_type": "RollingUpdate", "vdu_params": [], "lcm-kubernetes-def-files": paths(["all.yaml"])}
    vnf.wait(tacker.change_package(vnf.id, package, params))


def owned(cluster: Cluster) -> list[Object]:
    found = [cluster.get("ConfigMap", "kept", "default"), cluster.get("Deployment", "web", "default", "apps/v1")]
    return [live for live in (*found, cluster.get("Pod", "single", "default")) if live is not None]


def managers(live: Object) -> set[str]:
    return {entry["manager"] for entry in live["metadata"]["managedFields"]}


def uids(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.all("Pod", "default")}


def replicas(cluster: Cluster, name: str = "web") -> int:
    live = cluster.get("Deployment", name, "default", "apps/v1")
    assert live is not None
    return int(live["spec"]["replicas"])
