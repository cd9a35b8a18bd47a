# SPDX-License-Identifier: Apache-2.0
"""How many Machines a control plane can have: an odd number where etcd runs on them, and never none."""

from __future__ import annotations

import pytest

from k8s_cr_driver.capi.contract import CONTROL_PLANE_GROUP
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.registry import resource_for
from tests.instance import obj

ETCD = {"clusterConfiguration": {"etcd": {"external": {"endpoints": ["https://192.0.2.1:2379"]}}}}


def control_plane(kind: str = "KubeadmControlPlane", external_etcd: str = "", **spec: Object) -> CustomResource:
    manifest = obj(f"{CONTROL_PLANE_GROUP}/v1", kind, "blue", "default", spec={"replicas": 1, **spec})
    if external_etcd:
        manifest["metadata"]["annotations"] = {"k8s-cr-driver/external-etcd": external_etcd}
    return resource_for(manifest)


def refused(one: CustomResource) -> list[int]:
    return [count for count in range(6) if one.scaling().error(count)]


@pytest.mark.parametrize("kind", ["KubeadmControlPlane", "OtherControlPlane"])
def test_a_control_plane_with_etcd_has_an_odd_number_of_machines(kind: str) -> None:
    assert refused(control_plane(kind)) == [0, 2, 4]
    assert refused(control_plane(kind, external_etcd="false")) == [0, 2, 4]


@pytest.mark.parametrize(
    "one",
    [
        control_plane(kubeadmConfigSpec=ETCD),
        control_plane(external_etcd="true"),
        control_plane("OtherControlPlane", external_etcd="true"),
    ],
)
def test_with_etcd_elsewhere_any_number_but_none_is_possible(one: CustomResource) -> None:
    assert refused(one) == [0]


def test_the_etcd_of_another_kind_is_not_read_where_kubeadm_has_it() -> None:
    assert refused(control_plane("OtherControlPlane", kubeadmConfigSpec=ETCD)) == [0, 2, 4]


@pytest.mark.parametrize("counts", [{"replicas": 2}, {"availableReplicas": 2}, {"upToDateReplicas": 2}, {"replicas": 4}])
def test_a_control_plane_that_is_available_with_other_counts_than_its_spec_has_is_not_ready(counts: dict[str, int]) -> None:
    """As after a scale from one to three, when etcd has its quorum and the third Machine only exists."""
    found = dict.fromkeys(("replicas", "availableReplicas", "upToDateReplicas"), 3)
    assert health(found).state is State.READY
    assert health(found | counts).reason == "ReplicasNotReady"


def health(counts: dict[str, int]) -> Health:
    """Of a control plane of three that reports to be available."""
    one = control_plane(replicas=3)
    status = {"conditions": [{"type": "Available", "status": "True"}], **counts}
    return one.health({**one.manifest, "status": status})
