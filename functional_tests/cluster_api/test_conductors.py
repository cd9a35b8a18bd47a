# SPDX-License-Identifier: Apache-2.0
"""A conductor is killed in each verb while Cluster API is at work: a retry ends what was begun, and makes nothing twice."""

from collections.abc import Callable
from functools import partial

import pytest

from ..cluster import Cluster
from ..conftest import MakeVnf
from ..testbed.processes import until
from ..testbed.tacker import Conductor, worker
from ..vnf import Vnf
from .clusters import CORE, OF_CLUSTER, OF_CONTROL_PLANE, OF_DEPLOYMENT, PLAIN, agreed, parameters, staying

PACKAGE = PLAIN
ALL = f"{OF_CLUSTER}=gold"
CONTROL_PLANE, WORKERS = (ALL, OF_CONTROL_PLANE), (ALL, f"{OF_DEPLOYMENT}=gold-workers")
# Long enough for a conductor to die meanwhile.
STARTUP = "8s"

pytestmark = [pytest.mark.usefixtures("samples"), pytest.mark.alone("tacker")]


def test_a_conductor_dies_in_each_verb(package: str, make_vnf: MakeVnf, cluster: Cluster, conductors: dict[str, Conductor]):
    gold = make_vnf(package)
    outlives = partial(killed, gold, conductors)
    of_workers, of_all = partial(staying, cluster, *WORKERS), partial(staying, cluster, ALL)

    given = parameters("gold", MACHINE_STARTUP=STARTUP)
    outlives(gold.begin_instantiate(*PACKAGE.files, wait_timeout=240, parameters=given), of_all)
    first = agreed(gold, "Workers", cluster, *WORKERS)
    assert len(first) == 1 and len(agreed(gold, "ControlPlane", cluster, *CONTROL_PLANE)) == 1

    outlives(gold.begin_scale("SCALE_OUT", "Workers"), lambda: len(of_workers()) == 2)
    two = agreed(gold, "Workers", cluster, *WORKERS)
    assert len(two) == 2 and first.keys() < two.keys()

    chosen = min(two)
    outlives(gold.begin_heal(chosen), lambda: chosen not in {one["metadata"]["name"] for one in of_workers()})
    healed = agreed(gold, "Workers", cluster, *WORKERS)
    assert len(healed) == 2 and chosen not in healed

    newer = {"KUBERNETES_VERSION": "v1.37.0"}
    operation = gold.begin_change(package, *PACKAGE.files, wait_timeout=240, parameters=newer)
    outlives(operation, lambda: {"v1.37.0"} & {one["spec"]["version"] for one in of_all()})
    assert [one["spec"]["version"] for one in of_all()] == ["v1.37.0"] * 3
    assert len(agreed(gold, "Workers", cluster, *WORKERS)) == 2

    outlives(gold.begin_terminate(), lambda: len(of_all()) < 3)
    assert cluster.of(gold.id) == [] and cluster.all("Machine", "default", ALL, CORE) == []


def killed(vnf: Vnf, conductors: dict[str, Conductor], operation: str, is_time: Callable[[], object]) -> None:
    """The conductor of the operation dies once Cluster API has begun, and another try completes it."""
    busy = worker(conductors, vnf.id)
    assert until(is_time, 60, pause=0.05), "Cluster API has not begun"
    busy.kill()
    busy.start()
    vnf.wait(operation, "FAILED_TEMP")
    vnf.retry(operation)
