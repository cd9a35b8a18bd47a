# SPDX-License-Identifier: Apache-2.0
"""A CNF on a cluster of servers, whose package exposes its NodePorts on the cluster's load balancer."""

from __future__ import annotations

import uuid
from pathlib import Path

from ..testbed.nodes import PASSWORD, USER
from .script import Body, Conductor
from .site import BALANCER, VIM, Site


class Cnf:
    """Its package has the management driver `node_ports`, and its requests the password of the load balancer."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.id, self._site = str(uuid.uuid4()), site
        self._conductor = Conductor(folder)
        self._conductor.write("tacker.conf", (site.folder / "tacker.conf").read_text())
        self._instance: Body = {"id": self.id, "vimConnectionInfo": {"vim1": site.vims[VIM]}, "metadata": {}}
        self._instance["instantiatedVnfInfo"] = {"metadata": {"namespace": "default"}}

    def operate(self, operation: str, **changes: str) -> str:
        """The failure of the script; Tacker stores the instance if there is none."""
        [balancer] = self._site.of(BALANCER)
        login = {"ip_address": balancer.public or balancer.address, "ssh_username": USER, "ssh_password": PASSWORD, **changes}
        section = {"external_lb_param": {**login, "host_keys": self._site.nodes[balancer.id].host_keys}}
        given = {
            "operation": operation,
            "request": {"additionalParams": {"lcm-kubernetes-external-lb": section}},
            "vnf_instance": self._instance,
            "user_script_err_handling_data": {},
            "tmp_csar_dir": str(self._conductor.folder),
        }
        returned, outcome = self._conductor.run("node_ports", given)
        if not outcome.failure:
            self._instance = returned["vnf_instance"]
        return outcome.failure
