# SPDX-License-Identifier: Apache-2.0
"""Custom resources of other projects, with their own controllers in real pods: the driver knows none of their kinds."""

from collections.abc import Iterator
from typing import Any

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf, OnboardSamples
from ..testbed.kubernetes import NODE
from ..testbed.processes import until

ISTIO = "networking.istio.io/v1"


def test_prometheus_is_scaled_by_its_shards(onboard_samples: OnboardSamples, make_vnf: MakeVnf, cluster: Cluster):
    """The operator makes a StatefulSet of each shard, which none of the driver's classes knows of."""
    [sample] = onboard_samples("prometheus_operator")
    vnf = make_vnf(sample.vnfd_id)
    vnf.instantiate(*sample.files, wait_timeout=180)

    def agree(shards: int) -> bool:
        reported = {vnfc["id"] for vnfc in vnf.vnfcs("Prometheus")}
        return len(reported) == shards and reported == living(cluster, "app.kubernetes.io/name=prometheus")

    assert agree(1)
    vnf.scale_out("shards")
    assert agree(2)
    vnf.scale_in("shards")
    assert agree(1)
    vnf.terminate()
    assert cluster.leftovers([vnf.id]) == []


def living(cluster: Cluster, selector: str) -> set[str]:
    """Pods whose time has not come, nor that of what controls them."""
    sets = {one["metadata"]["uid"] for one in cluster.all("StatefulSet", "default", api_version="apps/v1") if stays(one)}
    pods = [pod for pod in cluster.all("Pod", "default", selector) if stays(pod)]
    return {pod["metadata"]["name"] for pod in pods if pod["metadata"]["ownerReferences"][0]["uid"] in sets}


def stays(live: dict[str, Any]) -> bool:
    return "deletionTimestamp" not in live["metadata"]


def test_routing_of_istio_follows_its_parameters(onboard_samples: OnboardSamples, make_vnf: MakeVnf, cluster: Cluster):
    [sample] = onboard_samples("istio")
    vnf = make_vnf(sample.vnfd_id)
    weights = {"STABLE_WEIGHT": 70, "CANARY_WEIGHT": 30}
    vnf.instantiate(*sample.files, parameters={"HOST": "shop.example.com", **weights}, wait_timeout=180)
    routing = cluster.get("VirtualService", "web", "default", ISTIO)
    assert routing is not None and "status" not in routing
    assert routing["spec"]["hosts"] == ["shop.example.com"]
    assert [route["weight"] for route in routing["spec"]["http"][1]["route"]] == [70, 30]
    for kind in ("Gateway", "DestinationRule"):
        assert cluster.get(kind, "web", "default", ISTIO)
    vnf.terminate()
    assert cluster.leftovers([vnf.id]) == []


@pytest.fixture
def discovered_node(cluster: Cluster) -> Iterator[None]:
    """With a label of Node Feature Discovery, without which the GPU operator waits."""
    label = "feature.node.kubernetes.io/system-os_release.ID"
    cluster.change("Node", NODE, metadata={"labels": {label: "debian"}})
    yield
    cluster.change("Node", NODE, metadata={"labels": {label: None}})


@pytest.mark.usefixtures("discovered_node")
def test_the_gpu_operator_says_that_its_policy_is_ready(onboard_samples: OnboardSamples, make_vnf: MakeVnf, cluster: Cluster):
    [sample] = onboard_samples("gpu_operator")
    vnf = make_vnf(sample.vnfd_id)
    vnf.instantiate(*sample.files, wait_timeout=180)
    [policy] = cluster.all("ClusterPolicy", api_version="nvidia.com/v1")
    assert policy["status"]["state"] == "ready"
    vnf.terminate()
    assert until(lambda: cluster.leftovers([vnf.id]) == [], 20)


@pytest.mark.alone("cert-manager")
def test_certificates_are_issued_and_their_keys_go_with_them(
    onboard_samples: OnboardSamples, make_vnf: MakeVnf, cluster: Cluster
):
    controllers, certificates = onboard_samples("cert_manager", "certificates")
    manager = make_vnf(controllers.vnfd_id)
    manager.instantiate(*controllers.files, wait_timeout=120)
    web = make_vnf(certificates.vnfd_id)
    web.instantiate(*certificates.files, parameters={"NAME": "web", "DNS_NAME": "web.example.com"})

    authority, issued = (cluster.get("Secret", name, "default") for name in ("web-authority", "web"))
    assert authority and issued
    assert issued["data"]["ca.crt"] == authority["data"]["tls.crt"] != issued["data"]["tls.crt"]

    web.terminate()
    assert cluster.get("Secret", "web", "default") is None
    manager.terminate()
    assert cluster.of(manager.id) == []
