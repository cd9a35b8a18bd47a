# SPDX-License-Identifier: Apache-2.0
"""More clusters than operations at once: all become ready, or their operations say which object does not, and why."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import openstack
import pytest

from ..client import OperationError
from ..conftest import MakeVnf, Summary
from ..credentials.receiver import Receiver
from ..families import BROUGHT
from ..objects import Place
from ..sample_onboarding import Sample
from ..testbed.kubernetes import Kubernetes
from ..testbed.ledger import Ledger
from ..testbed.openstack import offer
from ..testbed.tacker import CONDUCTORS, Conductor
from ..vnf import Vnf
from .clusters import PATIENCE, belongings, nodes, parameters, reported

TENANT = offer.TENANT
PLACE = Place("grove")
CLUSTERS, OPERATIONS = 10, 4
MOST = 100
"""Requests of an instantiate to the management cluster; a wait of eight minutes takes some seventy."""
pytestmark = [pytest.mark.usefixtures("secret"), pytest.mark.alone(*BROUGHT)]


def test_clusters_become_ready_or_say_why(
    sample: Sample,
    receiver: Receiver,
    tenant: openstack.connection.Connection,
    make_vnf: MakeVnf,
    kubernetes: Kubernetes,
    ledger: Ledger,
    summary: Summary,
):
    names = [f"grove-{number}" for number in range(CLUSTERS)]
    vnfs = [make_vnf(sample.vnfd_id) for _ in names]

    def instantiate(vnf: Vnf, name: str) -> str:
        """What the operation says if the cluster is not ready; its rollback leaves nothing of it."""
        vnf.patience = 2 * PATIENCE
        operation = vnf.begin_instantiate(*sample.files, wait_timeout=PATIENCE, parameters=parameters(name))
        try:
            vnf.wait(operation)
        except OperationError as error:
            vnf.roll_back(operation)
            return str(error.operation["error"]["detail"])
        return ""

    with ThreadPoolExecutor(OPERATIONS) as pool:
        said = list(pool.map(instantiate, vnfs, names))
    for name, detail in zip(names, said, strict=True):
        assert not detail or name in detail.splitlines()[1], detail
    ready = [vnf for vnf, detail in zip(vnfs, said, strict=True) if not detail]
    listed = [nodes(kubernetes, kubeconfig) for kubeconfig in receiver.kubeconfigs]
    assert sorted(map(sorted, listed)) == sorted(sorted(reported(vnf)) for vnf in ready)
    assert all(len(one) == 2 for one in listed)

    requests = [requests_of(ledger, vnf) for vnf in ready]
    assert max(requests, default=0) < MOST
    summary(
        f"{CLUSTERS} clusters by {OPERATIONS} operations: {len(ready)} ready; "
        f"requests to the management cluster for each: {sorted(requests)}"
    )
    with ThreadPoolExecutor(OPERATIONS) as pool:
        list(pool.map(Vnf.terminate, ready))
    assert belongings(tenant) == {}


def requests_of(ledger: Ledger, vnf: Vnf) -> int:
    """How many its instantiate has sent, as the conductor logs it at the end."""
    line = re.compile(rf"instantiate of VNF instance {vnf.id} completed in .*, ([0-9]+) requests")
    [found] = [match for name in CONDUCTORS for match in line.finditer(Conductor(ledger, name).log.read_text())]
    return int(found[1])
