# SPDX-License-Identifier: Apache-2.0
"""The nodes of an instance: from Tacker's record and the cloud's lists."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from k8s_cr_driver.cloud import access, stack
from k8s_cr_driver.cloud.session import CloudError
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.node_clusters import inventory, parameters
from k8s_cr_driver.node_clusters.groups import Group
from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory
from tests.cloud import openstack, stacks
from tests.cloud.openstack import OpenStack
from tests.cloud.test_stack import LOCAL

GIVEN = {
    "master_node": {"vdu_id": "masterNode", "ssh_cp_name": "masterNode_fip", "username": "u", "cluster_cp_name": "vip_CP"},
    "worker_node": {"vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1", "username": "u"},
}


OF_MASTER = Endpoint("10.0.0.10", "198.51.100.0", 6443)


@pytest.fixture
def cloud() -> Iterator[OpenStack]:
    with openstack.serving() as one:
        yield one


def read(cloud: OpenStack, pairs: str = stacks.VIP, masters: int = 3, least: int = 3, **master: str) -> Inventory:
    stacks.fill(cloud, pairs)
    return of_record(cloud, stacks.instance(masters), [], least, **master)


def of_record(
    cloud: OpenStack, instance: dict[str, Any], leaving: Sequence[str], least: int = 3, **master: str
) -> Inventory:
    vim = cloud.vim()
    opened = access.of_vim(vim["interfaceInfo"], vim["accessInfo"], verify=False, rules=LOCAL)
    found = stack.read(opened, *inventory.stack_of(instance))
    given = {**GIVEN, "master_node": {**GIVEN["master_node"], **master}}
    return inventory.read(instance, parameters.read(given, {}, stacks.INSTANCE), found, least, leaving)


def test_nodes_in_the_order_of_their_numbers_with_both_addresses(cloud: OpenStack) -> None:
    found = read(cloud)
    assert [(node.name, node.ssh, node.address) for node in found.nodes] == [
        ("masternode-0m000000", "198.51.100.0", "10.0.0.10"),
        ("masternode-1m000000", "198.51.100.1", "10.0.0.11"),
        ("masternode-2m000000", "198.51.100.2", "10.0.0.12"),
        ("workernode-0w000000", "10.0.1.10", "10.0.1.10"),
    ]
    assert found.endpoint == Endpoint(stacks.VIP, stacks.VIP_FLOATING, 16443)


@pytest.mark.parametrize("masters", [1, 2])
def test_too_few_masters_or_an_even_number_are_refused(cloud: OpenStack, masters: int) -> None:
    with pytest.raises(InvalidPackage, match=f"VDU masterNode: has {masters} masters; etcd needs an odd number"):
        read(cloud, masters=masters)


@pytest.mark.parametrize(
    ("master", "endpoint"),
    [
        ({"cluster_cp_name": "masterNode_CP1"}, OF_MASTER),
        ({"cluster_cp_name": "masterNode_CP1", "cluster_fip_name": "masterNode_fip"}, OF_MASTER),
        ({}, Endpoint(stacks.VIP, stacks.VIP_FLOATING, 16443)),
    ],
    ids=["as in the specification of persistent volumes", "with its floating IP", "behind a virtual IP"],
)
def test_a_single_master_has_the_api_at_its_own_port_where_one_is_enough(
    cloud: OpenStack, master: dict[str, str], endpoint: Endpoint
) -> None:
    found = read(cloud, masters=1, least=1, **master)
    assert found.endpoint == endpoint and found.is_balanced is (endpoint.port == 16443)
    with pytest.raises(InvalidPackage, match="has 2 masters; etcd needs an odd number: change"):
        read(cloud, masters=2, least=1, **master)


def test_a_master_that_may_not_have_the_virtual_ip_is_refused_before_anything_is_touched(cloud: OpenStack) -> None:
    wrong = re.escape(", ".join(stacks.server("masterNode", number) for number in range(3)))
    with pytest.raises(InvalidPackage, match=f"the servers {wrong} may not send from the virtual IP 10.0.0.100: add it to"):
        read(cloud, pairs="10.0.0.101")


@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced", "removed"])
@pytest.mark.parametrize("vdu", ["masterNode", "workerNode"])
def test_a_server_that_leaves_may_be_gone_already(cloud: OpenStack, vdu: str, is_replaced: bool) -> None:
    """The record of Tacker follows when the operation has ended well: until then each retry names the former server."""
    before = stacks.deployed()
    old = next(one for one in before.servers if one.vdu == vdu)
    new = [dataclasses.replace(old, id="n0000000-server")] if is_replaced else []
    left = [one for one in before.servers if one != old]
    dataclasses.replace(before, servers=[*new, *left]).fill(cloud)
    found = of_record(cloud, before.record(), leaving=[old.id])
    [gone] = [node for node in found.nodes if not node.is_there]
    assert (gone.server, gone.ssh, gone.address) == (old.id, "", "")
    assert len(found.nodes) == 4 and found.endpoint.address == stacks.VIP
    if not is_replaced:
        with pytest.raises(CloudError, match=f"no resource '{vdu}"):
            of_record(cloud, before.record(), leaving=[])


def test_a_server_that_leaves_and_is_there_is_one_as_the_others(cloud: OpenStack) -> None:
    before = stacks.deployed()
    before.fill(cloud)
    servers = [one.id for one in before.servers]
    assert of_record(cloud, before.record(), leaving=servers) == of_record(cloud, before.record(), leaving=[])


@pytest.mark.parametrize(("aspect", "is_of"), [("node", True), ("node-big", False), ("nod", False)])
def test_the_group_of_an_aspect_is_not_one_whose_name_begins_so(aspect: str, is_of: bool) -> None:
    vnfc = {"vduId": "v", "metadata": {"parent_stack_id": "vnf-4a1f-node-3psxfhj2rtnj/1"}}
    instance = {"id": "4a1f", "instantiatedVnfInfo": {"vnfcResourceInfo": [vnfc]}}
    assert inventory.vdus(instance, Group("", aspect, "", "", "")) == (["v"] if is_of else [])
    vnfc["metadata"] = {"parent_stack_id": f"vnf-4a1f-{aspect}-big-3psxfhj2rtnj/1"}
    assert inventory.vdus(instance, Group("", aspect, "", "", "")) == []


def test_an_instance_without_a_stack_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no stack of Heat"):
        inventory.stack_of({"id": "1", "instantiatedVnfInfo": {}})


def test_the_servers_that_an_operation_removes() -> None:
    removed = [
        {"type": "COMPUTE", "resource": {"resourceId": "s1"}},
        {"type": "LINKPORT", "resource": {"resourceId": "p1"}},
    ]
    assert inventory.leaving({"removeResources": removed}) == ["s1"]
    assert inventory.leaving({}) == []
