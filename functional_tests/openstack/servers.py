# SPDX-License-Identifier: Apache-2.0
"""A server of the cloud as a tenant and its machine show it."""

from __future__ import annotations

import openstack
import requests

from ..client import Body
from ..testbed import paths
from ..testbed.openstack.server import Server
from .conftest import PORT


def machine(server: str) -> Server:
    return Server(paths.STATE / "openstack" / "nova" / "instances" / server)


def machine_of(vnfc: Body) -> Server:
    """The machine that is a node of a cluster."""
    return machine(vnfc["metadata"]["providerID"].rpartition("/")[2])


def page(address: str) -> str:
    """What the server responds; empty while it does not."""
    try:
        return requests.get(f"http://{address}:{PORT}/", timeout=2).text
    except requests.RequestException:
        return ""


def attempt(server: str, *argv: str) -> str:
    try:
        return machine(server).run(*argv)
    except RuntimeError:
        return ""


def console_with(tenant: openstack.connection.Connection, server: str, text: str) -> str:
    output = tenant.compute.get_server_console_output(server)["output"]
    return output if text in output else ""
