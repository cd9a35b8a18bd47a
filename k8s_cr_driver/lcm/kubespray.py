# SPDX-License-Identifier: Apache-2.0
"""The management driver of clusters that kubespray makes on the servers of an instance."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

from k8s_cr_driver.cloud.stack import Stack
from k8s_cr_driver.errors import DriverError, InvalidPackage
from k8s_cr_driver.lcm import conf, hook
from k8s_cr_driver.lcm.node_clusters import KEY, Operation
from k8s_cr_driver.node_clusters import inventory
from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory, Node, Role
from k8s_cr_driver.node_clusters.kubeadm.balancing import API_SERVER_PORT
from k8s_cr_driver.node_clusters.kubespray import ansible_server, parameters
from k8s_cr_driver.node_clusters.kubespray.run import Run
from k8s_cr_driver.node_clusters.parameters import Parameters
from k8s_cr_driver.ssh.command import Command
from k8s_cr_driver.ssh.host import Host
from k8s_cr_driver.ssh.hosts import Hosts

FORCEFUL = "FORCEFUL"
REACHED = "reached"
"""Key of what is kept: the Ansible server has answered the instance once."""


def kubespray(call: hook.Call) -> None:
    """The entry point of the management driver `kubespray`. Raises DriverError."""
    hook.act(call, KEY, KubesprayOperation)


class KubesprayOperation(Operation):
    """One operation that Tacker runs on such a cluster."""

    def _read(self, given: Any, kept: Mapping[str, Any]) -> Parameters:
        self.kubespray = parameters.read(given, kept, self.call.instance["id"])
        return self.kubespray.common

    def act(self) -> None:
        with contextlib.ExitStack() as self._open:
            super().act()

    def _ensure(self) -> None:
        """A playbook that a failed scale has left would add a node after its rollback."""
        if self.call.operation == "scale_rollback_start":
            self._ansible(ansible_server.stop(self.kubespray.ansible, self.call.instance["id"]))
        super()._ensure()

    def _remove(self) -> None:
        """A forceful terminate goes on without the Ansible server; the instance's folder there has no secrets.

        So does the rollback of an instantiate that the server has never answered.
        """
        super()._remove()
        if self.call.operation not in ("terminate_start", "instantiate_rollback_end"):
            return
        try:
            for command in ansible_server.remove(self.kubespray.ansible, self.call.instance["id"]):
                self._ansible(command)
        except DriverError as error:
            is_rollback = self.call.operation == "instantiate_rollback_end"
            if self.stored.get(REACHED) if is_rollback else self.call.request.get("terminationType") != FORCEFUL:
                raise
            self._progress(f"the instance's folder stays on the Ansible server: {error}")

    def _run(self, hosts: Hosts) -> Run:
        balancer = self._balancer(self._stack)
        nodes = self._inventory(self._stack, balancer)
        reach = self._reach(*nodes.nodes, balancer, self._shares.server)
        return Run(
            *(hosts, reach, self.call.instance["id"], nodes, self.parameters, self._package(), self._progress),
            kubespray=self.kubespray,
            ansible=self._ansible,
            balancer=balancer,
            balancer_script=self._file(self.kubespray.balancer.script_path) if self.kubespray.balancer else "",
        )

    def _balancer(self, found: Stack) -> Node | None:
        given = self.kubespray.balancer
        if given is None:
            return None
        ssh, nic = (found.only(name).stack for name in (given.ssh_cp_name, given.nic_cp_name))
        port = found.port(ssh, given.ssh_cp_name)
        address = found.address(ssh, given.ssh_cp_name)
        name = inventory.name_of("load-balancer", port.device)
        return Node(port.device, Role.BALANCER, name, address, found.port(nic, given.nic_cp_name).address)

    def _inventory(self, found: Stack, balancer: Node | None) -> Inventory:
        masters, workers = inventory.nodes(
            self.call.instance, self.parameters, found, inventory.leaving(self.call.grant_request)
        )
        if len(masters) % 2 == 0:
            raise InvalidPackage(
                f"VDU {self.parameters.masters.label}: has {len(masters)} masters; etcd needs an odd number: change the number "
                "of instances in the VNFD"
            )
        if balancer:
            endpoint = Endpoint(balancer.address, balancer.ssh, self.parameters.api_port)
        else:
            endpoint = Endpoint(masters[0].address, masters[0].ssh, API_SERVER_PORT)
        return Inventory((*masters, *workers), endpoint)

    def _login(self, node: Node) -> tuple[str, str]:
        given = self.kubespray.balancer
        if node.role is Role.BALANCER and given:
            return given.username, given.password
        return super()._login(node)

    @functools.cached_property
    def _ansible(self) -> Callable[[Command], str]:
        """Runs commands on the Ansible server, over one connection."""
        given = self.kubespray.ansible
        key = None if given.password else self._key_of(given.ssh_key)
        host = Host(
            ansible_server.NAME,
            given.address,
            given.username,
            trusted=given.host_keys or conf.known_host_keys(self.call.options, given.address),
            private_key=key[0] if key else "",
            password=given.password,
        )
        hosts = self._open.enter_context(self._opened_by(key))

        def run(command: Command) -> str:
            said = hosts.run(host, command)
            self.stored[REACHED] = True
            return said

        return run
