# SPDX-License-Identifier: Apache-2.0
"""Three masters and a worker that Tacker has Heat make; the tests share them, in this order. At the end nothing stays."""

from __future__ import annotations

from pathlib import Path

import openstack
import pytest

from ..client import Body, Client
from ..conftest import Summary
from ..node_clusters import leaks
from ..openstack.clusters import belongings
from ..openstack.servers import machine
from ..testbed.ledger import Ledger
from ..testbed.tacker import Conductor
from ..vnf import Vnf
from . import clusters
from .clusters import CANARY, MASTERS, WORKERS, Place

pytestmark = pytest.mark.alone("tacker")
SAMPLE, PROJECT = "ha_masters", "masters"


def adapt(folder: Path) -> None:
    (folder / "Scripts" / "install.sh").write_text(f"{clusters.INSTALL}command -v haproxy keepalived\n")


@pytest.fixture(scope="module")
def before(tenant: openstack.connection.Connection, place: Place) -> dict[str, list[str]]:
    """What the project has when there is no instance."""
    return belongings(tenant)


def given(place: Place) -> Body:
    virtual_ip = {"cluster_cp_name": "vip_CP", "cluster_fip_name": "vip_CP_floating_ip", "password": CANARY}
    sections = {"script_path": "Scripts/install.sh", "master_node": virtual_ip}
    nfv = {"authorized_key": place.authorized, "vip_network": place.network}
    return clusters.request(place, (MASTERS, WORKERS), sections, nfv)


def test_servers_of_heat_become_a_cluster_and_a_vim(
    vnf: Vnf, tacker: Client, cloud: Body, place: Place, before: Body, summary: Summary
) -> None:
    seconds = clusters.timed(vnf, clusters.begin_instantiate(tacker, vnf, cloud, given(place)))
    assert len(clusters.nodes(vnf)) == 4
    assert clusters.is_vim(vnf, tacker, place)
    summary(f"instantiate {seconds:.0f} s")


def test_the_heal_of_a_dead_master_outlives_its_conductor(
    vnf: Vnf,
    tacker: Client,
    tenant: openstack.connection.Connection,
    conductors: dict[str, Conductor],
    summary: Summary,
) -> None:
    """It dies when Heat has replaced the server, which Tacker has not stored yet: the retry names the former one."""
    dead = vnf.vnfcs(MASTERS)[1]
    machine(clusters.server_of(dead)).cut_off()
    operation = clusters.begin_heal(vnf, dead)
    clusters.die(vnf, operation, conductors, lambda: clusters.runs(tenant, "k8s-cr-join"))
    tacker.retry(operation)
    seconds = clusters.timed(vnf, operation)
    assert len(clusters.nodes(vnf)) == 4
    assert clusters.server_of(dead) not in clusters.servers(vnf)
    summary(f"retry of the heal {seconds:.0f} s")


def test_a_worker_comes_and_goes(vnf: Vnf, summary: Summary) -> None:
    out = clusters.timed(vnf, clusters.begin_scale(vnf, "SCALE_OUT"))
    assert len(clusters.nodes(vnf)) == 5
    back = clusters.timed(vnf, clusters.begin_scale(vnf, "SCALE_IN"))
    assert len(clusters.nodes(vnf)) == 4
    summary(f"scale out {out:.0f} s, in {back:.0f} s")


def test_no_secret_is_shown(
    vnf: Vnf, tacker: Client, cloud: Body, place: Place, ledger: Ledger, arguments: leaks.Arguments
) -> None:
    clusters.discloses_nothing(vnf, tacker, cloud, place, ledger, arguments)


def test_a_terminate_leaves_nothing(
    vnf: Vnf, tacker: Client, place: Place, tenant: openstack.connection.Connection, before: dict[str, list[str]]
) -> None:
    vnf.terminate()
    clusters.leaves_nothing(vnf, tacker, place, tenant, before)
