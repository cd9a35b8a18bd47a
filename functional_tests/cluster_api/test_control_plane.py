# SPDX-License-Identifier: Apache-2.0
"""The count of a control plane, whose etcd needs an odd number of Machines."""

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf
from .clusters import CONTROL_PLANES, CORE, OF_CLUSTER, OF_CONTROL_PLANE, PLAIN, agreed, parameters

PACKAGE = PLAIN
GIVEN = parameters("brown", WORKERS=0)
SELECTORS = (f"{OF_CLUSTER}=brown", OF_CONTROL_PLANE)

pytestmark = pytest.mark.usefixtures("samples")


def test_a_control_plane_is_scaled_in_odd_steps_only(package: str, make_vnf: MakeVnf, cluster: Cluster):
    brown = make_vnf(package)
    for count, why in ((0, "a control plane needs a Machine"), (2, "needs an odd number of them")):
        assert why in brown.refusal(*PACKAGE.files, parameters={**GIVEN, "CONTROL_PLANES": count})["detail"]
        assert cluster.get("Cluster", "brown", "default", CORE) is None

    brown = make_vnf(package)
    brown.instantiate(*PACKAGE.files, wait_timeout=240, parameters=GIVEN)
    first = agreed(brown, "ControlPlane", cluster, *SELECTORS)
    assert len(first) == 1
    operation = brown.begin_scale("SCALE_OUT", "ControlPlane")
    assert "cannot be 2: etcd on the Machines" in brown.failure(operation)["detail"]
    brown.give_up(operation)
    live = cluster.get("KubeadmControlPlane", "brown-control-plane", "default", CONTROL_PLANES)
    assert live and live["metadata"]["generation"] == 1

    brown.scale_out("ControlPlane", 2)
    three = agreed(brown, "ControlPlane", cluster, *SELECTORS)
    assert len(three) == 3 and three.items() > first.items()
    chosen = min(three)
    brown.heal(chosen)
    healed = agreed(brown, "ControlPlane", cluster, *SELECTORS)
    assert len(healed) == 3 and len(healed.keys() & three.keys()) == 2 and chosen not in healed
    brown.scale_in("ControlPlane", 2)
    assert len(agreed(brown, "ControlPlane", cluster, *SELECTORS)) == 1
