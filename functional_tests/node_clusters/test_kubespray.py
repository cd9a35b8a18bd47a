# SPDX-License-Identifier: Apache-2.0
"""A cluster of kubespray behind an external load balancer; the tests share it and one Ansible server, in this order.

The load balancer is reached from outside by a second port, on a network that the nodes are not on. The playbooks are a
stand-in, which calls kubeadm; Ansible, its logins and its results are real. `test_kubespray_itself.py` has some of these tests
with the real playbooks.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from k8s_cr_driver.objects.marks import INSTANCE_LABEL

from ..conftest import Summary
from ..testbed import network
from ..testbed.nodes import PASSWORD, PUBLIC, USER, Node
from ..testbed.processes import until
from ..testbed.release import NEWEST
from .ansible_server import INVENTORIES, KEY, PROGRAM, ROOT, AnsibleServer, Kubespray
from .cnf import Cnf
from .script import Body, Outcome
from .site import BALANCER, KUBESPRAY, MASTERS, VIM, WORKERS, Server, Site, name_of, opened

SITE = partial(Site, driver="kubespray", base=KUBESPRAY)
OTHER = partial(Site, driver="kubespray", base=KUBESPRAY + 5)
PORT, NODE_PORT, OF_THE_CNF = 8383, 30080, 30090
_BALANCER = "#!/bin/sh\nset -eu\ncommand -v haproxy\n"
# Seconds, however busy the host is.
SERVED_WITHIN, LOGIN_WITHIN = 240.0, 240.0


@pytest.fixture(scope="module", autouse=True)
def ansible(site: Site) -> Iterator[AnsibleServer]:
    """With the servers: a load balancer, a master, a worker, and the Ansible server."""
    with booted(site) as server:
        yield server


@pytest.fixture(scope="module")
def other(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Another instance, which is one master without a load balancer, and has the same Ansible server."""
    folder = tmp_path_factory.mktemp("other")
    shutil.copy(site.key, folder)
    with opened(OTHER, folder) as one:
        one.add(MASTERS)
        yield one


@contextmanager
def booted(site: Site, kubespray: Kubespray | None = None) -> Iterator[AnsibleServer]:
    """The Ansible server; kubespray: its stand-in by default. The site has a load balancer, a master and a worker."""
    server = AnsibleServer(f"ansible-{uuid.uuid4().hex[:8]}", str(network.NETWORK[site.base + 18]), kubespray)
    server.boot(site.authorized, site.key)
    site.add(BALANCER, public=str(PUBLIC[site.base + 1]))
    for vdu in (MASTERS, WORKERS):
        site.add(vdu)
    site.conductor.write("Scripts/balancer.sh", _BALANCER)
    yield server
    server.node.remove()


def parameters(site: Site, ansible: AnsibleServer, **sections: Any) -> Body:
    """Of an instantiate, with a load balancer if the site has one."""
    given = {name: value for name, value in site.parameters.items() if name != "script_path"}
    masters = {name: value for name, value in given["master_node"].items() if name != "cluster_cp_name"}
    ports = {"ssh_cp_name": f"{BALANCER}_CP2", "nic_cp_name": f"{BALANCER}_CP1"}
    balancer = {**ports, "ssh_username": USER, "script_path": "Scripts/balancer.sh", "node_ports": [NODE_PORT]}
    return {
        **given,
        "master_node": masters,
        "kubernetes_version": NEWEST.version,
        "ansible": ansible.parameters,
        **({"external_lb_param": balancer} if site.of(BALANCER) else {}),
        **sections,
    }


