# SPDX-License-Identifier: Apache-2.0
"""What is to be done with a cluster that kubespray makes, for what there is: a table of phases."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import load_balancer
from k8s_cr_driver.node_clusters import plan as common
from k8s_cr_driver.node_clusters.facts import Facts, Server
from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory, Node, Role
from k8s_cr_driver.node_clusters.kubespray import plan
from k8s_cr_driver.node_clusters.kubespray.plan import Found, Wanted
from k8s_cr_driver.node_clusters.load_balancer import Balancer
from k8s_cr_driver.ssh.files import File
from tests.node_clusters import clusters
from tests.node_clusters.clusters import MASTERS, WORKERS

ENDPOINT = Endpoint("10.0.0.200", "198.51.100.200", 8383)
INVENTORY = Inventory((*MASTERS, *WORKERS), ENDPOINT)
ALL = [node.name for node in INVENTORY.nodes]
BALANCER = Node("lb", Role.BALANCER, "load-balancer-lb", "198.51.100.200", "10.0.0.200")
FILES = (File("/inv/hosts.yaml", "hosts"), File("/inv/known_hosts", "keys"))
NEW = Node("w9", Role.WORKER, "worker-w9", "198.51.100.29", "10.0.0.29")


def wanted(inventory: Inventory = INVENTORY, **changes: Any) -> Wanted:
    given: dict[str, Any] = {"applied": "a1", "balancer": BALANCER, "installed": "i1", "node_ports": (30080,), **changes}
    return Wanted(inventory, FILES, **given)


def settled(node: Node) -> Server:
    applied = "a1" if node == MASTERS[0] else ""
    return Server(is_joined=True, is_control_plane=node.is_master, installed=plan.MARK, applied=applied)


def balanced(inventory: Inventory = INVENTORY) -> Balancer:
    data = {load_balancer.CLUSTER: load_balancer.of_cluster(inventory, (30080,))}
    return Balancer(data, hashlib.sha256(load_balancer.configuration(data).encode()).hexdigest(), serves=True)


def found(inventory: Inventory = INVENTORY, dead: tuple[str, ...] = (), **servers: Server) -> Found:
    """A whole cluster; those in `dead` do not respond, and `servers` are others by the names of nodes with `_`."""
    responding = {node.name: settled(node) for node in inventory.nodes if node.name not in dead}
    responding |= {name.replace("_", "-"): server for name, server in servers.items()}
    cluster = dataclasses.replace(clusters.cluster(inventory, dead), members=())
    digests = {file.path: file.digest for file in FILES}
    return Found(Facts(responding, cluster), digests, balanced(inventory), "i1")


def new() -> Found:
    return Found(Facts({node.name: Server() for node in INVENTORY.nodes}))


def summary(phases: list[plan.Phase]) -> list[tuple[str, list[str]]]:
    return [(phase.name, [_words(step) for step in phase.steps]) for phase in phases]


def _words(step: plan.Step) -> str:
    match step:
        case plan.Write(files):
            return " ".join(file.path for file in files)
        case plan.Play(one, marked):
            return " ".join((one.file, *one.arguments, *(("marks", *(node.name for node in marked)) if marked else ())))
        case plan.Balance(inventory):
            return " ".join(node.name for node in inventory.nodes)
        case plan.Forget(names):
            return " ".join(("forget", *names))
        case common.Drain(_, name) | common.DeleteNode(_, name):
            return f"{type(step).__name__} {name}"
        case common.Install(node) | common.Apply(node):
            return f"{type(step).__name__} {node.name}"
    raise AssertionError(step)


def test_new_servers_become_a_cluster_whose_load_balancer_is_there_first() -> None:
    assert summary(plan.ensure(wanted(), new())) == [
        ("installation of the load balancer", ["Install load-balancer-lb"]),
        ("load balancing", [" ".join(ALL)]),
        ("inventory", ["/inv/hosts.yaml /inv/known_hosts"]),
        ("playbooks", [f"cluster.yml marks {' '.join(ALL)}"]),
        ("manifests", ["Apply master-m0"]),
    ]


def test_a_second_run_runs_no_playbook_and_changes_nothing() -> None:
    assert plan.ensure(wanted(), found()) == []


def test_without_a_load_balancer_there_are_no_phases_of_it() -> None:
    phases = plan.ensure(wanted(balancer=None, installed="", applied="", node_ports=()), new())
    assert [phase.name for phase in phases] == ["inventory", "playbooks"]


def test_a_playbook_that_has_failed_is_run_again_on_a_folder_that_is_there() -> None:
    servers = {node.name: Server(is_joined=True, is_control_plane=node.is_master) for node in INVENTORY.nodes}
    facts = Found(Facts(servers), {file.path: file.digest for file in FILES}, balanced(), "i1")
    assert summary(plan.ensure(wanted(applied=""), facts)) == [("playbooks", [f"cluster.yml marks {' '.join(ALL)}"])]


def test_a_crash_between_the_marks_repeats_the_playbook_and_refuses_nothing() -> None:
    facts = found(master_m1=Server(is_joined=True, is_control_plane=True))
    assert summary(plan.ensure(wanted(), facts)) == [("playbooks", [f"cluster.yml marks {' '.join(ALL)}"])]


def test_a_new_worker_gets_the_facts_of_all_and_its_playbook_is_limited_to_it() -> None:
    inventory = Inventory((*INVENTORY.nodes, NEW), ENDPOINT)
    facts = found(worker_w9=Server())
    facts = dataclasses.replace(facts, digests={"/inv/hosts.yaml": "old", "/inv/known_hosts": FILES[1].digest})
    assert summary(plan.ensure(wanted(inventory), facts)) == [
        ("load balancing", [" ".join([*ALL, "worker-w9"])]),
        ("inventory", ["/inv/hosts.yaml"]),
        ("playbooks", ["facts.yml", "scale.yml --limit=worker-w9 marks worker-w9"]),
    ]


def test_what_a_replaced_worker_has_left_is_deleted_with_its_facts() -> None:
    inventory = Inventory((*MASTERS, WORKERS[0], NEW), ENDPOINT)
    assert summary(plan.ensure(wanted(inventory), found(worker_w9=Server())))[:3] == [
        ("removal of what former servers left", ["DeleteNode worker-w1"]),
        ("load balancing", [" ".join([*ALL[:4], "worker-w9"])]),
        ("inventory", ["forget worker-w1"]),
    ]


def test_a_worker_that_was_removed_and_is_there_becomes_a_node_again() -> None:
    left = found(INVENTORY.without(["w1"]))
    facts = dataclasses.replace(left, facts=Facts(found().facts.servers, left.facts.cluster), balancer=balanced())
    played = ["facts.yml", "scale.yml --limit=worker-w1 marks worker-w1"]
    assert summary(plan.ensure(wanted(), facts)) == [("playbooks", played)]


@pytest.mark.parametrize("alone", [False, True], ids=["one of three", "the only one"])
def test_a_new_master_of_a_cluster_that_is_there_is_refused(alone: bool) -> None:
    fresh = Node("m9", Role.MASTER, "master-m9", "198.51.100.19", "10.0.0.19")
    masters = (fresh,) if alone else (fresh, *MASTERS[1:])
    inventory = Inventory((*masters, *WORKERS), ENDPOINT)
    servers = {node.name: settled(node) for node in (*masters[1:], *WORKERS)} | {fresh.name: Server()}
    facts = Found(Facts(servers, None if alone else clusters.cluster()))
    with pytest.raises(InvalidRequest, match=r"master-m9: is a new master .* no playbook for it; heal the whole VNF instance"):
        plan.ensure(wanted(inventory), facts)


def test_a_worker_leaves_drained_then_without_a_route_and_in_the_inventory_until_its_playbook_has_ended() -> None:
    assert summary(plan.leave(wanted(), found(), ["w0"])) == [
        ("drain", ["Drain worker-w0"]),
        ("load balancing", [" ".join(name for name in ALL if name != "worker-w0")]),
        ("playbooks", ['remove-node.yml --extra-vars {"node": "worker-w0", "skip_confirmation": true}']),
        ("facts", ["forget worker-w0"]),
    ]


def test_a_dead_worker_is_neither_drained_nor_reset_and_kubespray_does_not_wait_for_its_pods() -> None:
    [balancing, plays, _] = summary(plan.leave(wanted(), found(dead=("worker-w0",)), ["w0"]))
    assert balancing[0] == "load balancing"
    ungraceful = '"reset_nodes": false, "allow_ungraceful_removal": true, "drain_timeout": "1s"'
    variables = f'{{"node": "worker-w0", "skip_confirmation": true, {ungraceful}}}'
    assert plays == ("playbooks", [f"remove-node.yml --extra-vars {variables}"])


def test_the_folder_of_a_leave_is_written_again_where_it_is_missing() -> None:
    facts = dataclasses.replace(found(), digests={})
    assert ("inventory", ["/inv/hosts.yaml /inv/known_hosts"]) in summary(plan.leave(wanted(), facts, ["w0"]))


def test_a_retry_of_a_leave_that_was_done_runs_no_playbook() -> None:
    left = INVENTORY.without(["w0"])
    facts = dataclasses.replace(found(left), facts=Facts(found().facts.servers, clusters.cluster(left)))
    assert plan.leave(wanted(), facts, ["w0"]) == []


@pytest.mark.parametrize("leaving", [["m0"], ["m0", "w0"], ["m0", "m1", "m2", "w0", "w1"]])
def test_a_master_never_leaves(leaving: list[str]) -> None:
    with pytest.raises(InvalidRequest, match=r"master-m0.*: a master cannot be replaced, because kubespray has no playbook"):
        plan.leave(wanted(), found(), leaving)


def test_nothing_leaves_a_cluster_that_does_not_respond() -> None:
    with pytest.raises(InvalidRequest, match="no master of the cluster responds"):
        plan.leave(wanted(), Found(Facts({})), ["w0"])


def test_haproxy_takes_as_many_connections_as_the_server_permits() -> None:
    """With a number of its own it does not start where the limit of open files is lower."""
    assert "maxconn" not in load_balancer.configuration(balanced().data)
