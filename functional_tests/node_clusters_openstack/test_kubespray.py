# SPDX-License-Identifier: Apache-2.0
"""Clusters of kubespray behind load balancers, made by Tacker and Heat; the tests share the first one, in this order.

The Ansible server is a machine outside of the cloud. The playbooks are a stand-in, which calls kubeadm.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import openstack
import pytest
import requests

from ..client import Body, Client
from ..conftest import Summary
from ..heat_servers import USER
from ..node_clusters import leaks
from ..node_clusters.ansible_server import AnsibleServer
from ..openstack.clusters import belongings
from ..openstack.servers import machine
from ..testbed import network
from ..testbed.ledger import Ledger
from ..testbed.openstack import kubernetes_node
from ..testbed.processes import until
from ..testbed.release import NEWEST
from ..testbed.tacker import Conductor
from ..vnf import Vnf
from . import clusters
from .clusters import CANARY, MASTERS, PATIENCE, WORKERS, Place

pytestmark = pytest.mark.alone("tacker")
SAMPLE, PROJECT = "kubespray", "kubespray"
SECOND = "kubespray-2"
"""The VIM of another cluster."""
BALANCER = "externalLB"
PORT, NODE_PORT = 8383, 30080
ADDRESS = str(network.NETWORK[200])
"""Of the Ansible server."""
SERVED_WITHIN, UP_WITHIN = 240.0, 240.0
"""Seconds, however busy the host is."""


def adapt(folder: Path) -> None:
    """The images of the nodes have kubeadm; the load balancer's stays Debian."""
    vnfd = folder / "Definitions" / "kubespray.yaml"
    text = vnfd.read_text()
    assert text.count("name: debian") == 3
    vnfd.write_text(text.replace("name: debian", f"name: {kubernetes_node.name(NEWEST)}", 2))


@pytest.fixture(scope="module")
def before(tenant: openstack.connection.Connection, place: Place) -> dict[str, list[str]]:
    """What the project has when there is no instance."""
    return belongings(tenant)


@pytest.fixture(scope="module", autouse=True)
def ansible(place: Place) -> Iterator[AnsibleServer]:
    server = AnsibleServer(f"ansible-{uuid.uuid4().hex[:8]}", ADDRESS)
    server.boot(place.authorized, place.key)
    assert until(server.is_up, UP_WITHIN)
    yield server
    server.node.remove()


def given(place: Place, ansible: AnsibleServer, version: str = NEWEST.version, vim: str = PROJECT) -> Body:
    balancer = {
        "ssh_cp_name": f"{BALANCER}_CP1_floating_ip",
        "nic_cp_name": f"{BALANCER}_CP1",
        "ssh_username": USER,
        "script_path": "Scripts/load_balancer.sh",
        "node_ports": [NODE_PORT],
    }
    server = {**ansible.parameters, "ssh_key": place.name, "settings": {"registry_password": CANARY}}
    sections = {"vim_name": vim, "kubernetes_version": version, "ansible": server, "external_lb_param": balancer}
    return clusters.request(place, (MASTERS, WORKERS, BALANCER), sections, {"authorized_keys": [place.authorized]})


def test_the_rollback_of_an_instantiate_leaves_nothing(
    make: Callable[[], Vnf],
    tacker: Client,
    cloud: Body,
    place: Place,
    ansible: AnsibleServer,
    tenant: openstack.connection.Connection,
    before: dict[str, list[str]],
) -> None:
    """Its playbook fails, because kubeadm knows no such version."""
    vnf = make()
    operation = clusters.begin_instantiate(tacker, vnf, cloud, given(place, ansible, "1.2.3"))
    detail = vnf.failure(operation)["detail"]
    assert "cluster.yml of kubespray has failed" in detail and CANARY not in detail
    assert ansible.folders() == {f"k8s-cr-{vnf.id}"}
    vnf.roll_back(operation)
    assert ansible.folders() == set()
    clusters.leaves_nothing(vnf, tacker, place, tenant, before)


def test_two_clusters_are_made_at_once_and_one_goes_alone(
    vnf: Vnf, make: Callable[[], Vnf], tacker: Client, cloud: Body, place: Place, ansible: AnsibleServer, summary: Summary
) -> None:
    """By one Ansible server, each with a folder and a VIM of its own."""
    other, of_other = make(), dataclasses.replace(place, name=SECOND)
    operations = [
        clusters.begin_instantiate(tacker, one, cloud, given(place, ansible, vim=vim))
        for one, vim in ((vnf, PROJECT), (other, SECOND))
    ]
    seconds = [clusters.timed(one, operation) for one, operation in zip((vnf, other), operations, strict=True)]
    assert [len(clusters.nodes(one)) for one in (vnf, other)] == [2, 2]
    assert ansible.folders() == {f"k8s-cr-{vnf.id}", f"k8s-cr-{other.id}"}
    assert clusters.is_vim(vnf, tacker, place) and clusters.is_vim(other, tacker, of_other)
    assert address(vnf, place) != address(other, of_other)
    other.terminate()
    assert ansible.folders() == {f"k8s-cr-{vnf.id}"}
    assert clusters.is_vim(vnf, tacker, place) and not clusters.is_vim(other, tacker, of_other)
    summary(f"instantiate of two {sum(seconds):.0f} s")


