# SPDX-License-Identifier: Apache-2.0
"""What is to be done, for what there is: a table of phases, each with the nodes that it concerns."""

from __future__ import annotations

import dataclasses

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import plan
from k8s_cr_driver.node_clusters.facts import Facts, Server
from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory, Node, Role

from . import clusters
from .clusters import ENDPOINT, INVENTORY, MASTERS, WORKERS

ALL = [node.name for node in INVENTORY.nodes]
NEW = Node("m9", Role.MASTER, "master-m9", "198.51.100.19", "10.0.0.10")
"""Has the address of the master that it replaces."""
HEALED = Inventory((NEW, *INVENTORY.nodes[1:]), ENDPOINT)


def summary(phases: list[plan.Phase]) -> list[tuple[str, list[str]]]:
    return [(phase.name, [_name(step) for step in phase.steps]) for phase in phases]


def _name(step: plan.Step) -> str:
    match step:
        case plan.RemoveMember(_, member):
            return f"etcd {member.name}"
        case plan.Drain(_, name) | plan.DeleteNode(_, name):
            return f"{type(step).__name__} {name}"
        case plan.Apply(by):
            return by.name
    return step.node.name


def with_server(facts: Facts, node: Node, server: Server) -> Facts:
    return dataclasses.replace(facts, servers={**facts.servers, node.name: server})


def test_new_servers_become_a_cluster_behind_its_load_balancer() -> None:
    assert summary(plan.ensure(clusters.wanted(), clusters.empty())) == [
        ("installation", ALL),
        ("load balancing", ALL[:3]),
        ("first master", ALL[:1]),
        ("manifests", ALL[:1]),
        ("masters", ALL[1:3]),
        ("workers", ALL[3:]),
    ]


def test_a_single_master_at_its_own_port_has_no_load_balancer() -> None:
    inventory = Inventory((MASTERS[0], WORKERS[0]), Endpoint(MASTERS[0].address, MASTERS[0].address, 6443))
    facts = Facts({node.name: Server(interface="eth0") for node in inventory.nodes})
    phases = summary(plan.ensure(clusters.wanted(inventory), facts))
    assert [name for name, _ in phases] == ["installation", "first master", "manifests", "workers"]


def test_masters_join_one_after_another() -> None:
    phases = plan.ensure(clusters.wanted(), clusters.empty())
    assert [phase.name for phase in phases if phase.in_turn] == ["masters"]


def test_a_second_run_changes_nothing() -> None:
    assert plan.ensure(clusters.wanted(), clusters.facts()) == []


def test_after_a_crash_only_what_is_left_is_done() -> None:
    facts = clusters.facts()
    for node in (MASTERS[2], WORKERS[1]):
        facts = with_server(facts, node, dataclasses.replace(clusters.settled(node), is_joined=False, is_control_plane=False))
    assert summary(plan.ensure(clusters.wanted(), facts)) == [("masters", [MASTERS[2].name]), ("workers", [WORKERS[1].name])]


def test_a_crash_before_the_manifests_does_not_lose_them() -> None:
    facts = with_server(clusters.facts(), MASTERS[0], dataclasses.replace(clusters.settled(MASTERS[0]), applied=""))
    assert summary(plan.ensure(clusters.wanted(), facts)) == [("manifests", [MASTERS[0].name])]


def test_a_new_worker_is_installed_and_joins_and_nothing_else_is_touched() -> None:
    added = Node("w9", Role.WORKER, "worker-w9", "198.51.100.29", "10.0.0.29")
    inventory = Inventory((*INVENTORY.nodes, added), ENDPOINT)
    facts = with_server(clusters.facts(), added, Server(interface="eth0"))
    assert summary(plan.ensure(clusters.wanted(inventory), facts)) == [
        ("installation", [added.name]),
        ("workers", [added.name]),
    ]


