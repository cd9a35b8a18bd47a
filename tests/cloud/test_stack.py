# SPDX-License-Identifier: Apache-2.0
"""What the driver learns of a stack, and with how many requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from k8s_cr_driver.cloud import access, stack
from k8s_cr_driver.cloud.session import CloudError
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import EndpointRules

from . import openstack, stacks
from .openstack import OpenStack

LOCAL = EndpointRules(("127.0.0.0/8",), plain_http=True)


@pytest.fixture
def cloud() -> Iterator[OpenStack]:
    with openstack.serving() as one:
        stacks.fill(one)
        yield one


def opened(cloud: OpenStack, **changes: str) -> access.Cloud:
    vim = cloud.vim(**changes)
    return access.of_vim(vim["interfaceInfo"], vim["accessInfo"], verify=False, rules=LOCAL)


def read(cloud: OpenStack, **options: bool) -> stack.Stack:
    return stack.read(opened(cloud), f"vnf-{stacks.INSTANCE}", stacks.STACK, **options)


@pytest.mark.parametrize(("volumes", "requests"), [(False, 3), (True, 4)])
def test_a_look_is_one_request_for_the_resources_and_a_list_each(cloud: OpenStack, volumes: bool, requests: int) -> None:
    found = read(cloud, volumes=volumes)
    assert len(cloud.seen) == requests
    assert found.volumes == ({"v1": ("s1",), "v2": ()} if volumes else {})


def test_a_server_is_reached_at_its_port_or_its_floating_ip(cloud: OpenStack) -> None:
    found = read(cloud)
    assert found.address("masterNode-1-id", "masterNode_CP1") == "10.0.0.11"
    assert found.address("masterNode-1-id", "masterNode_fip") == "198.51.100.1"
    assert found.port("masterNode-1-id", "masterNode_fip").address == "10.0.0.11"


def test_a_resource_that_is_not_there_is_reported_with_those_that_are(cloud: OpenStack) -> None:
    with pytest.raises(CloudError, match=r"no resource 'masterNode_CP2'; it has masterNode, masterNode_CP1, masterNode_fip"):
        read(cloud).port("masterNode-0-id", "masterNode_CP2")


@pytest.mark.parametrize(("name", "count"), [("vip", "no resource"), ("masterNode_CP1", "3 resources")])
def test_a_resource_that_has_to_be_the_only_one_of_its_name(cloud: OpenStack, name: str, count: str) -> None:
    found = read(cloud)
    assert found.only("vip_CP").id == "port-vip"
    with pytest.raises(CloudError, match=f"have {count} '{name}', and must have one"):
        found.only(name)


def test_a_resource_that_is_no_port_is_reported(cloud: OpenStack) -> None:
    with pytest.raises(CloudError, match="'masterNode' is a OS::Nova::Server, which has no port"):
        read(cloud).port("masterNode-0-id", "masterNode")


def test_a_refusal_names_the_service_and_what_it_says(cloud: OpenStack) -> None:
    cloud.responses.clear()
    with pytest.raises(CloudError, match=r"OpenStack, orchestration: GET /stacks/.*: status 404: .*is not here"):
        read(cloud)


def test_wrong_credentials_are_not_repeated_in_the_error(cloud: OpenStack) -> None:
    with pytest.raises(CloudError) as failure:
        stack.read(opened(cloud, password="guessed"), "vnf", "id")
    assert "guessed" not in str(failure.value)


def test_missing_credentials_are_named(cloud: OpenStack) -> None:
    with pytest.raises(InvalidRequest, match="accessInfo: password, project of the OpenStack VIM is missing"):
        opened(cloud, password="", project="")


def test_the_console_of_a_server(cloud: OpenStack) -> None:
    cloud.responses["/compute/servers/s1/action"] = {"output": "login:"}
    assert stack.console(opened(cloud), "s1") == "login:"
