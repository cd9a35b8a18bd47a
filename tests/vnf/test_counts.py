# SPDX-License-Identifier: Apache-2.0
"""The counts that a scale asks for, and those that are refused before anything is sent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import counts
from tests.instance import crontab, obj, scalable

AUTOSCALED = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"


def control_plane(replicas: int) -> CustomResource:
    kind = "KubeadmControlPlane"
    return resource_for(obj("controlplane.cluster.x-k8s.io/v1", kind, "blue", "default", spec={"replicas": replicas}))


def workers(replicas: int, **annotations: str) -> CustomResource:
    manifest = obj("cluster.x-k8s.io/v1", "MachineDeployment", "blue", "default", spec={"replicas": replicas})
    manifest["metadata"]["annotations"] = annotations
    return resource_for(manifest)


def test_a_control_plane_is_scaled_by_two() -> None:
    assert counts.of(counts.scaled({"ControlPlane": control_plane(1)}, {"ControlPlane": 2})) == {"ControlPlane": 3}


def test_workers_are_scaled_to_none() -> None:
    assert counts.of(counts.scaled({"Workers": workers(2)}, {"Workers": -2})) == {"Workers": 0}


def test_a_count_that_others_have_set_before_is_not_refused() -> None:
    """A rollback restores it, and a change of package keeps it."""
    even = {"ControlPlane": control_plane(2)}
    assert counts.of(counts.scaled(even, {"ControlPlane": 0})) == {"ControlPlane": 2}
    counts.check(even, even)


def test_the_counts_of_all_vdus_are_limited_together() -> None:
    before = {"A": control_plane(3), "B": workers(3)}
    with pytest.raises(InvalidRequest, match=r"the VDUs have 7 VNFCs together and may have 6; .*\[k8s_cr\] max_vnfcs"):
        counts.scaled(before, {"B": 1}, 6)
    counts.scaled(before, {"B": -1}, 4)


def test_a_step_of_none_changes_nothing_of_a_kind_without_a_count() -> None:
    tab = resource_for(crontab("tab"))
    assert counts.scaled({"Tab": tab}, {"Tab": 0}) == {"Tab": tab}


def sized(**spec: int) -> CustomResource:
    tab = crontab("tab")
    tab["spec"].update(spec)
    return CustomResource(tab, scalable())


UNNAMED = r"VDU A is CronTab\.\S+ default/tab, spec\.size: names no count .* whose manifest names the count"
OF_OTHERS = rf"default/blue\. .*cluster autoscaler.*{re.escape(AUTOSCALED)}; change these"
EVEN = r"VDU A is KubeadmControlPlane\.\S+ default/blue, spec\.replicas: cannot be 2: .*scale in steps of two"


@pytest.mark.parametrize(
    ("scaled", "change", "words"),
    [
        (control_plane(1), 1, EVEN),
        (control_plane(1), -1, r"spec\.replicas: cannot be 0: .*terminate the VNF instance"),
        (workers(2, **{AUTOSCALED: "5"}), 1, OF_OTHERS),
        (sized(), 1, UNNAMED),
        (sized(), -1, UNNAMED),
        (resource_for(crontab("tab")), 1, "has no count to scale"),
    ],
)
def test_a_scale_that_is_refused_names_the_field_and_the_remedy(scaled: CustomResource, change: int, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        counts.scaled({"A": scaled}, {"A": change})


def test_a_count_that_nothing_names_is_neither_recorded_nor_carried_over() -> None:
    assert counts.recorded({"A": sized(), "B": sized(size=2)}) == {"B": 2}
    for wanted in (sized(), sized(size=3)):
        assert counts.carried_over({"A": sized()}, {}, {"A": wanted})["A"].manifest == wanted.manifest


@pytest.mark.parametrize("policy", ["InstantiationLevels", "VduInstantiationLevels"])
def test_a_level_may_be_in_either_policy(policy: str) -> None:
    class Vnfd:
        def get_policy_values_by_type(self, _: str, type: str) -> list[Any]:
            return [{"properties": {"levels": {"large": {}}}}] if type == f"tosca.policies.nfv.{policy}" else []

    tab = {"Tab": sized(size=1)}
    assert counts.at_level(tab, Vnfd(), "f", "large") == tab
    with pytest.raises(InvalidRequest, match=r"no level 'Large'; its levels: large\."):
        counts.at_level(tab, Vnfd(), "f", "Large")