def test_a_healed_master_replaces_what_the_dead_one_left_and_every_balancer_knows_it() -> None:
    left = clusters.facts()
    facts = Facts({name: left.servers[name] for name in ALL[1:]} | {NEW.name: Server(interface="eth0")}, left.cluster)
    assert summary(plan.ensure(clusters.wanted(HEALED), facts)) == [
        ("removal of what former servers left", [f"etcd {ALL[0]}", f"DeleteNode {ALL[0]}"]),
        ("installation", [NEW.name]),
        ("load balancing", [NEW.name, *ALL[1:3]]),
        ("manifests", [ALL[1]]),
        ("masters", [NEW.name]),
    ]


def test_a_stopped_service_is_started_and_its_file_stays() -> None:
    server = dataclasses.replace(clusters.settled(MASTERS[1]), active=frozenset({"haproxy"}))
    [phase] = plan.ensure(clusters.wanted(), with_server(clusters.facts(), MASTERS[1], server))
    assert phase.steps == (plan.Configure(MASTERS[1], (), ("keepalived",)),)


def test_a_worker_that_leaves_is_drained_then_deleted() -> None:
    assert summary(plan.leave(clusters.wanted(), clusters.facts(), ["w0"])) == [
        ("drain", ["Drain worker-w0"]),
        ("nodes", ["DeleteNode worker-w0"]),
    ]


def test_a_dead_worker_is_not_drained() -> None:
    facts = clusters.facts(dead=("worker-w0",))
    assert summary(plan.leave(clusters.wanted(), facts, ["w0"])) == [("nodes", ["DeleteNode worker-w0"])]


@pytest.mark.parametrize(
    ("responds", "is_ready", "leaves", "expected"),
    [
        (False, True, ["w0"], ["worker-w0"]),
        (False, False, ["w0"], []),
        (True, True, ["w0"], []),
        (False, True, ["w1"], []),
    ],
)
def test_a_server_that_has_just_died_is_still_ready(
    responds: bool, is_ready: bool, leaves: list[str], expected: list[str]
) -> None:
    servers = {name: one for name, one in clusters.facts().servers.items() if responds or name != "worker-w0"}
    facts = Facts(servers, clusters.cluster(dead=() if is_ready else ("worker-w0",)))
    assert plan.silent(INVENTORY, facts, leaves) == expected


@pytest.mark.parametrize("dead", [(), ("master-m0",)])
def test_a_master_leaves_the_balancers_before_etcd(dead: tuple[str, ...]) -> None:
    found = summary(plan.leave(clusters.wanted(), clusters.facts(dead=dead), ["m0"]))
    assert found[-3:] == [
        ("load balancing", ["master-m1", "master-m2"]),
        ("etcd", ["etcd master-m0"]),
        ("nodes", ["DeleteNode master-m0"]),
    ]
    assert found[:-3] == ([] if dead else [("drain", ["Drain master-m0"])])


@pytest.mark.parametrize(
    ("dead", "leaving", "reason"),
    [
        ((), ["m0", "m1", "m2"], "all masters would be replaced at once"),
        (("master-m1",), ["m0"], "only 1 are healthy, which is no majority"),
        (("master-m0", "master-m1"), ["m0"], "only 1 are healthy, which is no majority"),
        ((), ["m0", "m1"], "only 1 are healthy, which is no majority"),
    ],
)
def test_the_last_healthy_majority_is_never_touched(dead: tuple[str, ...], leaving: list[str], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        plan.leave(clusters.wanted(), clusters.facts(dead=dead), leaving)


def test_nothing_leaves_a_cluster_that_does_not_respond() -> None:
    with pytest.raises(InvalidRequest, match="no master of the cluster responds"):
        plan.leave(clusters.wanted(), Facts({}), ["w0"])


def test_a_retry_of_a_leave_that_was_done_does_nothing() -> None:
    left = clusters.facts(INVENTORY.without(["w0"]))
    assert plan.leave(clusters.wanted(), left, ["w0"]) == []


def test_servers_that_are_no_nodes_concern_no_plan() -> None:
    assert plan.leave(clusters.wanted(), clusters.facts(), ["another"]) == []