def test_two_instances_are_made_at_once_from_one_ansible_server_though_a_conductor_dies(
    site: Site, other: Site, ansible: AnsibleServer, summary: Summary
) -> None:
    """One finds the folder that a dead run of it has left; its conductor dies in the middle of the playbook."""
    started = time.monotonic()
    leave_a_dead_run(site, ansible)
    outcomes: list[Outcome] = []
    beside = threading.Thread(target=lambda: outcomes.append(other.operate("instantiate_end", **parameters(other, ansible))))
    beside.start()
    outcome = instantiate_after_a_death(site, ansible)
    beside.join()
    assert [outcome.failure, *(one.failure for one in outcomes)] == ["", ""]
    # One for each, and one more if the first has ended before the retry gets there on a busy host.
    assert ansible.runs().count("cluster.yml") in (2, 3)
    for one in (site, other):
        assert one.ready() == one.names()
        assert one.asked_by_vim("/api/v1/namespaces") == 200
    assert ansible.folders() == {folder_of(site), folder_of(other)}
    assert site.vims[VIM]["interfaceInfo"]["endpoint"] == endpoint_of(site)
    [balancer], [worker] = site.of(BALANCER), site.of(WORKERS)
    assert f"server: https://{balancer.address}:{PORT}\n" in site.nodes[worker.id].machine.read("/etc/kubernetes/kubelet.conf")
    summary(f"two clusters at once {time.monotonic() - started:.0f} s")


def test_a_second_run_runs_no_playbook(site: Site, ansible: AnsibleServer) -> None:
    before = ansible.runs()
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes, ansible.runs()) == ("", 0, before)


def test_an_inventory_that_is_wrong_is_written_again_without_a_playbook(site: Site, ansible: AnsibleServer) -> None:
    before, inventory = ansible.runs(), ansible.file(f"{INVENTORIES}/{folder_of(site)}/hosts.yaml")
    right = inventory.read_text()
    inventory.write_text("all: {hosts: {}}\n")
    outcome = site.operate("heal_end")
    assert (outcome.failure, outcome.changes, ansible.runs(), inventory.read_text()) == ("", 1, before, right)


def test_node_ports_of_the_request_are_exposed_and_withdrawn(site: Site) -> None:
    expose_a_service(site, "web", NODE_PORT)
    assert until(lambda: is_served(site, NODE_PORT), SERVED_WITHIN)
    assert site.operate("heal_end", external_lb_param={"node_ports": []}).failure == ""
    assert not is_served(site, NODE_PORT)
    assert site.operate("heal_end", external_lb_param={"node_ports": [NODE_PORT]}).failure == ""
    assert until(lambda: is_served(site, NODE_PORT), SERVED_WITHIN)


def test_node_ports_of_a_cnf_are_exposed_and_withdrawn_by_its_own_package(site: Site, tmp_path: Path) -> None:
    cnf = Cnf(site, tmp_path)
    expose_a_service(site, "cnf", OF_THE_CNF, {INSTANCE_LABEL: cnf.id})
    assert "it refuses the login of nobody-here" in cnf.operate("instantiate_end", ssh_username="nobody-here")
    assert f"it refuses the login of {USER}" in cnf.operate("instantiate_end", ssh_password="wrong-word")
    assert cnf.operate("instantiate_end") == ""
    assert until(lambda: is_served(site, OF_THE_CNF), SERVED_WITHIN)
    outcome = site.operate("heal_end", external_lb_param={"node_ports": [NODE_PORT, OF_THE_CNF]})
    assert f"the load balancer has cnf-{cnf.id} at port {OF_THE_CNF}, so cluster cannot be there" in outcome.failure
    assert cnf.operate("terminate_start") == ""
    assert not is_served(site, OF_THE_CNF)
    assert is_served(site, NODE_PORT)


def test_a_worker_joins_after_a_playbook_that_has_failed(site: Site, ansible: AnsibleServer, summary: Summary) -> None:
    added, before = site.add(WORKERS, 1), ansible.runs()
    machine = site.nodes[added.id].machine
    program = machine.read("/usr/local/bin/kubeadm")
    machine.write("/usr/local/bin/kubeadm", "#!/bin/sh\nexit 3\n", mode=0o755)
    outcome = site.operate("scale_end")
    assert f"scale.yml of kubespray has failed: {name_of(added)}: Kubeadm | Join to cluster" in outcome.failure
    machine.write("/usr/local/bin/kubeadm", program, mode=0o755)
    scale_out(site, added, summary)
    assert ansible.runs()[len(before) :] == 2 * ["playbooks/facts.yml", "scale.yml"]