def test_the_cluster_is_behind_its_load_balancer(vnf: Vnf, place: Place, tmp_path: Path) -> None:
    """Whose floating IP is where the API and a NodePort are."""
    interface = vnf.shown()["vimConnectionInfo"][place.name]["interfaceInfo"]
    assert interface["endpoint"] == f"https://{address(vnf, place)}:{PORT}"
    ca = tmp_path / "ca.pem"
    ca.write_text(interface["ssl_ca_cert"])
    assert requests.get(f"{interface['endpoint']}/readyz", verify=str(ca), timeout=10).text == "ok"
    expose(vnf)
    assert until(partial(is_served, address(vnf, place)), SERVED_WITHIN)


def test_a_scale_out_outlives_its_conductor(
    vnf: Vnf, tacker: Client, ansible: AnsibleServer, conductors: dict[str, Conductor], summary: Summary
) -> None:
    operation = clusters.begin_scale(vnf, "SCALE_OUT")
    clusters.die(vnf, operation, conductors, lambda: "scale.yml" in ansible.runs())
    tacker.retry(operation)
    seconds = clusters.timed(vnf, operation)
    assert len(clusters.nodes(vnf)) == 3
    assert ansible.runs().count("scale.yml") in (1, 2), "two, if the first has ended before the retry gets there"
    summary(f"retry of the scale out {seconds:.0f} s")


def test_a_worker_leaves(vnf: Vnf, ansible: AnsibleServer, summary: Summary) -> None:
    seconds = clusters.timed(vnf, clusters.begin_scale(vnf, "SCALE_IN"))
    assert ansible.runs()[-1] == "remove-node.yml"
    assert len(clusters.nodes(vnf)) == 2
    summary(f"scale in {seconds:.0f} s")


def test_a_dead_worker_is_replaced_and_a_master_is_not(vnf: Vnf, place: Place, summary: Summary) -> None:
    [master] = vnf.vnfcs(MASTERS)
    refused = clusters.refusal(vnf, clusters.begin_heal(vnf, master))
    assert "a master cannot be replaced, because kubespray has no playbook for it; heal the whole VNF instance" in refused
    [dead] = vnf.vnfcs(WORKERS)
    machine(clusters.server_of(dead)).cut_off()
    seconds = clusters.timed(vnf, clusters.begin_heal(vnf, dead))
    assert len(clusters.nodes(vnf)) == 2
    assert clusters.servers(vnf, WORKERS) != [clusters.server_of(dead)]
    assert until(partial(is_served, address(vnf, place)), SERVED_WITHIN)
    summary(f"heal of a dead worker {seconds:.0f} s")


def test_no_secret_is_shown(
    vnf: Vnf, tacker: Client, cloud: Body, place: Place, ledger: Ledger, arguments: leaks.Arguments
) -> None:
    clusters.discloses_nothing(vnf, tacker, cloud, place, ledger, arguments, MASTERS, WORKERS, BALANCER)


def test_a_terminate_leaves_nothing(
    vnf: Vnf,
    tacker: Client,
    place: Place,
    ansible: AnsibleServer,
    tenant: openstack.connection.Connection,
    before: dict[str, list[str]],
) -> None:
    vnf.terminate()
    assert ansible.folders() == set()
    clusters.leaves_nothing(vnf, tacker, place, tenant, before)


def expose(vnf: Vnf) -> None:
    """A Deployment and its Service of type NodePort."""
    labels = {"app": "web"}
    container = {"name": "web", "image": "bed.test/web:1", "imagePullPolicy": "IfNotPresent"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    ports = [{"port": 80, "nodePort": NODE_PORT}]
    service = {"type": "NodePort", "selector": labels, "ports": ports}
    clusters.apply(
        vnf,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service},
    )
    clusters.kubectl(vnf, "rollout", "status", "deployment/web", f"--timeout={PATIENCE}s")


def address(vnf: Vnf, place: Place) -> str:
    """Of the load balancer, for others than the project."""
    endpoint = vnf.shown()["vimConnectionInfo"][place.name]["interfaceInfo"]["endpoint"]
    return str(endpoint.removeprefix("https://").partition(":")[0])


def is_served(address: str) -> bool:
    """The NodePort, by the load balancer."""
    try:
        return requests.get(f"http://{address}:{NODE_PORT}/", timeout=5).status_code == 200
    except requests.RequestException:
        return False
