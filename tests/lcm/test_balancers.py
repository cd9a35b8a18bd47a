# SPDX-License-Identifier: Apache-2.0
"""Load balancers outside the masters, as Tacker calls the driver: their scale, and what is asked of the cloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.lcm import hook
from tests.cloud import openstack, stacks
from tests.cloud.openstack import OpenStack
from tests.cloud.stacks import Deployed, Server

from .test_node_clusters import PARAMETERS

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAgs5p4uAO+qHYCX8uc7+QjKp8SDn5RvD+pyirNCDlqt"
CONSOLE = f"-----BEGIN SSH HOST KEY KEYS-----\n{KEY}\n-----END SSH HOST KEY KEYS-----\n"
SECTION = {"ssh_cp_name": "balancerNode_CP1", "ssh_username": "ubuntu"}
BY_VDU, BY_ASPECT = {**SECTION, "vdu_id": "balancerNode"}, {**SECTION, "aspect_id": "balancer_group"}
LISTS = 3


@pytest.fixture
def cloud(options_file: Path) -> Iterator[OpenStack]:
    options = "[k8s_cr]\nallowed_endpoints = 127.0.0.1\nallow_http_endpoints = true\nallowed_ssh_hosts = 127.0.0.0/8\n"
    options_file.write_text(options)
    with openstack.serving() as one:
        yield one


def deployed(*, is_outside: bool = True) -> Deployed:
    """Three masters and a worker, and two load balancers; no server responds."""
    vdus = {"masterNode": 3, "workerNode": 1, **({"balancerNode": 2} if is_outside else {})}
    numbered = [(vdu, n) for vdu, count in vdus.items() for n in range(count)]
    servers = [Server(vdu, n, stacks.server(vdu, n), f"127.0.0.{20 + k}") for k, (vdu, n) in enumerate(numbered)]
    found = Deployed(servers, paired=("masterNode", "balancerNode"))
    found.consoles = {one.id: CONSOLE for one in servers}
    return found


def call(
    cloud: OpenStack, found: Deployed, operation: str, grant: dict[str, Any], metadata: Any = None, **parameters: Any
) -> tuple[dict[str, Any], str]:
    found.fill(cloud)
    for vnfc in (record := found.record())["instantiatedVnfInfo"]["vnfcResourceInfo"]:
        if vnfc["vduId"] == "balancerNode":
            vnfc["metadata"]["parent_stack_id"] = "vnf-4a1f-balancer_group-x/1"
    workers = {"vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1", "username": "ubuntu"}
    asked = {**PARAMETERS, "worker_node": workers, **parameters}
    given = {
        "operation": operation,
        "request": {"vnfcInstanceId": ["x"], "additionalParams": {"k8s_cluster_installation_param": asked}},
        "vnf_instance": {
            **record,
            "vimConnectionInfo": {"vim1": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", **cloud.vim()}},
            "metadata": metadata or {},
        },
        "grant_request": grant,
        "user_script_err_handling_data": {},
    }
    return hook.respond("ha_masters", Path("/package/Scripts/ha_masters.py"), given)


@pytest.mark.parametrize("section", [BY_VDU, BY_ASPECT], ids=["VDU", "aspect"])
@pytest.mark.parametrize("change", ["addResources", "removeResources"])
def test_the_number_of_load_balancers_stays(cloud: OpenStack, section: dict[str, str], change: str) -> None:
    """They know each other by their addresses, and there are two of them."""
    grant = {change: [{"type": "COMPUTE", "resourceTemplateId": "balancerNode", "resource": {"resourceId": "1b000000-server"}}]}
    _, failure = call(cloud, deployed(), "scale_start", grant, external_lb_param=section)
    assert failure == (
        "ha_masters: VDU balancerNode: the load balancers know each other, and their number stays: they cannot be scaled"
    )
    assert cloud.seen == []
    grant = {"addResources": [{"type": "COMPUTE", "resourceTemplateId": "workerNode"}]}
    assert call(cloud, deployed(), "scale_start", grant, external_lb_param=section)[1] == ""


@pytest.mark.parametrize(
    ("is_outside", "parameters", "consoles"),
    [
        (False, {}, 4),
        (True, {"external_lb_param": BY_VDU}, 6),
        (True, {"external_lb_param": BY_VDU, "ssh_host_keys": [KEY]}, 0),
        (True, {"external_lb_param": BY_VDU, "ssh_host_authorities": [KEY]}, 0),
    ],
    ids=["masters and a worker", "load balancers, too", "given keys", "an authority"],
)
def test_a_new_server_costs_a_request_and_a_known_one_none(
    cloud: OpenStack, is_outside: bool, parameters: dict[str, Any], consoles: int
) -> None:
    """The Compute API gives the console of one server at a time, so what a look asks for is three lists without it."""
    found = deployed(is_outside=is_outside)
    grant = {"removeResources": [{"type": "COMPUTE", "resource": {"resourceId": stacks.server("workerNode", 0)}}]}
    returned, failure = call(cloud, found, "heal_start", grant, **parameters)
    assert "no master of the cluster responds" in failure
    assert len(cloud.seen) == LISTS + consoles
    cloud.seen.clear()
    call(cloud, found, "heal_start", grant, {"node_cluster": returned["user_script_err_handling_data"]["node_cluster"]})
    assert len(cloud.seen) == LISTS


def test_load_balancers_of_which_none_responds_may_be_replaced_at_once(cloud: OpenStack) -> None:
    removed = [{"type": "COMPUTE", "resource": {"resourceId": stacks.server("balancerNode", n)}} for n in range(2)]
    _, failure = call(cloud, deployed(), "heal_start", {"removeResources": removed}, external_lb_param=BY_VDU)
    assert failure == ""
