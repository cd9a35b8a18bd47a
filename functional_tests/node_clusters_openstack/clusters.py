# SPDX-License-Identifier: Apache-2.0
"""A cluster on servers as Tacker and Heat have it: its requests, its nodes, its servers, and what nobody may see of it."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openstack

from .. import disclosed
from ..client import Body, Client
from ..heat_servers import USER, USER_DATA, group, links
from ..node_clusters import leaks
from ..openstack.clusters import belongings
from ..openstack.servers import attempt, machine
from ..testbed import config
from ..testbed.ledger import Ledger
from ..testbed.processes import until
from ..testbed.tacker import Conductor, worker
from ..vnf import Vnf

MASTERS, WORKERS, ASPECT = "masterNode", "workerNode", "worker_instance"
PATIENCE, NOTICED_WITHIN = 900, 120.0
"""Seconds, however busy the host is."""
CANARY = "word-of-a-request-71c8"
"""A password in requests, of a user whom a key opens, and of a proxy that nobody asks."""
KUBECONFIG = "--kubeconfig=/etc/kubernetes/admin.conf"
_NETWORK = config.render("pods.conflist", pods="10.244.NODE.0/24").strip()
# The image has all that a node needs but for a network of its Pods.
INSTALL = f"""\
#!/bin/sh
set -eu
address=$(jq --raw-output .address)
mkdir -p /etc/cni/net.d
sed "s/NODE/${{address##*.}}/" >/etc/cni/net.d/10-pods.conflist <<'END'
{_NETWORK}
END
command -v kubeadm
"""


@dataclass(frozen=True)
class Place:
    """Where servers are put, and who may log in there."""

    name: str
    """Of the operator's key, of the cloud for new VIMs, and of the VIM."""
    network: str
    outside: str
    key: Path
    authorized: str


# --- requests -------------------------------------------------------------------------------------------------------


def request(place: Place, vdus: Iterable[str], sections: Mapping[str, Any], nfv: Mapping[str, Any]) -> Body:
    """What an instantiate says beside the VIM. sections: of the parameter, over what all clusters have."""
    parameter = {
        "ssh_key": place.name,
        "vim_name": place.name,
        "vim_cloud": place.name,
        "proxy": {"http_proxy": f"http://someone:{CANARY}@proxy.example:3128"},
        "master_node": {**group(MASTERS), "pod_cidr": "10.244.0.0/16"},
        "worker_node": group(WORKERS),
    }
    for name, given in sections.items():
        parameter[name] = {**parameter[name], **given} if isinstance(parameter.get(name), dict) else given
    common = {"user": USER, "external_network": place.outside}
    additional = {**USER_DATA, "nfv": {**common, **nfv}, "k8s_cluster_installation_param": parameter}
    return {"extVirtualLinks": links(place.network, vdus), "additionalParams": additional}


def begin_instantiate(tacker: Client, vnf: Vnf, cloud: Body, given: Body) -> str:
    more = {key: value for key, value in given.items() if key != "additionalParams"}
    return tacker.instantiate(vnf.id, cloud, given["additionalParams"], **more)


def begin_heal(vnf: Vnf, vnfc: Body) -> str:
    return vnf.begin_heal(vnfc["id"], **_names(USER_DATA))


def begin_scale(vnf: Vnf, direction: str) -> str:
    return vnf.begin_scale(direction, ASPECT, **_names(USER_DATA))


def timed(vnf: Vnf, operation: str) -> float:
    """Seconds until the operation, which has just begun, is COMPLETED."""
    started = time.monotonic()
    vnf.wait(operation)
    return time.monotonic() - started


def refusal(vnf: Vnf, operation: str) -> str:
    """The error of an operation that is to fail, which is given up then."""
    detail = str(vnf.failure(operation)["detail"])
    vnf.give_up(operation)
    return detail


def _names(values: Mapping[str, str]) -> dict[str, str]:
    """As arguments of `Vnf`, which takes underscores for hyphens."""
    return {name.replace("-", "_"): value for name, value in values.items()}


def die(vnf: Vnf, operation: str, conductors: Mapping[str, Conductor], when: Callable[[], object]) -> None:
    """The conductor that works on the operation is killed with its script; the operation is FAILED_TEMP afterwards."""
    assert until(when, PATIENCE, pause=0.2)
    busy = worker(conductors, vnf.id)
    busy.kill()
    busy.start()
    vnf.wait(operation, "FAILED_TEMP")


# --- servers --------------------------------------------------------------------------------------------------------


def server_of(vnfc: Body) -> str:
    return str(vnfc["computeResource"]["resourceId"])


def servers(vnf: Vnf, *vdus: str) -> list[str]:
    """By VDU; by default those that are nodes, masters first."""
    return [server_of(one) for vdu in vdus or (MASTERS, WORKERS) for one in vnf.vnfcs(vdu)]


