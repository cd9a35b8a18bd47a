# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a package that exposes its NodePorts on an external load balancer, and with a request for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.management_drivers import left_out, misplaced, named
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import node_ports
from k8s_cr_driver.node_clusters.node_ports import EXPOSES, WITHDRAWS
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import Object

NAME = "node_ports"
_CONSEQUENCES = {
    **dict.fromkeys(EXPOSES, "the load balancer keeps the NodePorts of before"),
    **dict.fromkeys(WITHDRAWS, "the NodePorts stay on the load balancer"),
}


def problems(folder: Path, request: Path | None) -> Iterator[str]:
    """A sentence for each mistake. `request`: the body of an instantiate, as JSON."""
    yield from misplaced(folder, NAME, _CONSEQUENCES)
    if request is not None and named(folder, NAME):
        try:
            node_ports.check_address(node_ports.of_request(mapping(package_input.body(request), "additionalParams")))
        except InvalidRequest as error:
            yield from str(error).splitlines()


def warnings(folder: Path, objects: Sequence[Object]) -> Iterator[str]:
    """Operations at which a package does not call the driver, and Services that it cannot expose."""
    if not named(folder, NAME):
        return
    yield from left_out(folder, NAME, _CONSEQUENCES)
    found = [(one, *port) for one in objects if one.get("kind") == "Service" for port in node_ports.of_service(one)]
    for service, protocol, _ in found:
        if protocol != node_ports.TCP:
            yield f"Service {service['metadata']['name']}: HAProxy cannot balance {protocol}, so this port is not exposed"
    if not any(protocol == node_ports.TCP for _, protocol, _ in found):
        yield f"No Service of the package has type NodePort and a port of {node_ports.TCP}, so {NAME} exposes nothing"
