# SPDX-License-Identifier: Apache-2.0
"""Three masters and their workers from the first kubeadm to the last failure; the tests share one cluster, in this order."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial

import pytest

from builds import commands

from ..conftest import Summary
from ..testbed.nodes import USER, Node
from ..testbed.processes import until
from .masters import PORT, is_reached, keep_a_pod_on, members, secured
from .probe import Probe
from .site import BALANCER, MASTERS, VIM, VIP, WORKERS, Server, Site, name_of

SITE = Site
OUTSIDE = {"vdu_id": BALANCER, "ssh_cp_name": f"{BALANCER}_CP1", "ssh_username": USER, "script_path": "Scripts/balancer.sh"}
PHASES = ("installation", "load balancing", "first master", "manifests", "masters", "workers")
# Seconds, however busy the host is.
BACK_WITHIN, READY_WITHIN = 180.0, 300.0
# In which a failure shows itself.
LOOK = 5.0


@pytest.fixture(scope="module", autouse=True)
def servers(site: Site) -> None:
    """Three masters and a worker boot at once."""
    for number in range(3):
        site.add(MASTERS, number)
    site.add(WORKERS, 0)


def test_an_instantiate_that_dies_at_each_step_ends_as_if_it_had_not(site: Site, summary: Summary) -> None:
    started, first = time.monotonic(), site.nodes[site.of(MASTERS)[0].id]
    for phase in PHASES:
        site.operate("instantiate_end", killed_when=lambda log, phase=phase: f": {phase}: " in log, **site.parameters)
        if phase == "first master":
            site.operate("instantiate_end", killed_when=lambda _: runs(first, "k8s-cr-init"), **site.parameters)
    outcome = site.operate("instantiate_end", **site.parameters)
    assert outcome.failure == ""
    assert site.ready() == site.names()
    assert members(site) == {name_of(one) for one in site.of(MASTERS)}
    assert len(site.holders()) == 1
    assert "of-the-package" in site.kubectl("get", "configmaps", "--output=name")
    assert json.loads(site.nodes[site.of(WORKERS)[0].id].machine.run("cat", "/run/given-to-the-script"))["role"] == "worker"
    summary(f"{len(PHASES) + 1} deaths, complete after {time.monotonic() - started:.0f} s")


def test_the_cluster_is_a_vim_by_its_virtual_ip(site: Site) -> None:
    assert list(site.vims) == ["vim1", VIM]
    entry = site.vims[VIM]
    assert entry["interfaceInfo"]["endpoint"] == f"https://{VIP}:{PORT}"
    assert site.asked_by_vim("/api/v1/namespaces") == 200
    token = entry["accessInfo"]["bearer_token"]
    assert [(one["name"], one["auth_cred"]["bearer_token"]) for one in site.tacker.vims.values()] == [(VIM, token)]
    assert token not in site.conductor.log.read_text()


def test_a_second_run_changes_nothing(site: Site) -> None:
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes) == ("", 0)
    assert outcome.connections <= 2 * len(site.deployed.servers)


def test_the_api_comes_back_whatever_fails(site: Site, summary: Summary) -> None:
    summary("seconds without the API: " + ", ".join(f"{what} {seconds:.1f}" for what, seconds in outages(site)))
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes) == ("", 0)


def outages(site: Site) -> list[tuple[str, float]]:
    """What was done, and for how long the API did not respond."""
    found = []
    for what, do, undo in (
        ("HAProxy stopped", partial(run, "systemctl stop haproxy"), partial(run, "systemctl start haproxy")),
        ("HAProxy killed", partial(run, "pkill -KILL -x haproxy"), nothing),
        ("API server killed", partial(run, "pkill -KILL -x kube-apiserver"), nothing),
        ("the owner's link down", Node.cut_off, Node.connect),
    ):
        found.append((what, outage(site, holder(site), do, undo)))
    other = next(one for one in site.of(MASTERS) if one != holder(site))
    found.append(("another master cut off", outage(site, other, Node.cut_off, Node.connect)))
    return found


def outage(site: Site, server: Server, do: Callable[[Node], None], undo: Callable[[Node], None]) -> float:
    probe = Probe(VIP, PORT, site.vims[VIM]["interfaceInfo"]["ssl_ca_cert"])
    with probe.running():
        probe.watch(0, BACK_WITHIN)
        do(site.nodes[server.id])
        try:
            seconds = probe.watch(LOOK, BACK_WITHIN)
        finally:
            undo(site.nodes[server.id])
    assert until(lambda: is_whole(site), READY_WITHIN, pause=0.5), "the cluster does not become whole again"
    return seconds


def test_a_virtual_ip_that_its_holder_may_not_have_does_not_answer(site: Site) -> None:
    """By the rules of the bed's cloud for a port without, and with, its allowed address pair."""
    server = holder(site)
    assert is_reached(VIP)
    with secured(site.nodes[server.id], pairs=[]):
        assert not is_reached(VIP)
        assert is_reached(server.address)
    with secured(site.nodes[server.id], pairs=[VIP]):
        assert is_reached(VIP)
    assert until(lambda: is_whole(site), READY_WITHIN, pause=0.5)


