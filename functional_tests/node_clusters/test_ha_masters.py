# SPDX-License-Identifier: Apache-2.0
"""Three masters and their workers from the first kubeadm to the last failure; the tests share one cluster, in this order."""

from __future__ import annotations

import json
import re
import time
from statistics import median

import pytest

from builds import commands

from ..conftest import Summary
from ..testbed.nodes import USER, Node
from ..testbed.processes import until
from . import failovers, watch
from .masters import PORT, WHOLE_WITHIN, haproxy, holder, is_reached, is_whole, keep_a_pod_on, members, run, runs, secured, uids
from .site import BALANCER, MASTERS, VIM, VIP, WORKERS, Site, name_of

SITE = Site
OUTSIDE = {"vdu_id": BALANCER, "ssh_cp_name": f"{BALANCER}_CP1", "ssh_username": USER, "script_path": "Scripts/balancer.sh"}
PHASES = ("installation", "load balancing", "first master", "manifests", "masters", "workers")


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


def test_the_api_comes_back_whatever_fails(site: Site, summary: Summary, pytestconfig: pytest.Config) -> None:
    """Once, or `--failovers` times."""
    measured: dict[str, list[float]] = {}
    for _ in range(pytestconfig.option.failovers):
        for what, seconds in failovers.all_of(site):
            measured.setdefault(what, []).append(seconds)
    medians = {what: median(all_of) for what, all_of in measured.items()}
    summary("seconds without the API: " + ", ".join(f"{what} {seconds:.1f}" for what, seconds in medians.items()))
    if pytestconfig.option.failovers >= failovers.SEVERAL:
        assert {what: all_of for what, all_of in measured.items() if medians[what] > failovers.BARS[what]} == {}
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes) == ("", 0)


def test_connections_outlive_a_reload(site: Site) -> None:
    """Of the file that somebody has changed, and that is written again. Each API server has a watch by the virtual IP."""
    server = holder(site)
    machine, right = site.nodes[server.id].machine, haproxy(site, server)
    with watch.on_each(site.vims[VIM], {name_of(one) for one in site.of(MASTERS)}) as watches:
        before = len(machine.run("pgrep", "-x", "haproxy").split())
        machine.write("/etc/haproxy/haproxy.cfg", f"{right}# changed\n")
        outcome = site.operate("heal_end")
        assert (outcome.failure, outcome.changes, haproxy(site, server)) == ("", 1, right)
        assert len(machine.run("pgrep", "-x", "haproxy").split()) == before + 1, "another one beside that of the watches"
        site.kubectl("create", "configmap", "after-the-reload")
        assert until(lambda: all("after-the-reload" in one.seen for one in watches), watch.WITHIN)
        assert all(one.is_open for one in watches)


def test_a_master_that_is_rebooted_comes_back_by_itself(site: Site, summary: Summary) -> None:
    """The one that has the virtual IP. It does not join a second time: what says that it is a node outlives the boot."""
    started, server = time.monotonic(), holder(site)
    node = site.nodes[server.id]
    before = uids(site)
    node.reboot()
    assert until(lambda: is_whole(site), WHOLE_WITHIN, pause=0.5), "the cluster does not become whole again"
    summary(f"reboot of a master {time.monotonic() - started:.0f} s")
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes, uids(site)) == ("", 0, before)


def test_a_virtual_ip_that_its_holder_may_not_have_does_not_answer(site: Site) -> None:
    """By the rules of the bed's cloud for a port without, and with, its allowed address pair."""
    server = holder(site)
    assert is_reached(VIP)
    with secured(site.nodes[server.id], pairs=[]):
        assert not is_reached(VIP)
        assert is_reached(server.address)
    with secured(site.nodes[server.id], pairs=[VIP]):
        assert is_reached(VIP)
    assert until(lambda: is_whole(site), WHOLE_WITHIN, pause=0.5)


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
    seconds = failovers.one(site, holder(site), Node.cut_off, Node.connect)
    summary(f"seconds without the API: the link of a load balancer down {seconds:.1f}")


def test_a_load_balancer_and_a_master_are_replaced_at_once(site: Site) -> None:
    """The one that has the virtual IP, which the other one takes over. The master leaves both, and comes back."""
    old, [other] = holder(site), [one for one in site.of(BALANCER) if one != holder(site)]
    master = site.of(MASTERS)[1]
    assert "no other load balancer responds" in site.operate("heal_start", *site.of(BALANCER)).failure
    assert holder(site) == old
    assert site.operate("heal_start", old, master).failure == ""
    assert holder(site) == other
    assert [name_of(master) in haproxy(site, one) for one in (old, other)] == [False, False]
    new = [site.replace(old), site.replace(master)]
    outcome = site.operate("heal_end", *new)
    assert (outcome.failure, site.ready()) == ("", site.names())
    assert haproxy(site, new[0]) == haproxy(site, other)
    assert name_of(new[1]) in haproxy(site, other)
    assert (holder(site), site.asked_by_vim("/api/v1/namespaces")) == (other, 200)
    assert site.nodes[new[1].id].machine.run("sh", "-c", "systemctl is-active keepalived || true").strip() != "active"


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
    assert until(lambda: is_whole(site), WHOLE_WITHIN, pause=0.5)


def test_a_terminate_takes_the_vim_away_first(site: Site) -> None:
    assert site.operate("terminate_start").failure == ""
    assert (list(site.vims), site.tacker.vims) == (["vim1"], {})
