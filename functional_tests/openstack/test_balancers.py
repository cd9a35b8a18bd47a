# SPDX-License-Identifier: Apache-2.0
"""A load balancer of the cloud is a HAProxy at its virtual IP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import openstack
import pytest

from ..testbed.openstack import network
from ..testbed.openstack.balancing import PREFIX
from .conftest import PORT, MakeServer, Site, eventually
from .servers import machine, page

Reach = Callable[[str], str]


@pytest.fixture
def pool(tenant: openstack.connection.Connection, site: Site) -> Iterator[Any]:
    """Of a load balancer that listens on the page's port, and checks its members."""
    balancer = tenant.load_balancer.create_load_balancer(name="web", vip_subnet_id=site.subnet)
    settled(tenant, balancer.id)
    listener = tenant.load_balancer.create_listener(
        name="web", protocol="TCP", protocol_port=PORT, load_balancer_id=balancer.id
    )
    settled(tenant, balancer.id)
    pool = tenant.load_balancer.create_pool(
        name="web", protocol="TCP", lb_algorithm="ROUND_ROBIN", listener_id=listener.id
    )
    settled(tenant, balancer.id)
    tenant.load_balancer.create_health_monitor(pool_id=pool.id, type="TCP", delay=2, timeout=1, max_retries=1)
    settled(tenant, balancer.id)
    yield pool
    tenant.load_balancer.delete_load_balancer(balancer.id, cascade=True)
    eventually(lambda: not tenant.load_balancer.find_load_balancer(balancer.id), "the load balancer is deleted")
    eventually(lambda: not network.has_namespace(f"{PREFIX}{balancer.id}"), "its namespace is deleted")


def settled(tenant: openstack.connection.Connection, balancer: str) -> Any:
    return tenant.load_balancer.wait_for_load_balancer(balancer, interval=0.2, wait=30)


def test_a_load_balancer_reaches_the_members_that_live(
    tenant: openstack.connection.Connection, make_server: MakeServer, reach: Reach, pool: Any
):
    servers = [make_server("one"), make_server("other")]
    [balancer] = pool.loadbalancers
    for server in servers:
        address = next(iter(server.addresses.values()))[0]["addr"]
        tenant.load_balancer.create_member(pool.id, address=address, protocol_port=PORT)
        settled(tenant, balancer["id"])
    address = reach(tenant.load_balancer.get_load_balancer(balancer["id"]).vip_port_id)
    seen: set[str] = set()
    eventually(lambda: seen.add(page(address)) or {f"one {servers[0].id}", f"other {servers[1].id}"} <= seen, "both respond")
    machine(servers[0].id).cut_off()
    eventually(lambda: [page(address) for _ in range(4)] == [f"other {servers[1].id}"] * 4, "only the other one responds")