def test_a_virtual_ip_that_two_have_fails_the_operation(site: Site) -> None:
    other = next(one for one in site.of(MASTERS) if one != holder(site))
    machine = site.nodes[other.id].machine
    machine.run("ip", "address", "add", f"{VIP}/32", "dev", "eth0")
    outcome = site.operate("heal_end")
    machine.run("ip", "address", "delete", f"{VIP}/32", "dev", "eth0")
    commands.run(["ip", "neighbour", "flush", VIP])  # the host may have learned the other's link address
    assert "has the virtual IP; exactly one server has to, within" in outcome.failure
    assert name_of(other) in outcome.failure and name_of(holder(site)) in outcome.failure
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes) == ("", 0)


def test_a_worker_comes_and_goes_when_its_pods_may(site: Site, summary: Summary) -> None:
    started = time.monotonic()
    added = site.add(WORKERS, 1)
    node = site.nodes[added.id]
    site.operate("scale_end", killed_when=lambda _: runs(node, "k8s-cr-join"))
    run("systemctl kill --signal=KILL k8s-cr-join || true", node)  # in the middle, or just before it ends
    outcome = site.operate("scale_end")
    assert (outcome.failure, site.ready()) == ("", site.names())
    summary(f"scale out {time.monotonic() - started:.0f} s")

    keep_a_pod_on(site, added)
    outcome = site.operate("scale_start", added, drain_timeout=4)
    assert re.search(rf"kubectl drain {name_of(added)} ended with status 1.*See the PodDisruptionBudgets", outcome.failure)
    assert name_of(added) in site.ready()
    site.kubectl("delete", "poddisruptionbudget", "kept")
    assert site.operate("scale_start", added, drain_timeout=60).failure == ""
    assert name_of(added) not in site.ready()
    site.remove(added)
    assert site.operate("scale_end", added).failure == ""
    assert site.ready() == site.names()


def test_a_master_is_replaced(site: Site, summary: Summary) -> None:
    """The one that has the virtual IP. Its successor has its address and its port."""
    started, old = time.monotonic(), holder(site)
    assert site.operate("heal_start", old).failure == ""
    other = next(one for one in site.of(MASTERS) if one != old)
    assert name_of(old) not in members(site, other)
    new = site.replace(old)
    outcome = site.operate("heal_end", new)
    assert outcome.failure == ""
    assert site.ready() == site.names()
    assert members(site, other) == {name_of(one) for one in site.of(MASTERS)}
    assert site.asked_by_vim("/api/v1/namespaces") == 200
    summary(f"heal of a master {time.monotonic() - started:.0f} s")


def test_another_host_key_at_the_address_of_a_server_is_refused(site: Site) -> None:
    [worker] = site.of(WORKERS)
    with site.nodes[worker.id].other_host_key():
        outcome = site.operate("heal_end")
    assert outcome.failure.startswith(f"ha_masters: {name_of(worker)} ({worker.address}): its host key is none of those")
    assert site.operate("heal_end").changes == 0


