# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a package that exposes its NodePorts on an external load balancer, and with a request for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import node_ports
from k8s_cr_driver.node_clusters.node_ports import EXPOSES, WITHDRAWS
from k8s_cr_driver.objects.fields import mapping
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import scripts, vnfd

NAME = "node_ports"
_CONSEQUENCES = {
    **dict.fromkeys(EXPOSES, "the load balancer keeps the NodePorts of before"),
    **dict.fromkeys(WITHDRAWS, "the NodePorts stay on the load balancer"),
}


def problems(folder: Path, request: Path | None) -> Iterator[str]:
    """A sentence for each mistake. `request`: the body of an instantiate, as JSON."""
    named = _named(folder)
    for flavour, operations in named.items():
        for operation in sorted(operations.keys() - _CONSEQUENCES.keys()):
            yield f"Flavour {flavour}: {operation} names {NAME}, which has nothing to do there; remove it"
    if named and request is not None:
        try:
            node_ports.check_address(node_ports.of_request(mapping(package_input.body(request), "additionalParams")))
        except InvalidRequest as error:
            yield from str(error).splitlines()


def warnings(folder: Path, objects: Sequence[Object]) -> Iterator[str]:
    """Operations at which a package does not call the driver, and Services that it cannot expose."""
    named = _named(folder)
    for flavour, operations in named.items():
        for operation, consequence in _CONSEQUENCES.items():
            if operation not in operations:
                yield f"Flavour {flavour}: {operation} does not name {NAME}, so {consequence}"
    if not named:
        return
    found = [(one, *port) for one in objects if one.get("kind") == "Service" for port in node_ports.of_service(one)]
    for service, protocol, _ in found:
        if protocol != node_ports.TCP:
            yield f"Service {service['metadata']['name']}: HAProxy cannot balance {protocol}, so this port is not exposed"
    if not any(protocol == node_ports.TCP for _, protocol, _ in found):
        yield f"No Service of the package has type NodePort and a port of {node_ports.TCP}, so {NAME} exposes nothing"


def _named(folder: Path) -> dict[str, dict[str, str]]:
    """Flavour -> operation -> script, of those that name the driver."""
    flavours = vnfd.flavours(folder).items()
    return {name: named for name, template in flavours if (named := scripts.of_driver(template, NAME))}
