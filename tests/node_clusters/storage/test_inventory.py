# SPDX-License-Identifier: Apache-2.0
"""The storage server of an instance: found by its port, with its volumes, wherever they are in the templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from k8s_cr_driver.cloud import access, stack
from k8s_cr_driver.cloud.session import CloudError
from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.node_clusters import inventory, parameters
from k8s_cr_driver.node_clusters.storage import inventory as storage
from k8s_cr_driver.node_clusters.storage.inventory import Inventory, Volume
from tests.cloud import openstack, stacks
from tests.cloud.openstack import OpenStack

from . import specification

LOCAL = EndpointRules(("127.0.0.0/8",), plain_http=True)
ID, SERVER = "1f0c2a55-8b3e-4c1d-9f00-00000000000a", "0s000000-server"
GIVEN = parameters.read(specification.parameter(), {}, stacks.INSTANCE).storage


@pytest.fixture
def cloud() -> Iterator[OpenStack]:
    with openstack.serving() as one:
        stacks.fill(one)
        yield one


def add(
    cloud: OpenStack, of: str = "storage-id", device: str = SERVER, attached: tuple[str, ...] = (SERVER,), **kinds: str
) -> None:
    """The cloud has the storage server, too, in the template of the stack `of`; `kinds` are other types of resources."""
    kinds = {"storage_server_CP": "OS::Neutron::Port", "storage_server_volume": "OS::Cinder::Volume", **kinds}
    ids = {"storage_server_CP": "port-s", "storage_server_volume": ID}
    links = [{"rel": "stack", "href": f"{cloud.url}/stacks/x/{of}"}]
    cloud.responses[f"/orchestration/stacks/vnf-{stacks.INSTANCE}/{stacks.STACK}/resources"]["resources"] += [
        {"resource_name": name, "resource_type": kind, "physical_resource_id": ids.get(name, name), "links": links}
        for name, kind in kinds.items()
    ]
    port = {"id": "port-s", "fixed_ips": [{"ip_address": "10.0.2.9"}], "device_id": device}
    cloud.responses["/network/v2.0/ports"]["ports"].append(port)
    volume = {"id": ID, "attachments": [{"server_id": one} for one in attached]}
    cloud.responses["/block-storage/volumes/detail"]["volumes"].append(volume)


def instance() -> dict[str, Any]:
    found = stacks.instance()
    vnfc = {"id": SERVER, "vduId": "storage_server", "computeResource": {"resourceId": SERVER}}
    found["instantiatedVnfInfo"]["vnfcResourceInfo"].append(vnfc)
    return found


def looked(cloud: OpenStack) -> stack.Stack:
    vim = cloud.vim()
    opened = access.of_vim(vim["interfaceInfo"], vim["accessInfo"], verify=False, rules=LOCAL)
    return stack.read(opened, *inventory.stack_of(instance()), volumes=True)


@pytest.mark.parametrize("of", [stacks.STACK, "storage-id"], ids=["in the top template", "in that of its VDU"])
def test_the_server_is_that_of_the_port_which_the_request_of_the_specification_names(cloud: OpenStack, of: str) -> None:
    add(cloud, of)
    found = storage.read(instance(), GIVEN, looked(cloud))
    assert len(cloud.seen) == 4, "the resources, floating IPs, ports, volumes"
    node = found.server
    assert node is not None
    assert (node.server, node.name, node.ssh, node.address) == (SERVER, "storage-server-0s000000", "10.0.2.9", "10.0.2.9")
    assert found.volumes == (Volume(ID, "storage_server_volume", "/volume"),)
    assert (found.vdu, found.addresses) == ("storage_server", {"storage_server_CP": "10.0.2.9"})
    storage.check_attached(found, looked(cloud))


@pytest.mark.parametrize(
    ("attached", "where"),
    [
        ((), "attached to no server"),
        (("another",), "attached to another"),
        ((SERVER, "another"), f"attached to {SERVER}, another"),
    ],
)
def test_a_volume_that_another_server_has_is_not_touched(cloud: OpenStack, attached: tuple[str, ...], where: str) -> None:
    add(cloud, attached=attached)
    found = looked(cloud)
    with pytest.raises(InvalidRequest, match=f"the volume {ID} is {where}, and must be attached to the storage server"):
        storage.check_attached(storage.read(instance(), GIVEN, found), found)


def test_a_resource_that_is_no_volume_is_named(cloud: OpenStack) -> None:
    add(cloud)
    cloud.responses["/block-storage/volumes/detail"]["volumes"].pop()
    with pytest.raises(InvalidPackage, match="storage_server_volume: is no volume of Cinder in this project, but a OS::Cinder"):
        storage.read(instance(), GIVEN, looked(cloud))


def test_a_volume_that_the_templates_do_not_have_is_named(cloud: OpenStack) -> None:
    add(cloud)
    cloud.responses[f"/orchestration/stacks/vnf-{stacks.INSTANCE}/{stacks.STACK}/resources"]["resources"].pop()
    with pytest.raises(CloudError, match="have no resource 'storage_server_volume', and must have one"):
        storage.read(instance(), GIVEN, looked(cloud))


def test_a_port_of_no_server_is_named_unless_its_server_is_just_being_replaced(cloud: OpenStack) -> None:
    add(cloud, device="")
    with pytest.raises(InvalidPackage, match="storage_server_CP: is the port of no server of the VNF instance; ssh"):
        storage.read(instance(), GIVEN, looked(cloud))
    found = storage.read(instance(), GIVEN, looked(cloud), "storage_server")
    assert found.server is not None and found.server.server == SERVER
    assert not found.server.is_there, "nothing is to be done there"


def test_volumes_of_a_server_that_the_package_sets_up_itself_need_its_address_only(cloud: OpenStack) -> None:
    given = parameters.read(specification.parameter(storage_server=None), {}, stacks.INSTANCE).storage
    add(cloud)
    assert storage.read(instance(), given, looked(cloud)) == Inventory(addresses={"storage_server_CP": "10.0.2.9"})


def resource(kind: str, vdu: str = "", identifier: str = "") -> dict[str, Any]:
    return {"type": kind, "resourceTemplateId": vdu, "resource": {"resourceId": identifier}}


@pytest.mark.parametrize(
    ("grant", "is_scaled"),
    [
        ({"addResources": [resource("COMPUTE", "storage_server")]}, True),
        ({"removeResources": [resource("COMPUTE", "storage_server", SERVER)]}, True),
        ({"addResources": [resource("COMPUTE", "workerNode"), resource("LINKPORT", "storage_server")]}, False),
        ({}, False),
    ],
)
def test_a_scale_of_the_storage_server_is_seen_in_the_grant(grant: dict[str, Any], is_scaled: bool) -> None:
    assert storage.is_scaled(grant, "storage_server") is is_scaled


def test_a_volume_is_replaced_if_the_grant_removes_it() -> None:
    volumes = [Volume(ID, "storage_server_volume", "/volume")]
    assert storage.replaced({"removeResources": [resource("STORAGE", "storage_server_volume", ID)]}, volumes) == volumes
    assert storage.replaced({"removeResources": [resource("COMPUTE", "storage_server", ID)]}, volumes) == []