def test_no_master_is_touched_when_two_of_three_are_dead(site: Site) -> None:
    dead = site.of(MASTERS)[1:]
    for one in dead:
        site.nodes[one.id].cut_off()
    try:
        outcome = site.operate("heal_start", dead[0])
        assert "heal the whole VNF instance" in outcome.failure
        assert not any(re.search(r": (etcd|nodes|load balancing|drain): ", line) for line in outcome.log)
    finally:
        for one in dead:
            site.nodes[one.id].connect()
    assert until(lambda: is_whole(site), READY_WITHIN, pause=0.5)


def test_two_servers_outside_take_the_balancing_over(site: Site, summary: Summary) -> None:
    """The masters end it, as those of an instance that has begun so never have it."""
    site.conductor.write("Scripts/balancer.sh", "#!/bin/sh\nset -eu\ncommand -v haproxy keepalived\n")
    for number in range(2):
        site.add(BALANCER, number)
    outcome = site.operate("heal_end", external_lb_param=OUTSIDE)
    assert f"{BALANCER}_CP1: the port of the servers" in outcome.failure
    for one in site.of(MASTERS):
        run("systemctl disable --now --quiet keepalived haproxy", site.nodes[one.id])
    site.deployed.paired = (BALANCER,)
    outcome = site.operate("heal_end", external_lb_param=OUTSIDE)
    assert (outcome.failure, holder(site).vdu) == ("", BALANCER)
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes) == ("", 0)
    assert outcome.connections <= 2 * len(site.deployed.servers)
    seconds = outage(site, holder(site), Node.cut_off, Node.connect)
    summary(f"seconds without the API: the link of a load balancer down {seconds:.1f}")


def test_a_load_balancer_is_replaced_while_the_other_one_has_the_virtual_ip(site: Site) -> None:
    old = holder(site)
    assert "no other load balancer responds" in site.operate("heal_start", *site.of(BALANCER)).failure
    assert holder(site) == old
    assert site.operate("heal_start", old).failure == ""
    other = holder(site)
    assert other != old
    new = site.replace(old)
    assert site.operate("heal_end", new).failure == ""
    assert haproxy(site, new) == haproxy(site, other)
    assert (holder(site), site.asked_by_vim("/api/v1/namespaces")) == (other, 200)


def test_a_replaced_master_leaves_the_load_balancers_and_comes_back(site: Site) -> None:
    old = site.of(MASTERS)[1]
    assert site.operate("heal_start", old).failure == ""
    assert [name_of(old) in haproxy(site, one) for one in site.of(BALANCER)] == [False, False]
    new = site.replace(old)
    outcome = site.operate("heal_end", new)
    assert (outcome.failure, site.ready()) == ("", site.names())
    assert [name_of(new) in haproxy(site, one) for one in site.of(BALANCER)] == [True, True]
    assert site.nodes[new.id].machine.run("sh", "-c", "systemctl is-active keepalived || true").strip() != "active"


def test_a_terminate_takes_the_vim_away_first(site: Site) -> None:
    assert site.operate("terminate_start").failure == ""
    assert (list(site.vims), site.tacker.vims) == (["vim1"], {})


def run(line: str, node: Node) -> None:
    node.machine.run("sh", "-c", line)


def nothing(_: Node) -> None:
    """systemd, or the kubelet, starts it again."""


def runs(node: Node, unit: str) -> bool:
    """False also while the machine boots."""
    try:
        shown = node.machine.run("systemctl", "show", "--property=ActiveState", "--value", f"{unit}.service")
    except RuntimeError:
        return False
    return shown.strip() == "active"


def holder(site: Site) -> Server:
    [one] = site.holders()
    return one


def haproxy(site: Site, server: Server) -> str:
    """The configuration of HAProxy on a server."""
    return site.nodes[server.id].machine.run("cat", "/etc/haproxy/haproxy.cfg")


def is_whole(site: Site) -> bool:
    """All nodes are Ready, each API server responds, and one master has the virtual IP."""
    try:
        ready = [site.kubectl("get", "--raw=/readyz", by=one) for one in site.of(MASTERS)]
        return ready == ["ok"] * len(ready) and site.ready() == site.names() and len(site.holders()) == 1
    except RuntimeError:
        return False
