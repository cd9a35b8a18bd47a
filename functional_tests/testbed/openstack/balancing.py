# SPDX-License-Identifier: Apache-2.0
"""Load balancers: a namespace each, with the port of the virtual IP, in which a HAProxy runs."""

import signal
from pathlib import Path

from builds import commands

from .. import config, processes
from ..ledger import Ledger
from . import network
from .view import Object, View

PREFIX = "k8scr-balancer-"
_BALANCE = {"ROUND_ROBIN": "roundrobin", "LEAST_CONNECTIONS": "leastconn", "SOURCE_IP": "source", "SOURCE_IP_PORT": "source"}


class Balancers:
    """Follows load balancers."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._started: dict[str, str] = {}

    def follow(self, view: View) -> None:
        wanted = {f"{PREFIX}{one}": balancer for one, balancer in view.loadbalancers.items() if _is_there(view, balancer)}
        for name in network.namespaces(PREFIX) - wanted.keys():
            self._stop(name)
            commands.run(["ip", "netns", "delete", name])
        for name, balancer in wanted.items():
            self._plug(view, balancer, name)
            text = configuration(view, balancer)
            if self._started.get(name) != text:
                self._stop(name)
                self._start(name, text)

    def _plug(self, view: View, balancer: Object, namespace: str) -> None:
        port = view.port(view.ports[balancer["vip_port_id"]])
        if not network.has_namespace(namespace):
            network.add_namespace(self._ledger, namespace)
        if not network.has_link(network.tap_of(port.id)):
            network.plug(self._ledger, port, namespace, "eth0")

    def _start(self, namespace: str, text: str) -> None:
        if "\nfrontend " in text:
            file = Path(self._ledger.home, f"{namespace}.cfg")
            file.write_text(text)
            self._ledger.spawn(namespace, ["ip", "netns", "exec", namespace, "haproxy", "-db", "-f", file])
        self._started[namespace] = text

    def _stop(self, namespace: str) -> None:
        token = f"{self._ledger.token}/{namespace}"
        processes.stop(lambda: processes.with_token(token), signal.SIGTERM, patience=2)
        self._started.pop(namespace, None)


def configuration(view: View, balancer: Object) -> str:
    """Of HAProxy, for all listeners of the load balancer that have a pool."""
    listeners = [
        listener
        for listener in view.listeners.values()
        if {"id": balancer["id"]} in listener["loadbalancers"] and listener["default_pool_id"] in view.pools
    ]
    return config.render("openstack/haproxy.cfg") + "".join(_frontend(view, balancer, one) for one in listeners)


def _frontend(view: View, balancer: Object, listener: Object) -> str:
    pool = view.pools[listener["default_pool_id"]]
    check = " check" if pool.get("healthmonitor_id") else ""
    lines = [
        f"frontend {listener['id']}",
        f"  bind {balancer['vip_address']}:{listener['protocol_port']}",
        f"  default_backend {pool['id']}",
        f"backend {pool['id']}",
        f"  balance {_BALANCE[pool['lb_algorithm']]}",
    ]
    lines += [
        f"  server {one['id']} {one['address']}:{one['protocol_port']}{check}"
        for one in view.members[pool["id"]]
        if one["admin_state_up"]
    ]
    return "\n" + "\n".join(lines) + "\n"


def _is_there(view: View, balancer: Object) -> bool:
    port = view.ports.get(balancer["vip_port_id"])
    return port is not None and network.has_link(network.bridge_of(port["network_id"]))
