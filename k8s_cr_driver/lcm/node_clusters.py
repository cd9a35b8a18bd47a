# SPDX-License-Identifier: Apache-2.0
"""The management drivers of clusters on servers: what Tacker gives -> one run over SSH -> what the instance keeps.

The instance keeps in its metadata the parameters without secrets and the host keys, which are pinned for the life of a server.
A failed operation stores no instance, so both go through user_script_err_handling_data, too.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Mapping
from typing import Any

from k8s_cr_driver.cloud import access, stack
from k8s_cr_driver.cloud.access import Cloud
from k8s_cr_driver.credentials import tacker
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.lcm import conf, hook
from k8s_cr_driver.lcm.pinned_keys import PinnedKeys
from k8s_cr_driver.lcm.workers import most_of_a_project, worker_of
from k8s_cr_driver.logs import logger
from k8s_cr_driver.node_clusters import inventory, parameters, run, vim
from k8s_cr_driver.node_clusters.contents import Package
from k8s_cr_driver.node_clusters.inventory import Node, Role
from k8s_cr_driver.node_clusters.kubeadm import configuration
from k8s_cr_driver.node_clusters.parameters import PARAMETER, Parameters
from k8s_cr_driver.node_clusters.storage import inventory as storage_inventory
from k8s_cr_driver.node_clusters.storage import persistent_volumes as storage_volumes
from k8s_cr_driver.node_clusters.storage import run as storage_run
from k8s_cr_driver.objects.fields import mapping, text
from k8s_cr_driver.package import files
from k8s_cr_driver.ssh.host import Host
from k8s_cr_driver.ssh.hosts import Hosts
from k8s_cr_driver.vnf.additional_params import Options

LOG = logger(__name__)
KEY = "node_cluster"
"""Key in the metadata of the VnfInstance and in user_script_err_handling_data."""
USER_DATA = ("lcm-operation-user-data", "lcm-operation-user-data-class")
"""Keys of additionalParams by which Tacker finds the class that fills in the templates."""
GRACE = 30.0
"""Seconds by which the alarm is later than the deadline, at which a command ends with a better message."""
SCRIPT_LIMIT = 1024 * 1024
"""Bytes of a file of the package."""


def ha_masters(call: hook.Call) -> None:
    """The entry point of the management driver `ha_masters`. Raises DriverError."""
    hook.act(call, KEY, Operation)


def persistent_volumes(call: hook.Call) -> None:
    """The entry point of `persistent_volumes`, whose cluster may have a single master. Raises DriverError."""
    hook.act(call, KEY, functools.partial(Operation, masters=1))


class Operation:
    """One operation that Tacker runs on a cluster that kubeadm makes."""

    def __init__(self, call: hook.Call, masters: int = inventory.MASTERS) -> None:
        self.call, self.least_masters = call, masters
        self.stored = call.kept(KEY)
        kept, given = mapping(self.stored, "parameters"), call.additional_params.get(PARAMETER, {})
        self.parameters = self._read(given, kept)
        if problem := parameters.vim_name_problem(self.parameters.vim_name, call.instance):
            raise InvalidRequest(problem)
        self.stored["parameters"] = parameters.merged(given, kept)
        if call.operation == "instantiate_end":
            self.stored["user_data"] = {key: call.additional_params[key] for key in USER_DATA if key in call.additional_params}
        most = call.options.max_wait_timeout
        wanted = Options().updated({"wait-timeout": call.additional_params.get("wait-timeout")}).wait_timeout or most
        self.seconds: float = min(wanted, most)
        self.until = time.monotonic() + self.seconds
        self.pinned = PinnedKeys(self.stored, self.until, self._progress)

    def _read(self, given: Any, kept: Mapping[str, Any]) -> Parameters:
        """The parameters of this way to make a cluster. Raises InvalidRequest with all mistakes."""
        return parameters.read(given, kept, self.call.instance["id"])

    def act(self) -> None:
        """Each operation of the Vnflcm interface; those that change no cluster do nothing.

        Commands on servers end at the deadline by themselves; a moment later the alarm ends what else is waited for.
        """
        try:
            with hook.deadline(self.seconds + GRACE):
                self._act()
        finally:
            is_over = self.call.operation in ("terminate_end", "instantiate_rollback_end")
            self.call.keep(KEY, {} if is_over else {**self.stored, **self.pinned.kept})

    def _act(self) -> None:
        match self.call.operation:
            case "instantiate_end" | "scale_end" | "heal_end" | "scale_rollback_start":
                with self._worker():
                    self._ensure()
            case "scale_start" | "heal_start":
                self._check_user_data()
                with self._worker():
                    self._leave()
            case "terminate_start" | "terminate_end" | "instantiate_rollback_start" | "instantiate_rollback_end":
                self._remove()

    def _worker(self) -> contextlib.AbstractContextManager[None]:
        """One of those that operations in the OpenStack project hold. Raises Busy."""
        access = mapping(self._vim, "accessInfo")
        project = " ".join((self._keystone, text(access, "projectDomain"), text(access, "project")))
        return worker_of(project, most_of_a_project(self.call.options.conf))

    def _ensure(self) -> None:
        if self.call.operation == "scale_end" and inventory.leaving(self.call.grant_request):
            return
        registry = self._registry
        with self._opened_by(self._key) as hosts:
            one = self._run(hosts)
            volumes = self._volumes(one)
            if volumes:
                storage_inventory.check_attached(volumes.inventory, self._stack)
                volumes.serve()
            one.ensure()
            if volumes:
                volumes.register()
            entry = vim.of_cluster(run.kubeconfig(one), one.inventory.endpoint, conf.endpoint_rules(self.call.options))
        vim.add(self.call.instance, self.parameters.vim_name, entry)
        if registry:
            registry.register(vim.registered(self.call.instance, self.parameters.vim_name))

    def _check_user_data(self) -> None:
        """Without a class Tacker takes its DefaultUserData, which changes nothing in the templates of another one."""
        made_with = mapping(self.stored, "user_data")
        if made_with and not any(key in self.call.additional_params for key in USER_DATA):
            repeated = ", ".join(f"{key}: {value}" for key, value in made_with.items())
            raise InvalidRequest(
                "additionalParams: the classes of user data must be repeated, or Tacker changes no server and the operation is "
                f"COMPLETED all the same; add {repeated}"
            )

    def _leave(self) -> None:
        if self.call.operation == "scale_start":
            self._check_scale()
        servers = inventory.leaving(self.call.grant_request)
        if not servers:
            return
        if self.call.operation == "heal_start" and not self.call.request.get("vnfcInstanceId"):
            self._remove()
            return
        with self._opened_by(self._key) as hosts:
            one = self._run(hosts)
            volumes = self._volumes(one)
            if volumes and volumes.inventory.server and volumes.inventory.server.server in servers:
                self.stored["storage"] = {"vdu": volumes.inventory.vdu, "report": list(volumes.leave(self.call.grant_request))}
                servers.remove(volumes.inventory.server.server)
            if servers:
                one.leave(servers)

    def _check_scale(self) -> None:
        """Raises InvalidRequest for servers whose number stays."""
        balancers = self.parameters.balancers
        fixed = dict.fromkeys(
            inventory.vdus(self.call.instance, balancers.group) if balancers else (),
            "the load balancers know each other, and their number stays: they",
        )
        if vdu := text(self.stored, "storage", "vdu"):
            fixed[vdu] = "the storage server is one server with its volumes, and"
        for vdu, why in fixed.items():
            if storage_inventory.is_scaled(self.call.grant_request, vdu):
                raise InvalidRequest(f"VDU {vdu}: {why} cannot be scaled")

    def _remove(self) -> None:
        """The cluster goes with its servers: from Tacker's VIMs, too, while the OpenStack VIM is there, with the project."""
        name, has_servers = self.parameters.vim_name, vim.of_openstack(self.call.instance)
        registry = hook.unless_refused(self.call, self.pinned.keys, lambda: self._registry) if has_servers else None
        if registry and not registry.remove(name, vim.description(self.call.instance)):
            self._progress(f"the VIM {name} of Tacker has another description, so it stays")
        vim.remove(self.call.instance, name)

    @functools.cached_property
    def _registry(self) -> tacker.Tacker | None:
        """Tacker's VIMs, if the operator lets the cluster become one."""
        if not self.parameters.vim_cloud:
            return None
        file, name = conf.vim_cloud(self.call.options, self.parameters.vim_cloud, self._keystone, self._cloud.project)
        try:
            return tacker.Tacker(tacker.cloud(file, name))
        except (OSError, UnicodeDecodeError, InvalidRequest) as error:
            LOG.error("vim_cloud %s: %s", self.parameters.vim_cloud, error)
            named = f"vim_cloud: {self.parameters.vim_cloud} of the operator cannot be used"
            raise InvalidRequest(f"{named}; ask for its clouds_file") from None

    def _opened_by(self, key: tuple[str, EndpointRules] | None) -> Hosts:
        """An operator's key opens the servers that the operator lists for it, and no others."""
        rules = key[1] if key else conf.ssh_rules(self.call.options)
        return Hosts(lambda address: rules(address, [address]), self.until)

    @functools.cached_property
    def _key(self) -> tuple[str, EndpointRules] | None:
        return self._key_of(self.parameters.ssh_key)

    def _key_of(self, name: str) -> tuple[str, EndpointRules] | None:
        """The operator's key, if one is chosen, and where it may be used."""
        return conf.ssh_key(self.call.options, name, self._keystone, self._cloud.project) if name else None

    def _run(self, hosts: Hosts) -> run.Run:
        leaving = inventory.leaving(self.call.grant_request)
        found = inventory.read(self.call.instance, self.parameters, self._stack, self.least_masters, leaving)
        reach = self._reach(*found.servers, self._shares.server)
        return run.Run(hosts, reach, self.call.instance["id"], found, self.parameters, self._package(), self._progress)

    def _reach(self, *servers: Node | None) -> dict[str, Host]:
        """Those that are there, by name; host keys of others are forgotten."""
        known = list(filter(None, servers))
        self.pinned.forget_others(known)
        return {node.name: self._host(node) for node in known if node.is_there}

    def _volumes(self, one: run.Run) -> storage_run.Run | None:
        """The persistent volumes of that cluster, if the request has them."""
        given, found = self.parameters.storage, self._shares
        if not given:
            return None
        texts = {registration.path: self._file(registration.path) for registration in given.registrations}
        if found.vdu:
            self.stored["storage"] = {**mapping(self.stored, "storage"), "vdu": found.vdu}
        return storage_run.Run(
            one.hosts,
            one.reach,
            one.inventory.nodes,
            found,
            given,
            storage_volumes.read(given, texts, found.addresses),
            one.package.script,
            lambda node: configuration.for_script(node, one.inventory.endpoint, self.parameters),
            one.kubectl,
            self._progress,
            self.parameters.secrets,
        )

    @functools.cached_property
    def _shares(self) -> storage_inventory.Inventory:
        """What serves the persistent volumes; empty without any."""
        vdu = text(self.stored, "storage", "vdu")
        return storage_inventory.read(self.call.instance, self.parameters.storage, self._stack, vdu)

    @functools.cached_property
    def _stack(self) -> stack.Stack:
        has_volumes = self.parameters.storage.server is not None
        return stack.read(self._cloud, *inventory.stack_of(self.call.instance), volumes=has_volumes)

    @functools.cached_property
    def _vim(self) -> Mapping[str, Any]:
        entry = vim.of_openstack(self.call.instance)
        if not entry:
            raise InvalidRequest("the VNF instance has no VIM of an OpenStack project")
        return entry

    @property
    def _keystone(self) -> str:
        return text(self._vim, "interfaceInfo", "endpoint")

    @functools.cached_property
    def _cloud(self) -> Cloud:
        verify = conf.heat_verification(self.call.options)
        rules = conf.endpoint_rules(self.call.options)
        interface, login = mapping(self._vim, "interfaceInfo"), mapping(self._vim, "accessInfo")
        return access.of_vim(interface, login, verify, rules, self.until, self._progress)

    def _host(self, node: Node) -> Host:
        given, (user, password) = self.parameters, self._login(node)
        return Host(
            node.name,
            node.ssh,
            user,
            trusted=given.ssh_host_keys or (() if given.ssh_host_authorities else tuple(self.pinned.of(self._cloud, node))),
            authorities=given.ssh_host_authorities,
            private_key=self._key[0] if self._key else "",
            password=password,
        )

    def _login(self, node: Node) -> tuple[str, str]:
        """User and password."""
        server = self.parameters.storage.server
        if server is not None and node.role is Role.STORAGE:
            return server.username, server.password
        if node.role is Role.BALANCER and self.parameters.balancers:
            return self.parameters.balancers.group.username, self.parameters.balancers.group.password
        group = self.parameters.masters if node.is_master else self.parameters.workers
        return group.username, group.password

    def _package(self) -> Package:
        given = self.parameters
        of_balancers = self._file(given.balancers.script_path) if given.balancers else ""
        return Package(self._file(given.script_path), of_balancers, tuple(map(self._file, given.manifests)))

    def _file(self, path: str) -> str:
        """The text of a file of the package; "" for no path."""
        return files.text_inside(self.call.package, path, SCRIPT_LIMIT) if path else ""

    def _progress(self, line: str) -> None:
        LOG.info("%s %s: %s", self.call.instance["id"], self.call.operation, line)