def test_a_worker_leaves(site: Site, ansible: AnsibleServer) -> None:
    leaving = site.of(WORKERS)[1]
    assert site.operate("scale_start", leaving).failure == ""
    assert ansible.runs()[-1] == "remove-node.yml"
    assert name_of(leaving) not in site.ready()
    assert name_of(leaving) not in balancing(site)
    site.remove(leaving)
    assert site.operate("scale_end", leaving).failure == ""
    assert site.ready() == site.names()


def test_a_dead_worker_is_replaced(site: Site, summary: Summary) -> None:
    started = time.monotonic()
    [dead] = site.of(WORKERS)
    site.nodes[dead.id].cut_off()
    assert site.operate("heal_start", dead).failure == ""
    new = site.replace(dead)
    outcome = site.operate("heal_end", new)
    assert outcome.failure == ""
    assert site.ready() == site.names()
    assert until(lambda: is_served(site, NODE_PORT), SERVED_WITHIN)
    summary(f"heal of a dead worker {time.monotonic() - started:.0f} s")


def test_a_master_is_not_replaced(site: Site, ansible: AnsibleServer) -> None:
    before, [master] = ansible.runs(), site.of(MASTERS)
    outcome = site.operate("heal_start", master)
    refused = f"{name_of(master)}: a master cannot be replaced, because kubespray has no playbook for it; heal the whole VNF"
    assert refused in outcome.failure
    assert (ansible.runs(), site.ready()) == (before, site.names())


def test_ansible_logs_in_at_servers_with_pinned_host_keys_only(site: Site, ansible: AnsibleServer) -> None:
    [worker] = site.of(WORKERS)
    node = site.nodes[worker.id]
    assert run_facts(site, ansible) == ""
    with node.other_host_key():
        assert until(lambda: is_refused_for_its_key(site, ansible), LOGIN_WITHIN), "a busy host does not respond at once"
        assert f"{name_of(worker)} ({worker.address}): its host key is none of those" in site.operate("heal_end").failure
    assert run_facts(site, ansible) == ""


def test_an_ansible_server_that_refuses_the_login_is_named(site: Site, ansible: AnsibleServer) -> None:
    failure = site.operate("heal_end", ansible={"password": "wrong-word"}).failure
    assert f"the Ansible server ({ansible.node.address}): it refuses the login of {USER}" in failure
    assert site.operate("heal_end", ansible={"password": PASSWORD}).failure == ""


def test_a_heal_of_the_whole_instance_makes_a_new_cluster_and_a_new_load_balancer(
    site: Site, ansible: AnsibleServer, summary: Summary
) -> None:
    started, before = time.monotonic(), ansible.runs()
    assert site.operate("heal_start", *site.deployed.servers, is_whole=True).failure == ""
    assert list(site.vims) == ["vim1"]
    former = site.replace_all()
    assert site.operate("heal_end", *former, is_whole=True).failure == ""
    assert ansible.runs() == [*before, "cluster.yml"]
    assert site.ready() == site.names()
    assert site.asked_by_vim("/api/v1/namespaces") == 200, "by the new load balancer"
    [worker] = site.of(WORKERS)
    assert f"server {name_of(worker)} {worker.address}:{NODE_PORT}" in balancing(site)
    summary(f"heal of the whole instance {time.monotonic() - started:.0f} s")


