# SPDX-License-Identifier: Apache-2.0
"""A cluster with many workers."""

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf
from .clusters import CORE, OF_CLUSTER, OF_DEPLOYMENT, PLAIN, agreed, parameters

PACKAGE = PLAIN
ALL = f"{OF_CLUSTER}=navy"
WORKERS = (ALL, f"{OF_DEPLOYMENT}=navy-workers")

pytestmark = pytest.mark.usefixtures("samples")


def test_workers_are_scaled_to_fifty_healed_and_deleted(package: str, make_vnf: MakeVnf, cluster: Cluster):
    navy = make_vnf(package)
    navy.instantiate(*PACKAGE.files, wait_timeout=600, parameters=parameters("navy", WORKERS=20))
    navy.scale_out("Workers", 30)
    fifty = agreed(navy, "Workers", cluster, *WORKERS)
    assert len(fifty) == 50

    chosen = set(list(fifty)[::10])
    navy.heal(*chosen)
    healed = agreed(navy, "Workers", cluster, *WORKERS)
    assert len(healed) == 50 and fifty.keys() - healed.keys() == chosen

    navy.scale_in("Workers", 30)
    assert len(agreed(navy, "Workers", cluster, *WORKERS)) == 20
    navy.terminate()
    assert cluster.all("Machine", "default", ALL, CORE) == []