def runs(tenant: openstack.connection.Connection, unit: str) -> bool:
    """Whether a server of the project is at this step."""
    known = [one.id for one in tenant.compute.servers() if machine(one.id).is_on()]
    argv = ("systemctl", "show", "--property=ActiveState", "--value", f"{unit}.service")
    return any(attempt(one, *argv).strip() in ("active", "activating") for one in known)


def nodes(vnf: Vnf) -> list[str]:
    """The names of the nodes that are Ready, as one of the masters lists them; all of them are those of servers."""
    for server in servers(vnf):
        output = attempt(server, "kubectl", KUBECONFIG, "get", "nodes", "--output=json")
        if output:
            items = json.loads(output)["items"]
            assert {one["metadata"]["name"].rpartition("-")[2] for one in items} == {one[:8] for one in servers(vnf)}
            return [one["metadata"]["name"] for one in items if is_ready(one)]
    return []


def is_ready(node: Body) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])


def kubectl(vnf: Vnf, *argv: str) -> str:
    """On the first master."""
    return machine(servers(vnf)[0]).run("kubectl", KUBECONFIG, *argv)


def apply(vnf: Vnf, *objects: Body) -> None:
    """The cluster has these objects."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    encoded = base64.b64encode(listed.encode()).decode()
    machine(servers(vnf)[0]).run("sh", "-euc", f"echo {encoded} | base64 --decode | kubectl {KUBECONFIG} apply --filename=-")


# --- what is left, and what is shown --------------------------------------------------------------------------------


def is_vim(vnf: Vnf, tacker: Client, place: Place) -> bool:
    """Of the instance, and registered."""
    registered = place.name in [one["name"] for one in tacker.vims()]
    assert registered == (place.name in vnf.shown().get("vimConnectionInfo", {}))
    return registered


def leaves_nothing(
    vnf: Vnf, tacker: Client, place: Place, tenant: openstack.connection.Connection, before: Mapping[str, list[str]]
) -> None:
    """Neither in the project nor among Tacker's VIMs; before: `belongings` of then."""
    assert not is_vim(vnf, tacker, place)
    assert until(lambda: belongings(tenant) == before, NOTICED_WITHIN), belongings(tenant)


def discloses_nothing(
    vnf: Vnf, tacker: Client, cloud: Body, place: Place, ledger: Ledger, arguments: leaks.Arguments, *vdus: str
) -> None:
    """
    No password, token or key of the cluster is in a row of Tacker's, a response of its API, a log, a file that it has left, the
    arguments of a process, or a file that each user of a server can read. Tacker keeps requests, and the VIMs of an instance.
    """
    secrets = {
        "a password of the request": CANARY,
        "the password of the VIM": cloud["accessInfo"]["password"],
        "the operator's key": place.key.read_text().splitlines()[2],
        **_of_cluster(vnf),
    }
    kept = [ledger.home / "tacker" / name for name in os.listdir(ledger.home / "tacker") if name.startswith("conductor-")]
    rows = list(disclosed.in_rows(ledger))
    places = [*disclosed.by_api(tacker, [vnf], requests=False), *(one for one in rows if one[0] != disclosed.VIMS)]
    for folder in (ledger.home / "logs", *kept):
        places += disclosed.in_files(folder, ("vnf-packages",))
    assert len(places) > 100
    found = disclosed.found(places, secrets)
    of_vims = ("the password of the VIM", "the token of tacker-vim")
    others = {name: secret for name, secret in secrets.items() if name not in of_vims}
    found += disclosed.found((one for one in rows if one[0] == disclosed.VIMS), others)
    assert arguments.count > 100, "processes were seen"
    found += disclosed.found((("the arguments of a process", one) for one in sorted(arguments.seen)), secrets)
    for server in servers(vnf, *vdus):
        found += [f"{server}: {path}" for path in leaks.readable_by_others(machine(server).run, list(secrets.values()))]
    assert not found, "\n".join(found)


def _of_cluster(vnf: Vnf) -> dict[str, str]:
    """Of its authorities and its administrator's key a line each, and the token of the VIM's account."""
    [master, *_] = servers(vnf)
    keys = {
        f"the key of {name}": machine(master).run("cat", f"/etc/kubernetes/pki/{name}.key").splitlines()[3]
        for name in ("ca", "sa", "etcd/ca")
    }
    admin = machine(master).run("sed", "-n", "s/.*client-key-data: //p", "/etc/kubernetes/admin.conf").strip()
    tokens = json.loads(kubectl(vnf, "get", "secrets", "--all-namespaces", "--output=json"))["items"]
    of_accounts = {
        f"the token of {one['metadata']['name']}": base64.b64decode(one["data"]["token"]).decode()
        for one in tokens
        if one["type"] == "kubernetes.io/service-account-token"
    }
    assert admin and of_accounts
    return {**keys, **of_accounts, "the administrator's key": admin[100:200]}
