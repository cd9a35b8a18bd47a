# SPDX-License-Identifier: Apache-2.0
"""A VNF instance whose servers are machines: what Tacker records, what a cloud lists, and the script as Tacker runs it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import requests

from tests.cloud import openstack
from tests.cloud.openstack import OpenStack
from tests.cloud.stacks import Deployed, Server
from tests.cloud.stacks import Volume as Attached
from tests.credentials import openstack as tacker_api
from tests.credentials.openstack import Cloud as Tacker

from ..testbed import network, nodes
from ..testbed.nodes import PUBLIC, USER, Node, Volume
from ..testbed.openstack.server import Image
from .script import Body, Conductor, KilledWhen, Outcome

MASTERS, WORKERS, STORAGE, BALANCER = "masterNode", "workerNode", "storageServer", "loadBalancer"
PLACES = {MASTERS: 1, WORKERS: 11, STORAGE: 16, BALANCER: 17}
"""Of the first server of a VDU among the addresses of a site."""
PLAIN = (STORAGE, BALANCER)
"""Their servers have no Kubernetes."""
HA, VOLUMES, KUBESPRAY, FAULTS, ITSELF = 100, 120, 140, 160, 180
"""Where the addresses of each site begin, whose tests may run side by side; the first is the virtual IP."""
VIP = str(network.NETWORK[HA])
VIM = "blue"
_MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-the-package", "namespace": "default"}}
_SCRIPT = """\
#!/bin/sh
set -eu
cat >/run/given-to-the-script
command -v kubeadm haproxy keepalived
"""
_OPTIONS = """\
[DEFAULT]
log_file = {log}
[k8s_cr]
allowed_endpoints = 127.0.0.1, {networks}
allowed_ssh_hosts = {networks}
allow_http_endpoints = true
[k8s_cr_ssh_key:bed]
private_key = {folder}/key
hosts = {networks}
keystone = {keystone}
projects = {project}
[k8s_cr_vim_cloud:bed]
clouds_file = {folder}/clouds.yaml
keystone = {keystone}
projects = {project}
"""


@dataclass
class Site:
    """Use `add` and `replace` as Heat would, then `operate` as Tacker would."""

    folder: Path
    cloud: OpenStack
    tacker: Tacker
    driver: str = "ha_masters"
    base: int = HA
    image: Callable[[], Image] = nodes.with_kubernetes
    """Of the nodes."""
    deployed: Deployed = field(init=False)
    nodes: dict[str, Node] = field(default_factory=dict)
    """By the ids of the servers."""
    volumes: dict[str, Volume] = field(default_factory=dict)
    """Of the storage server, by their resources."""
    vims: Body = field(default_factory=dict)
    metadata: Body = field(default_factory=dict)
    error_data: Body = field(default_factory=dict)

    def __post_init__(self) -> None:
        vip = str(network.NETWORK[self.base])
        self.conductor = Conductor(self.folder)
        self.deployed = Deployed([], vip=vip, vip_floating="", instance=str(uuid.uuid4()), pairs=vip)
        self.vims = {"vim1": {"vimId": "v", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", **self.cloud.vim()}}
        self.key = self.folder / "key"
        if not self.key.exists():
            self.key.write_bytes(asyncssh.generate_private_key("ssh-ed25519").export_private_key())
        self.authorized = asyncssh.import_private_key(self.key.read_bytes()).export_public_key().decode().strip()
        keystone = self.cloud.vim()["interfaceInfo"]["endpoint"]
        networks = f"{network.NETWORK}, {PUBLIC}"
        values = {"log": self.conductor.log, "networks": networks, "folder": self.folder, "project": openstack.PROJECT}
        self.conductor.write("tacker.conf", _OPTIONS.format(**values, keystone=keystone))
        self.conductor.write("clouds.yaml", json.dumps({"clouds": {"tacker": self.tacker.entry}}))
        self.conductor.write("Scripts/install.sh", _SCRIPT)
        self.conductor.write("Files/manifest.yaml", json.dumps(_MANIFEST))

    @property
    def parameters(self) -> Body:
        """Of an instantiate."""
        group = {"ssh_cp_name": f"{MASTERS}_CP1", "username": USER}
        return {
            "script_path": "Scripts/install.sh",
            "manifests": ["Files/manifest.yaml"],
            "ssh_key": "bed",
            "vim_name": VIM,
            "vim_cloud": "bed",
            "master_node": {**group, "vdu_id": MASTERS, "cluster_cp_name": "vip_CP", "pod_cidr": "10.244.0.0/16"},
            "worker_node": {**group, "vdu_id": WORKERS, "ssh_cp_name": f"{WORKERS}_CP1"},
        }

    # --- as Heat ----------------------------------------------------------------------------------------------------

    def add(self, vdu: str, number: int = 0, address: str = "", public: str = "") -> Server:
        """A server is created. The storage server gets the volumes that there are. public: as of `Node`."""
        own = address or str(network.NETWORK[self.base + PLACES[vdu] + number])
        return self._boot(Server(vdu, number, str(uuid.uuid4()), own, public=public))

    def replace(self, old: Server, address: str = "") -> Server:
        """Another server takes the place and the ports of an old one, and its address, unless another is given."""
        self.remove(old)
        return self._boot(Server(old.vdu, old.number, str(uuid.uuid4()), address or old.address, public=old.public))

    def replace_all(self) -> list[Server]:
        """As for a heal of the whole instance; the former ones."""
        former = list(self.deployed.servers)
        for server in former:
            self.replace(server)
        return former

    def remove(self, server: Server) -> None:
        self.deployed.servers.remove(server)
        self.nodes.pop(server.id).remove()

    def volume(self, resource: str) -> Volume:
        """A volume is created, and takes the place of the one that the resource had."""
        new = Volume(str(uuid.uuid4()))
        old, self.volumes[resource] = self.volumes.get(resource), new
        if old:
            old.remove()
        return new

    def close(self) -> None:
        for server in list(self.deployed.servers):
            self.remove(server)
        for volume in self.volumes.values():
            volume.remove()

    def _boot(self, server: Server) -> Server:
        node = self.nodes[server.id] = Node(f"{server.vdu[0]}{server.number}-{server.id[:8]}", server.address, server.public)
        self.deployed.servers.append(server)
        self.deployed.servers.sort(key=lambda one: (one.vdu, one.number))
        volumes = tuple(self.volumes.values()) if server.vdu == STORAGE else ()
        if server.vdu == STORAGE:
            self.deployed.volumes = [
                Attached(volume.id, resource, server.stack, (server.id,)) for resource, volume in self.volumes.items()
            ]
        node.boot(self.authorized, volumes=volumes, image=None if server.vdu in PLAIN else self.image())
        return server

    def of(self, vdu: str) -> list[Server]:
        return [one for one in self.deployed.servers if one.vdu == vdu]

    # --- as Tacker --------------------------------------------------------------------------------------------------

    def operate(
        self,
        operation: str,
        *removes: Server,
        is_whole: bool = False,
        killed_when: KilledWhen | None = None,
        within: int = 0,
        **parameters: Any,
    ) -> Outcome:
        """
        The script runs as for this operation, and Tacker stores what it returns, unless it was killed.

        removes: the servers that the operation removes. is_whole: a heal of the whole instance, which names none. within: the
        time limit of the request, in seconds. parameters: of it.
        """
        given = self._given(operation, removes, within, parameters, is_whole)
        returned, outcome = self.conductor.run(self.driver, given, killed_when)
        if returned:
            self._store(returned, outcome.failure)
        return outcome

    def _given(
        self, operation: str, removes: Iterable[Server], within: int, parameters: Mapping[str, Any], is_whole: bool
    ) -> Body:
        self.deployed.consoles = {server: node.console for server, node in self.nodes.items()}
        self.deployed.fill(self.cloud)
        removed = [{"type": "COMPUTE", "resourceTemplateId": one.vdu, "resource": {"resourceId": one.id}} for one in removes]
        additional = {"k8s_cluster_installation_param": parameters, **({"wait-timeout": within} if within else {})}
        request: Body = {"additionalParams": additional}
        if operation.startswith("heal") and not is_whole:
            request["vnfcInstanceId"] = [f"{one.vdu}-{one.id}" for one in removes]
        return {
            "operation": operation,
            "request": request,
            "vnf_instance": {**self.deployed.record(), "vimConnectionInfo": self.vims, "metadata": self.metadata},
            "grant_request": {"removeResources": removed},
            "grant_response": {},
            "user_script_err_handling_data": self.error_data,
            "tmp_csar_dir": str(self.folder),
        }

    def _store(self, returned: Body, failure: str) -> None:
        """Of a failed operation the data for its retry only."""
        self.error_data = returned["user_script_err_handling_data"] if failure else {}
        if not failure:
            instance = returned["vnf_instance"]
            self.vims, self.metadata = instance["vimConnectionInfo"], instance["metadata"]

    # --- as a user of the cluster -----------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, by: Server | None = None) -> str:
        """Of the API server beside a master; the first by default."""
        server = by or self.of(MASTERS)[0]
        options = ("--kubeconfig=/etc/kubernetes/admin.conf", f"--server=https://{server.address}:6443")
        return self.nodes[server.id].machine.run("kubectl", *options, *arguments)

    def apply(self, *objects: Body) -> None:
        """The cluster has these objects."""
        name = f"/var/tmp/{uuid.uuid4()}.json"
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.nodes[self.of(MASTERS)[0].id].machine.write(name, json.dumps(listed))
        self.kubectl("apply", f"--filename={name}")

    def ready(self) -> set[str]:
        """The names of the nodes that are Ready."""
        listed = json.loads(self.kubectl("get", "nodes", "--output=json"))["items"]
        return {
            node["metadata"]["name"]
            for node in listed
            if {"Ready"} <= {one["type"] for one in node["status"]["conditions"] if one["status"] == "True"}
        }

    def names(self) -> set[str]:
        """Those that the servers have as nodes."""
        return {name_of(one) for one in self.deployed.servers if one.vdu not in PLAIN}

    def asked_by_vim(self, path: str) -> int:
        """The status of a request to the API with what the instance has of the new VIM."""
        entry = self.vims[VIM]
        file = self.folder / "ca.pem"
        file.write_text(entry["interfaceInfo"]["ssl_ca_cert"])
        headers = {"Authorization": f"Bearer {entry['accessInfo']['bearer_token']}"}
        url = entry["interfaceInfo"]["endpoint"] + path
        return requests.get(url, headers=headers, verify=str(file), timeout=10).status_code

    def holders(self) -> list[Server]:
        """The masters and load balancers that have the virtual IP."""
        able = [*self.of(MASTERS), *self.of(BALANCER)]
        shown = {one.id: self.nodes[one.id].machine.run("ip", "-o", "-4", "address", "show") for one in able}
        return [one for one in able if f" {self.deployed.vip}/" in shown[one.id]]


@contextmanager
def opened(kind: Callable[[Path, OpenStack, Tacker], Site], folder: Path) -> Iterator[Site]:
    """A site whose machines go at the end. Servers have the key of the folder, or a new one."""
    with openstack.serving() as cloud, tacker_api.openstack() as tacker:
        one = kind(folder, cloud, tacker)
        try:
            yield one
        finally:
            one.close()


def name_of(server: Server) -> str:
    return f"{server.vdu.lower()}-{server.id[:8]}"
