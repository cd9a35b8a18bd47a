# SPDX-License-Identifier: Apache-2.0
"""Three masters and a worker that Tacker has Heat make: a master dies and is healed, a worker comes and goes, nothing stays."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import openstack
import pytest

from ..client import Body, Client
from ..conftest import Summary
from ..openstack.clusters import belongings
from ..openstack.servers import attempt, machine
from ..testbed.processes import until
from ..vnf import Vnf
from .conftest import Place

USER, VIM = "nodeadmin", "blue"
MASTERS, WORKERS, ASPECT = "masterNode", "workerNode", "worker_instance"
# Seconds, however busy the host is.
PATIENCE, NOTICED_WITHIN = 900, 120.0
USER_DATA = {
    "lcm-operation-user-data": "./UserData/user_data.py",
    "lcm-operation-user-data-class": "StandardUserData",
}


@pytest.fixture(scope="module")
def vnf(tacker: Client, cloud: Body, vnfd: str, place: Place) -> Iterator[Vnf]:
    one = Vnf.create(tacker, cloud, vnfd)
    one.patience = PATIENCE
    yield one
    one.remove()


def request(place: Place) -> dict[str, Any]:
    """What an instantiate says beside the VIM."""
    addresses = {"ipAddresses": [{"type": "IPV4", "numDynamicAddresses": 1}]}
    protocol = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": addresses}
    ports = {"masters": f"{MASTERS}_CP1", "workers": f"{WORKERS}_CP1"}
    links = [
        {
            "id": name,
            "resourceId": place.network,
            "extCps": [{"cpdId": port, "cpConfig": {"1": {"cpProtocolData": [protocol]}}}],
        }
        for name, port in ports.items()
    ]
    masters, workers = (
        {"vdu_id": vdu, "ssh_cp_name": f"{vdu}_CP1_floating_ip", "nic_cp_name": f"{vdu}_CP1", "username": USER}
        for vdu in (MASTERS, WORKERS)
    )
    virtual_ip = {"cluster_cp_name": "vip_CP", "cluster_fip_name": "vip_CP_floating_ip", "pod_cidr": "10.244.0.0/16"}
    parameter = {
        "script_path": "Scripts/install.sh",
        "ssh_key": "bed",
        "vim_name": VIM,
        "master_node": {**masters, **virtual_ip},
        "worker_node": workers,
    }
    nfv = {"user": USER, "authorized_key": place.authorized, "vip_network": place.network, "external_network": place.outside}
    return {
        "extVirtualLinks": links,
        "additionalParams": {**USER_DATA, "nfv": nfv, "k8s_cluster_installation_param": parameter},
    }


def test_a_cluster_of_heat_is_made_healed_scaled_and_leaves_nothing(
    vnf: Vnf, tacker: Client, cloud: Body, place: Place, tenant: openstack.connection.Connection, summary: Summary
) -> None:
    before = belongings(tenant)
    given, started = request(place), time.monotonic()
    vnf.wait(tacker.instantiate(vnf.id, cloud, given.pop("additionalParams"), **given))
    took = {"instantiate": time.monotonic() - started}
    assert len(nodes(vnf)) == 4
    assert VIM in vnf.shown()["vimConnectionInfo"]

    dead = vnf.vnfcs(MASTERS)[1]
    machine(server_of(dead)).cut_off()
    started = time.monotonic()
    vnf.wait(vnf.begin_heal(dead["id"], **as_names(USER_DATA)))
    took["heal"] = time.monotonic() - started
    assert len(nodes(vnf)) == 4
    assert server_of(dead) not in servers(vnf)

    started = time.monotonic()
    vnf.wait(vnf.begin_scale("SCALE_OUT", ASPECT, **as_names(USER_DATA)))
    took["scale out"] = time.monotonic() - started
    assert len(nodes(vnf)) == 5
    vnf.wait(vnf.begin_scale("SCALE_IN", ASPECT, **as_names(USER_DATA)))
    assert len(nodes(vnf)) == 4

    vnf.terminate()
    assert VIM not in vnf.shown().get("vimConnectionInfo", {})
    assert until(lambda: belongings(tenant) == before, NOTICED_WITHIN), belongings(tenant)
    summary(", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()))


def as_names(values: dict[str, str]) -> dict[str, str]:
    """As arguments of `Vnf`, which takes underscores for hyphens."""
    return {name.replace("-", "_"): value for name, value in values.items()}


def server_of(vnfc: Body) -> str:
    return str(vnfc["computeResource"]["resourceId"])


def servers(vnf: Vnf) -> list[str]:
    """Those of the masters first."""
    return [server_of(one) for vdu in (MASTERS, WORKERS) for one in vnf.vnfcs(vdu)]


def nodes(vnf: Vnf) -> list[str]:
    """The names of the nodes that are Ready, as one of the masters lists them; all of them are those of servers."""
    for server in servers(vnf):
        output = attempt(server, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "nodes", "--output=json")
        if output:
            items = json.loads(output)["items"]
            assert {one["metadata"]["name"].rpartition("-")[2] for one in items} == {one[:8] for one in servers(vnf)}
            return [one["metadata"]["name"] for one in items if is_ready(one)]
    return []


def is_ready(node: Body) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])
