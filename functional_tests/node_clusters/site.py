# SPDX-License-Identifier: Apache-2.0
"""A VNF instance whose servers are machines: what Tacker records, what a cloud lists, and the script as Tacker runs it."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from k8s_cr_driver.package import scripts
from tests.cloud import openstack
from tests.cloud.openstack import OpenStack
from tests.cloud.stacks import Deployed, Server
from tests.credentials.openstack import Cloud as Tacker

from ..testbed import network
from ..testbed.nodes import USER, Node
from ..testbed.processes import until

Body = dict[str, Any]
MASTERS, WORKERS = "masterNode", "workerNode"
VIP = str(network.NETWORK[100])
DRIVER = "ha_masters"
VIM = "blue"
# Seconds for one operation, however busy the host is.
PATIENCE = 600.0
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
allowed_endpoints = 127.0.0.1, {network}
allow_http_endpoints = true
[k8s_cr_ssh_key:bed]
private_key = {folder}/key
hosts = {network}
keystone = {keystone}
projects = {project}
[k8s_cr_vim_cloud:bed]
clouds_file = {folder}/clouds.yaml
keystone = {keystone}
projects = {project}
"""


@dataclass
class Outcome:
    """What an operation has come to."""

    failure: str
    """"" if it has succeeded."""
    log: list[str]
    """What the script has logged, without the time."""

    @property
    def changes(self) -> int:
        return self._counted(r"(\d+) changes")

    @property
    def connections(self) -> int:
        return self._counted(r"(\d+) connections")

    def _counted(self, pattern: str) -> int:
        found = re.findall(pattern, "\n".join(self.log))
        assert found, self
        return int(found[-1])


@dataclass
class Site:
    """Use `add` and `replace` as Heat would, then `operate` as Tacker would."""

    folder: Path
    cloud: OpenStack
    tacker: Tacker
    driver: str = DRIVER
    deployed: Deployed = field(init=False)
    nodes: dict[str, Node] = field(default_factory=dict)
    """By the ids of the servers."""
    vims: Body = field(default_factory=dict)
    metadata: Body = field(default_factory=dict)
    error_data: Body = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.deployed = Deployed([], vip=VIP, vip_floating="", instance=str(uuid.uuid4()), pairs=VIP)
        self.vims = {"vim1": {"vimId": "v", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", **self.cloud.vim()}}
        key = asyncssh.generate_private_key("ssh-ed25519")
        self._authorized = key.export_public_key().decode().strip()
        (self.folder / "key").write_bytes(key.export_private_key())
        keystone = self.cloud.vim()["interfaceInfo"]["endpoint"]
        values = {"log": self._log, "network": network.NETWORK, "folder": self.folder, "project": openstack.PROJECT}
        self._write("tacker.conf", _OPTIONS.format(**values, keystone=keystone))
        self._write("clouds.yaml", json.dumps({"clouds": {"tacker": self.tacker.entry}}))
        self._write("Scripts/install.sh", _SCRIPT)
        self._write("Files/manifest.yaml", json.dumps(_MANIFEST))
        self._write(f"Scripts/{self.driver}.py", scripts.text(self.driver))

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

    def add(self, vdu: str, number: int) -> Server:
        """A server is created."""
        last = (101 if vdu == MASTERS else 111) + number
        return self._boot(Server(vdu, number, str(uuid.uuid4()), str(network.NETWORK[last])))

    def replace(self, old: Server) -> Server:
        """Another server takes the place, the port and the address of an old one."""
        self.remove(old)
        return self._boot(Server(old.vdu, old.number, str(uuid.uuid4()), old.address))

    def remove(self, server: Server) -> None:
        self.deployed.servers.remove(server)
        self.nodes.pop(server.id).remove()

    def close(self) -> None:
        for server in list(self.deployed.servers):
            self.remove(server)

    def _boot(self, server: Server) -> Server:
        node = self.nodes[server.id] = Node(f"{server.vdu[0]}{server.number}-{server.id[:8]}", server.address)
        self.deployed.servers.append(server)
        self.deployed.servers.sort(key=lambda one: (one.vdu, one.number))
        node.boot(self._authorized)
        return server

    def of(self, vdu: str) -> list[Server]:
        return [one for one in self.deployed.servers if one.vdu == vdu]

    # --- as Tacker --------------------------------------------------------------------------------------------------

    def operate(
        self, operation: str, *removes: Server, killed_when: Callable[[str], bool] | None = None, **parameters: Any
    ) -> Outcome:
        """
        The script runs as for this operation, and Tacker stores what it returns.

        removes: the servers that the operation removes. killed_when: asked with what it has logged; if it is true, the process
        is killed, and nothing is stored, as when the conductor dies. parameters: of the request.
        """
        position = len(self._lines())
        process = subprocess.Popen(
            [sys.executable, self.folder / f"Scripts/{self.driver}.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "K8S_CR_CONDUCTOR_CONFIG": json.dumps([f"--config-file={self.folder / 'tacker.conf'}"])},
        )
        given = pickle.dumps(self._given(operation, removes, parameters))
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
        process.stdin = None
        if killed_when:
            assert until(lambda: killed_when("\n".join(self._lines()[position:])), PATIENCE), self._lines()[position:]
            process.kill()
            process.communicate()
            return Outcome("killed", self._lines()[position:])
        output, errors = process.communicate(timeout=PATIENCE)
        outcome = Outcome(errors.decode(), self._lines()[position:])
        assert bool(outcome.failure) == bool(process.returncode)
        self._store(pickle.loads(output), outcome.failure)
        return outcome

    def _given(self, operation: str, removes: Iterable[Server], parameters: Mapping[str, Any]) -> Body:
        self.deployed.consoles = {server: node.console for server, node in self.nodes.items()}
        self.deployed.fill(self.cloud)
        removed = [{"type": "COMPUTE", "resource": {"resourceId": one.id}} for one in removes]
        request: Body = {"additionalParams": {"k8s_cluster_installation_param": parameters}}
        if operation.startswith("heal"):
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
        return {name_of(one) for one in self.deployed.servers}

    def holders(self) -> list[Server]:
        """The masters that have the virtual IP."""
        shown = {one.id: self.nodes[one.id].machine.run("ip", "-o", "-4", "address", "show") for one in self.of(MASTERS)}
        return [one for one in self.of(MASTERS) if f" {VIP}/" in shown[one.id]]

    @property
    def _log(self) -> Path:
        return self.folder / "conductor.log"

    def _lines(self) -> list[str]:
        """Whole lines, without the time."""
        text = self._log.read_text() if self._log.exists() else ""
        return [line.partition(" INFO ")[2] or line for line in text.splitlines()]

    def _write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def name_of(server: Server) -> str:
    return f"{server.vdu.lower()}-{server.id[:8]}"
