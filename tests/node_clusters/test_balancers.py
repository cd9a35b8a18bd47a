# SPDX-License-Identifier: Apache-2.0
"""HAProxy and keepalived on two servers outside the masters: their parameters, their files, and what a plan does with them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import pytest

from k8s_cr_driver.cloud import access, stack
from k8s_cr_driver.errors import DriverError, InvalidPackage, InvalidRequest
from k8s_cr_driver.node_clusters import inventory, parameters, plan, run, work
from k8s_cr_driver.node_clusters.facts import Facts, Server
from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory, Node, Role
from k8s_cr_driver.node_clusters.kubeadm import balancing
from tests.cloud import openstack, stacks
from tests.cloud.openstack import OpenStack
from tests.cloud.test_stack import LOCAL

from . import clusters
from .clusters import BALANCERS, ENDPOINT, MASTERS, OUTSIDE, WORKERS
from .printing import Hosts, operation
from .test_inventory import GIVEN as NODES
from .test_parameters import GIVEN
from .test_plan import summary, with_server

SECTION: dict[str, Any] = {
    "vdu_id": "balancerNode",
    "ssh_cp_name": "balancerNode_CP1",
    "ssh_username": "ubuntu",
    "ssh_password": "secret-word",
    "script_path": "Scripts/balancer.sh",
}
NAMES = [one.name for one in BALANCERS]
NEW = Node("b9", Role.BALANCER, "balancer-b9", "198.51.100.39", BALANCERS[0].address)
"""Has the address of the balancer that it replaces."""
HEALED = dataclasses.replace(OUTSIDE, balancers=(NEW, BALANCERS[1]))


# --- parameters -------------------------------------------------------------------------------------------------------


def read(section: Any, kept: dict[str, Any] | None = None) -> parameters.Parameters:
    return parameters.read({**GIVEN, "external_lb_param": section}, kept or {}, "4a1f")


def test_the_names_of_the_specification_and_the_vdu() -> None:
    found = read(SECTION)
    assert found.balancers is not None
    assert (found.balancers.group.label, found.balancers.group.nic_cp_name) == ("balancerNode", "balancerNode_CP1")
    assert (found.balancers.group.username, found.balancers.script_path) == ("ubuntu", "Scripts/balancer.sh")
    assert "secret-word" in found.secrets and "secret-word" not in repr(found)
    assert read({}).balancers is None and parameters.read(GIVEN, {}, "4a1f").balancers is None


def test_the_section_is_kept_without_its_password() -> None:
    kept = parameters.merged({**GIVEN, "external_lb_param": SECTION}, {})
    assert "secret-word" not in str(kept)
    later = parameters.read({"external_lb_param": {"ssh_password": "another"}}, kept, "4a1f").balancers
    assert later is not None and (later.group.password, later.group.vdu_id) == ("another", "balancerNode")


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("two", ": must be a mapping, not text"),
        ({**SECTION, "vdu_id": ""}, ".vdu_id: is missing; it is the VDU of these servers"),
        ({**SECTION, "vdu_id": "workerNode"}, ".vdu_id: is that of worker_node; the load balancers are servers of a VDU"),
        ({**SECTION, "vdu_id": "masterNode"}, ".vdu_id: is that of master_node"),
        ({**SECTION, "ssh_cp_name": None}, ".ssh_cp_name: is missing"),
        ({**SECTION, "ssh_username": "a;b"}, ".ssh_username: must be the name of a user"),
        ({**SECTION, "ssh_password": 1}, ".ssh_password: must be text"),
        ({**SECTION, "script_path": "/etc/x"}, ".script_path: must be a path in the package"),
        ({**SECTION, "node_ports": [30080]}, ".node_ports: is not a parameter"),
    ],
)
def test_a_mistake_in_the_section_is_reported_with_its_place(section: Any, problem: str) -> None:
    with pytest.raises(InvalidRequest) as failure:
        read(section)
    assert f"k8s_cluster_installation_param.external_lb_param{problem}" in str(failure.value)
    assert "secret-word" not in str(failure.value)


# --- inventory --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cloud() -> Iterator[OpenStack]:
    with openstack.serving() as one:
        yield one


def found(
    cloud: OpenStack, count: int = 2, paired: tuple[str, ...] = ("balancerNode",), least: int = 3, **masters: str
) -> Inventory:
    deployed = stacks.deployed(masters=3 if least > 1 else 1)
    for number in range(count):
        addresses = f"10.0.0.3{number}", f"198.51.100.3{number}"
        deployed.servers.append(stacks.Server("balancerNode", number, stacks.server("balancerNode", number), *addresses))
    deployed.paired = paired
    deployed.fill(cloud)
    vim = cloud.vim()
    opened = access.of_vim(vim["interfaceInfo"], vim["accessInfo"], verify=False, rules=LOCAL)
    record = deployed.record()
    section = {**SECTION, "ssh_cp_name": "balancerNode_fip", "nic_cp_name": "balancerNode_CP1"}
    given = {**NODES, "master_node": {**NODES["master_node"], **masters}, "external_lb_param": section}
    asked = parameters.read(given, {}, stacks.INSTANCE)
    return inventory.read(record, asked, stack.read(opened, *inventory.stack_of(record)), least)


def test_balancers_are_servers_that_are_no_nodes(cloud: OpenStack) -> None:
    all_of = found(cloud)
    assert [(one.name, one.role, one.ssh, one.address) for one in all_of.balancers] == [
        ("balancernode-0b000000", Role.BALANCER, "198.51.100.30", "10.0.0.30"),
        ("balancernode-1b000000", Role.BALANCER, "198.51.100.31", "10.0.0.31"),
    ]
    assert len(all_of.nodes) == 4 and all_of.servers == (*all_of.nodes, *all_of.balancers)
    assert all_of.balancing == all_of.balancers
    assert all_of.endpoint == Endpoint(stacks.VIP, stacks.VIP_FLOATING, 16443)


def test_one_balancer_is_too_few(cloud: OpenStack) -> None:
    with pytest.raises(InvalidPackage, match="VDU balancerNode: has 1 servers; load balancers are at least 2"):
        found(cloud, count=1)


def test_the_pairs_of_the_balancers_are_checked_and_masters_need_none(cloud: OpenStack) -> None:
    wrong = re.escape(", ".join(stacks.server("balancerNode", number) for number in range(2)))
    with pytest.raises(InvalidPackage, match=f"the servers {wrong} may not send from the virtual IP 10.0.0.100: add it to"):
        found(cloud, paired=("masterNode",))


def test_the_virtual_ip_is_no_servers_port(cloud: OpenStack) -> None:
    with pytest.raises(InvalidPackage, match="masterNode_CP1: is the port of a server; with external_lb_param cluster_cp_name"):
        found(cloud, least=1, cluster_cp_name="masterNode_CP1")
    assert found(cloud, least=1).balancing


# --- plan -------------------------------------------------------------------------------------------------------------

ALL = [node.name for node in OUTSIDE.servers]


def test_balancers_come_before_the_cluster_and_masters_get_no_haproxy() -> None:
    assert summary(plan.ensure(clusters.wanted(OUTSIDE), clusters.empty(OUTSIDE))) == [
        ("installation", ALL),
        ("load balancing", NAMES),
        ("first master", [MASTERS[0].name]),
        ("manifests", [MASTERS[0].name]),
        ("masters", [one.name for one in MASTERS[1:]]),
        ("workers", [one.name for one in WORKERS]),
    ]


def test_each_balancer_knows_all_masters_and_the_other_balancer() -> None:
    phases = plan.ensure(clusters.wanted(OUTSIDE), clusters.empty(OUTSIDE))
    [balanced] = [phase for phase in phases if phase.name == "load balancing"]
    for step, other in zip(balanced.steps, reversed(BALANCERS), strict=True):
        assert isinstance(step, plan.Configure) and step.start == ("haproxy", "keepalived")
        haproxy, keepalived = (file.content for file in step.files)
        assert [line.split()[2] for line in haproxy.splitlines() if "  server " in line] == [
            f"{one.address}:6443" for one in MASTERS
        ]
        assert f"unicast_src_ip {step.node.address}\n  unicast_peer {{\n    {other.address}\n  }}" in keepalived
        assert f"{ENDPOINT.address}/32 dev eth0" in keepalived


def test_a_second_run_changes_nothing() -> None:
    assert plan.ensure(clusters.wanted(OUTSIDE), clusters.facts(OUTSIDE)) == []


def test_a_package_without_a_script_for_balancers_installs_nodes_only() -> None:
    wanted = dataclasses.replace(clusters.wanted(OUTSIDE), installed_balancers="")
    [installation, *_] = plan.ensure(wanted, clusters.empty(OUTSIDE))
    assert summary([installation]) == [("installation", [node.name for node in OUTSIDE.nodes])]


def test_a_replaced_balancer_gets_its_files_again_and_the_other_one_is_not_touched() -> None:
    facts = clusters.facts(OUTSIDE)
    servers = {name: one for name, one in facts.servers.items() if name != NAMES[0]}
    healed = Facts({**servers, NEW.name: Server(interface="eth0")}, facts.cluster)
    assert summary(plan.ensure(clusters.wanted(HEALED), healed)) == [
        ("installation", [NEW.name]),
        ("load balancing", [NEW.name]),
    ]


def test_a_replaced_balancer_with_another_address_is_a_peer_of_the_other_one() -> None:
    moved = dataclasses.replace(NEW, address="10.0.0.39")
    healed = dataclasses.replace(HEALED, balancers=(moved, BALANCERS[1]))
    facts = with_server(clusters.facts(OUTSIDE), moved, Server(interface="eth0"))
    [_, balanced] = plan.ensure(clusters.wanted(healed), facts)
    assert summary([balanced]) == [("load balancing", [moved.name, NAMES[1]])]
    other = balanced.steps[1]
    assert isinstance(other, plan.Configure)
    assert ([file.path for file in other.files], other.start) == ([balancing.KEEPALIVED], ())


def test_a_replaced_master_goes_out_of_the_balancers_before_and_comes_in_after() -> None:
    facts = clusters.facts(OUTSIDE)
    left = plan.leave(clusters.wanted(OUTSIDE), facts, [MASTERS[0].server])
    assert summary(left) == [
        ("drain", ["Drain master-m0"]),
        ("load balancing", NAMES),
        ("etcd", ["etcd master-m0"]),
        ("nodes", ["DeleteNode master-m0"]),
    ]
    [balanced] = [phase for phase in left if phase.name == "load balancing"]
    for step in balanced.steps:
        assert isinstance(step, plan.Configure)
        [file] = step.files
        assert file.path == balancing.HAPROXY and MASTERS[0].address not in file.content
    new = Node("m9", Role.MASTER, "master-m9", "198.51.100.19", MASTERS[0].address)
    healed = dataclasses.replace(OUTSIDE, nodes=(new, *OUTSIDE.nodes[1:]))
    assert ("load balancing", NAMES) in summary(plan.ensure(clusters.wanted(healed), facts))


@pytest.mark.parametrize(
    ("dead", "leaving", "expected"),
    [
        ((), ["b0"], [("virtual IP", [NAMES[0]])]),
        ((NAMES[0],), ["b0"], []),
        (tuple(NAMES), ["b0"], []),
        (tuple(NAMES), ["b0", "b1"], []),
        ((), ["b0", "w0"], [("drain", ["Drain worker-w0"]), ("nodes", ["DeleteNode worker-w0"]), ("virtual IP", [NAMES[0]])]),
        ((), ["w0"], [("drain", ["Drain worker-w0"]), ("nodes", ["DeleteNode worker-w0"])]),
    ],
)
def test_a_balancer_that_leaves_gives_the_virtual_ip_to_the_other_one(
    dead: tuple[str, ...], leaving: list[str], expected: list[tuple[str, list[str]]]
) -> None:
    facts = clusters.facts(OUTSIDE, dead=dead)
    assert summary(plan.leave(clusters.wanted(OUTSIDE), facts, leaving)) == expected


@pytest.mark.parametrize(("dead", "leaving"), [((), ["b0", "b1"]), ((NAMES[1],), ["b0"]), ((NAMES[1],), ["b0", "b1"])])
def test_the_last_balancer_that_responds_stays(dead: tuple[str, ...], leaving: list[str]) -> None:
    with pytest.raises(InvalidRequest, match=r"balancer-b0.*: no other load balancer responds, so nobody would have"):
        plan.leave(clusters.wanted(OUTSIDE), clusters.facts(OUTSIDE, dead=dead), leaving)


def test_a_balancer_leaves_though_no_master_responds() -> None:
    facts = Facts({name: one for name, one in clusters.facts(OUTSIDE).servers.items() if name in NAMES})
    assert summary(plan.leave(clusters.wanted(OUTSIDE), facts, ["b1"])) == [("virtual IP", [NAMES[1]])]


def test_a_retry_releases_nothing_twice() -> None:
    ended = dataclasses.replace(clusters.settled(BALANCERS[0], OUTSIDE), active=frozenset({"haproxy"}))
    facts = with_server(clusters.facts(OUTSIDE), BALANCERS[0], ended)
    assert plan.leave(clusters.wanted(OUTSIDE), facts, ["b0"]) == []


# --- what is done -----------------------------------------------------------------------------------------------------


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "PAUSE", 0.0)
    monkeypatch.setattr(run, "HOLDER_WITHIN", 0.05)


@pytest.mark.usefixtures("without_pauses")
def test_a_heal_of_a_balancer_ends_when_the_other_one_has_the_virtual_ip() -> None:
    hosts = Hosts(holders=[NAMES[1]])
    operation(hosts, OUTSIDE).leave(["b0"])
    assert hosts.done == ["the end of keepalived"]
    with pytest.raises(DriverError, match="no node has the virtual IP; exactly one server has to, within"):
        operation(Hosts(), OUTSIDE).leave(["b0"])


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("holders", [NAMES, [MASTERS[1].name, NAMES[0]]], ids=["two", "a master, too"])
def test_exactly_one_of_all_servers_has_the_virtual_ip(holders: list[str]) -> None:
    with pytest.raises(DriverError, match=f"{', '.join(holders)} has the virtual IP; exactly one server has to"):
        operation(Hosts(holders=holders, is_balanced=True), OUTSIDE).ensure()


@pytest.mark.usefixtures("without_pauses")
def test_two_new_balancers_are_configured_before_one_of_them_has_the_virtual_ip() -> None:
    """Nobody has it until then, and that is no reason to wait."""
    hosts = Hosts(holders=[])
    with pytest.raises(DriverError, match="has the virtual IP"):
        operation(hosts, OUTSIDE).ensure()
    assert hosts.done.count("the new /etc/keepalived/keepalived.conf") == 2


def test_a_retry_of_a_heal_whose_balancer_is_gone_changes_no_peers() -> None:
    """With a master, whose HAProxy entry goes."""
    gone = dataclasses.replace(BALANCERS[0], ssh="", address="", is_there=False)
    inventory = dataclasses.replace(OUTSIDE, balancers=(gone, BALANCERS[1]))
    [balanced] = [
        phase
        for phase in plan.leave(clusters.wanted(inventory), clusters.facts(OUTSIDE, dead=(gone.name,)), ["b0", "m0"])
        if phase.name == "load balancing"
    ]
    [step] = balanced.steps
    assert isinstance(step, plan.Configure)
    assert (step.node, [file.path for file in step.files]) == (BALANCERS[1], [balancing.HAPROXY])
