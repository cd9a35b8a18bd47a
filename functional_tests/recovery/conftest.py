# SPDX-License-Identifier: Apache-2.0
"""An operation that is under way while conductors or the control plane go."""

from collections.abc import Iterator

import pytest

from ..cluster import Cluster
from ..testbed.processes import until
from ..vnf import Vnf
from .turbine import Turbine


@pytest.fixture(scope="module")
def turbine(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Turbine]:
    """The module's TURBINE, whose CRD the operator has installed, and whose controller waits for the tests."""
    turbine: Turbine = request.module.TURBINE
    with cluster.holding(turbine.crd):
        yield turbine


@pytest.fixture
def waiting(turbine: Turbine, vnf: Vnf, cluster: Cluster) -> str:
    """An instantiate that has written everything, and waits: a control plane that was restarted may take minutes to act."""
    operation = vnf.begin_instantiate("turbine.yaml", wait_timeout=200)
    assert until(lambda: turbine.is_written(cluster), 20)
    return operation