def test_a_terminate_takes_the_folder_of_its_instance_and_no_other(site: Site, other: Site, ansible: AnsibleServer) -> None:
    assert site.operate("terminate_start").failure == ""
    assert (list(site.vims), site.tacker.vims) == (["vim1"], {})
    assert ansible.folders() == {folder_of(other)}
    assert other.operate("terminate_start").failure == ""
    assert ansible.folders() == set()


def folder_of(site: Site) -> str:
    return f"k8s-cr-{site.deployed.instance}"


def endpoint_of(site: Site) -> str:
    [balancer] = site.of(BALANCER)
    return f"https://{balancer.public}:{PORT}"


def instantiate_after_a_death(site: Site, ansible: AnsibleServer) -> Outcome:
    """The conductor dies in the middle of the playbook, and the operation is retried."""
    [master] = site.of(MASTERS)
    node = site.nodes[master.id]
    site.operate("instantiate_end", killed_when=lambda _: runs_kubeadm(node), **parameters(site, ansible))
    return site.operate("instantiate_end", **parameters(site, ansible))


def scale_out(site: Site, added: Server, summary: Summary) -> None:
    started = time.monotonic()
    assert site.operate("scale_end").failure == ""
    summary(f"scale out {time.monotonic() - started:.0f} s")
    assert site.ready() == site.names()
    assert f"server {name_of(added)} {added.address}:{NODE_PORT}" in balancing(site)


def leave_a_dead_run(site: Site, ansible: AnsibleServer) -> None:
    """An inventory of other servers, and a playbook that was killed with its machine."""
    where = f"{INVENTORIES}/{folder_of(site)}"
    lines = (
        f"mkdir -p {where}/run {where}/facts",
        f"echo 'all: {{hosts: {{gone: {{}}}}}}' >{where}/hosts.yaml",
        f"cd {where}/run; echo cluster.yml-0123 >name; echo 4000000 >pid; touch log lock",
    )
    assert until(ansible.is_up, LOGIN_WITHIN)
    ansible.run("; ".join(lines))


def runs_kubeadm(node: Node) -> bool:
    try:
        return bool(node.machine.run("pgrep", "-x", "kubeadm"))
    except RuntimeError:
        return False


def expose_a_service(site: Site, name: str, port: int, labels: dict[str, str] | None = None) -> None:
    """A Deployment and its Service of type NodePort."""
    selected = {"app": name}
    container = {"name": "web", "image": "bed.test/web:1", "imagePullPolicy": "IfNotPresent"}
    template = {"metadata": {"labels": selected}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
    ports = [{"port": 80, "nodePort": port}]
    site.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": selected}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"type": "NodePort", "selector": selected, "ports": ports},
        },
    )
    site.kubectl("rollout", "status", f"deployment/{name}", "--timeout=300s")


def is_served(site: Site, port: int) -> bool:
    """By the load balancer."""
    [balancer] = site.of(BALANCER)
    try:
        return requests.get(f"http://{balancer.public}:{port}/", timeout=5).status_code == 200
    except requests.RequestException:
        return False


def balancing(site: Site) -> str:
    [balancer] = site.of(BALANCER)
    return site.nodes[balancer.id].machine.read("/etc/haproxy/haproxy.cfg")


def is_refused_for_its_key(site: Site, ansible: AnsibleServer) -> bool:
    """Not yet where the server does not respond; it is never logged in to."""
    said = run_facts(site, ansible)
    assert said, "Ansible has logged in at a server with another host key"
    return "REMOTE HOST IDENTIFICATION HAS CHANGED" in said


def run_facts(site: Site, ansible: AnsibleServer) -> str:
    """Runs a playbook on all nodes by new connections; what it prints if it fails."""
    where = f"{INVENTORIES}/{folder_of(site)}"
    line = f"pkill -x ssh; cd {ROOT}; ANSIBLE_CONFIG={where}/ansible.cfg {PROGRAM} --inventory {where}/hosts.yaml"
    return ansible.run(f"{line} --private-key {KEY} playbooks/facts.yml >~/log 2>&1 || cat ~/log")
