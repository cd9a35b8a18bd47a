# SPDX-License-Identifier: Apache-2.0
"""The infrastructure provider is not there, or does not run: the message names the object on which nobody acts."""

from collections.abc import Callable, Iterator

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..families import PROVIDER
from ..sample_onboarding import Sample
from ..testbed.processes import until
from .clusters import CORE, INFRASTRUCTURE, OF_CLUSTER, PLAIN, package, parameters

DEPLOYMENT = ("Deployment", "capd-controller-manager", "capd-system", "apps/v1")
# Seconds: more than a controller has for its next write, and than a cluster takes.
STUCK, PATIENT = 45, 150
OTHER = package({"cluster.yaml": str(PLAIN.files["cluster.yaml"]).replace("DevCluster", "OpenStackCluster")}, {})
"""Of a provider that the management cluster has not."""

Scale = Callable[[int], None]


@pytest.fixture
def provider(cluster: Cluster) -> Iterator[Scale]:
    """Scales it, and waits until its Pod runs; at the end it runs again."""

    def scale(count: int) -> None:
        cluster.scale(*DEPLOYMENT, count)
        assert until(lambda: available(cluster) == count, 60)

    yield scale
    scale(1)


def available(cluster: Cluster) -> int:
    kind, name, namespace, api_version = DEPLOYMENT
    live = cluster.get(kind, name, namespace, api_version)
    return int((live or {"status": {}})["status"].get("availableReplicas", 0))


@pytest.mark.alone(PROVIDER)
def test_the_object_on_which_nobody_acts_is_the_first_cause(
    samples: dict[str, Sample], make_vnf: MakeVnf, cluster: Cluster, provider: Scale
):
    sample = samples["cluster_api_workload"]
    black = make_vnf(sample.vnfd_id)
    operation = black.begin_instantiate(
        *sample.files, wait_timeout=STUCK, parameters={"CLUSTER_NAME": "black", "WORKERS": 0}
    )
    assert until(lambda: cluster.get("DevCluster", "black", "default", INFRASTRUCTURE), 20, 0.05)
    provider(0)
    cause = first_cause(black.failure(operation)["detail"])
    assert cause.startswith("DevCluster.infrastructure.cluster.x-k8s.io default/black: Waiting (NobodyActs)")
    provider(1)
    black.roll_back(operation)

    black = make_vnf(sample.vnfd_id)
    black.instantiate(*sample.files, wait_timeout=PATIENT, parameters={"CLUSTER_NAME": "black", "WORKERS": 0})
    provider(0)
    operation = black.begin_terminate(wait_timeout=STUCK)
    cause = first_cause(black.failure(operation)["detail"])
    assert cause.startswith("DevMachine.infrastructure.cluster.x-k8s.io default/black-control-plane-")
    assert "(NobodyActs)" in cause and "dockermachine.infrastructure.cluster.x-k8s.io hold it" in cause
    provider(1)
    black.retry(operation)
    assert cluster.all("Machine", "default", f"{OF_CLUSTER}=black", CORE) == []


def test_a_provider_that_is_not_installed_is_named_before_anything_is_written(
    samples: dict[str, Sample], onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster
):
    del samples
    vnf = make_vnf(onboard(OTHER))
    detail = vnf.refusal(*OTHER.files, parameters=parameters("grape"))["detail"]
    assert "OpenStackCluster" in detail.splitlines()[0], detail
    assert cluster.of(vnf.id) == []


def first_cause(detail: str) -> str:
    """The line after the headline."""
    return detail.splitlines()[1]
