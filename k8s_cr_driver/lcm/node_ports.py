# SPDX-License-Identifier: Apache-2.0
"""The management driver of a CNF whose NodePorts stand on the external load balancer of its cluster.

The load balancer is that of the operator, by its name, or the request says how to log in there. A name opens it only for
instances of the projects that the operator lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.kube import lists
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.lcm import conf, hook
from k8s_cr_driver.logs import logger
from k8s_cr_driver.node_clusters import load_balancer
from k8s_cr_driver.node_clusters.node_ports import ADDRESS, EXPOSES, MOST, TCP, WITHDRAWS, check_address, of_request, of_service
from k8s_cr_driver.objects.fields import entries, field, mapping, text, texts
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.ssh import host_keys
from k8s_cr_driver.ssh.host import Host
from k8s_cr_driver.ssh.hosts import Hosts

LOG = logger(__name__)
KEY = "node_ports"
"""Key in the metadata of the VnfInstance and in user_script_err_handling_data."""
WITHIN = 300.0
"""Seconds for one operation."""


def node_ports(call: hook.Call) -> None:
    """The entry point of the management driver `node_ports`. Raises DriverError."""
    if call.operation not in (*EXPOSES, *WITHDRAWS):
        raise InvalidPackage(f"{call.operation}: node_ports has nothing to do there; remove it from the VNFD")
    stored = call.kept(KEY)
    withdraws = call.operation in WITHDRAWS
    if withdraws and not stored.get("ports"):
        call.keep(KEY, {})
        return
    given = {**mapping(stored, "settings"), **of_request(call.additional_params)}
    if stored.get("ports") and any(given.get(key) != field(stored, "settings", key) for key in ADDRESS):
        raise InvalidRequest("the load balancer has NodePorts of the instance, and stays; a terminate withdraws them")
    project = call.project(KEY)
    host, judge = _host(call, given, project)
    with hook.deadline(WITHIN):
        ports = [] if withdraws else sorted(set(_ports(call)))
        if len(ports) > MOST:
            raise InvalidRequest(f"the instance's Services have {len(ports)} NodePorts; a load balancer takes up to {MOST}")
        # Before the change: what a crash has left is withdrawn by the rollback.
        settings = {key: value for key, value in given.items() if key != "ssh_password"}
        kept = {"settings": settings, "ports": ports or stored.get("ports", [])}
        call.keep(KEY, kept, project=project)
        with Hosts(judge) as hosts:
            name = f"cnf-{call.instance['id']}"
            load_balancer.changed(lambda one: hosts.run(host, one), name, load_balancer.of_cnf(ports))
    LOG.info("%s %s: ports %s", call.instance["id"], call.operation, ports)
    call.keep(KEY, {**kept, "ports": ports} if ports else {}, project=project)


def _host(call: hook.Call, given: Mapping[str, Any], project: str) -> tuple[Host, Any]:
    """The load balancer, and who judges its address."""
    name = text(given, "load_balancer")
    if name:
        found = conf.load_balancer(call.options, name, project)
        keys = conf.known_host_keys(call.options, found.address)
        host = Host(f"the load balancer {name}", found.address, found.username, trusted=keys, private_key=found.key)
        return host, lambda address: None
    check_address(given)
    own = tuple(map(host_keys.public_key, texts(given, "host_keys")))
    address = given["ip_address"]
    rules = conf.ssh_rules(call.options)
    trusted = own or conf.known_host_keys(call.options, address)
    host = Host("the load balancer", address, given["ssh_username"], trusted=trusted, password=text(given, "ssh_password"))
    return host, lambda one: rules(one, [one])


def _ports(call: hook.Call) -> Iterator[int]:
    """The TCP NodePorts of the instance's Services."""
    endpoint = call.endpoint()
    if endpoint is None:
        raise InvalidRequest("the VNF instance has no VIM of a cluster")
    selector = ("labelSelector", f"{INSTANCE_LABEL}={call.instance['id']}")
    with Connection(endpoint) as connection:
        for namespace in filter(None, call.namespaces()):
            for page in lists.pages(connection, f"/api/v1/namespaces/{namespace}/services", [selector]):
                for service in entries(page, "items"):
                    yield from _of_service(service)


def _of_service(service: Mapping[str, Any]) -> Iterator[int]:
    for protocol, number in of_service(service):
        if protocol == TCP and number:
            yield number
        elif number:
            LOG.warning("Service %s: HAProxy cannot balance %s", text(service, "metadata", "name"), number)
