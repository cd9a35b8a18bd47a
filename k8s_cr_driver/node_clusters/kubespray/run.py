# SPDX-License-Identifier: Apache-2.0
"""Does the steps of a plan: playbooks on the Ansible server, kubectl on a master, the configuration of the load balancer."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.node_clusters import facts as looks
from k8s_cr_driver.node_clusters import load_balancer, work
from k8s_cr_driver.node_clusters import plan as common
from k8s_cr_driver.node_clusters import run as runs
from k8s_cr_driver.node_clusters.facts import INSTALLED, Cluster, Server
from k8s_cr_driver.node_clusters.inventory import Node
from k8s_cr_driver.node_clusters.kubeadm import configuration
from k8s_cr_driver.node_clusters.kubespray import ansible_files, ansible_server, plan, playbook
from k8s_cr_driver.node_clusters.kubespray.parameters import Kubespray
from k8s_cr_driver.node_clusters.kubespray.playbook import Playbook
from k8s_cr_driver.node_clusters.load_balancer import Balancer
from k8s_cr_driver.node_clusters.parameters import secrets_of
from k8s_cr_driver.ssh import detached, files, units
from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.files import File
from k8s_cr_driver.ssh.host import CommandFailed, without

PLAYBOOK_WITHIN = 7200.0


@dataclass(kw_only=True)
class Run(runs.Run):
    """One operation on the servers of an instance."""

    kubespray: Kubespray
    ansible: Callable[[Command], str]
    """Runs a command on the Ansible server."""
    balancer: Node | None
    """The load balancer's server."""
    balancer_script: str = field(default="", repr=False)

    def ensure(self) -> None:
        """The cluster of all servers afterwards. Raises DriverError."""
        found = self._found(runs.BOOT_WITHIN)
        self._play(plan.ensure(self._target, found))
        self._verify()

    def leave(self, servers: Iterable[str]) -> None:
        """The servers are no nodes afterwards. Raises DriverError."""
        gone = set(servers)
        if self.balancer and self.balancer.server in gone:
            self.balancer = None  # it is replaced: the routes follow when the new one is there
        if gone & {node.server for node in self.inventory.nodes}:
            self.look_at_leaving(gone)
            self._play(plan.leave(self._target, self._found(0), gone))

    @functools.cached_property
    def _target(self) -> plan.Wanted:
        return plan.Wanted(
            self.inventory,
            ansible_files.files(self.kubespray, self.instance, self.inventory, self.reach),
            configuration.digest(*self.package.manifests),
            self.balancer,
            configuration.digest(self.balancer_script),
            self.kubespray.balancer.node_ports if self.kubespray.balancer else (),
        )

    def _found(self, patience: float) -> plan.Found:
        """What there is. The Ansible server comes first: it is to be there before anything is touched."""
        ansible, paths = self.kubespray.ansible, [file.path for file in self._target.files]
        has_passwords = bool(ansible_files.secrets(self.kubespray))
        command = ansible_server.look(ansible, self.instance, paths, has_passwords=has_passwords)
        server = ansible_server.read(self.ansible(command))
        ansible_server.check(server, ansible)
        facts = self.look(patience)
        installed, balancer = "", Balancer()
        if self.balancer:
            end = time.monotonic() + patience
            of_balancer = self._server(self.balancer, end if patience else 0.0)
            installed = of_balancer.installed if of_balancer else ""
            balancer = self._look_at_balancer()
        return plan.Found(facts, server.digests, balancer, installed)

    def _cluster(self, servers: Mapping[str, Server]) -> Cluster | None:
        """None before a playbook has ended well: what kubespray has begun may not respond."""
        try:
            return super()._cluster(servers)
        except DriverError:
            if any(one.installed == plan.MARK for one in servers.values()):
                raise
            return None

    def _of_cluster(self, by: Node) -> Command:
        return looks.of_nodes(by)

    _read_cluster = staticmethod(looks.read_nodes)

    def _play(self, phases: list[plan.Phase]) -> None:
        for phase in phases:
            self.progress(f"{phase.name}: {len(phase.steps)} {'step' if len(phase.steps) == 1 else 'steps'}")
            for step in phase.steps:
                started = time.monotonic()
                self._act(step)
                self.changes += 1
                self.progress(f"{type(step).__name__}: {time.monotonic() - started:.1f} s")

    def _act(self, step: plan.Step) -> None:
        ansible = self.kubespray.ansible
        match step:
            case plan.Write(changed):
                for command in ansible_server.write(ansible, self.instance, changed):
                    self.ansible(command)
            case plan.Play(one, marked):
                self._run_playbook(one)
                mark = script("the mark of the playbook", runs.MARK, INSTALLED, plan.MARK)
                work.on_all(marked, lambda node: self.run(node, mark))
            case plan.Balance(inventory):
                assert self.kubespray.balancer is not None
                self._change_balancer(load_balancer.of_cluster(inventory, self.kubespray.balancer.node_ports))
            case plan.Forget(names):
                self.ansible(ansible_server.forget(ansible, self.instance, names))
            case common.Install(node):
                self._install_balancer(node)
            case _:
                self._step(step)

    def _run_playbook(self, one: Playbook) -> None:
        """One that fails is reported by the results of its tasks, not by the end of what Ansible has printed."""
        ansible, secrets = self.kubespray.ansible, ansible_files.secrets(self.kubespray)
        content = "".join(file.digest for file in self._target.files)
        command = playbook.command(one, ansible, self.instance, content, secrets, self._hidden, PLAYBOOK_WITHIN)
        try:
            output = self.ansible(command)
        except CommandFailed as error:
            found = list(playbook.events(error.output))
            said = without(playbook.failures(found), self._hidden)  # again: the events are JSON, which escapes characters
            if error.exit_status == detached.LATE:
                said = f"it did not end within {PLAYBOOK_WITHIN:.0f} s; its last task: {playbook.last_task(found) or 'none'}"
            if not said:
                raise
            log = f"{ansible_files.folder(ansible, self.instance)}/{ansible_files.RUN}/log"
            raise DriverError(f"{one.file} of kubespray has failed: {said}. {ansible_server.NAME} has its log, {log}") from None
        self.progress(f"{one.file}: {playbook.recap(playbook.events(output)) or 'no host has a result'}")

    @property
    def _hidden(self) -> tuple[str, ...]:
        """Values that no error may have."""
        ansible = self.kubespray.ansible
        return (*self.kubespray.common.secrets, ansible.password, *secrets_of(ansible.settings))

    def _install_balancer(self, node: Node) -> None:
        given = json.dumps({"role": node.role.value, "name": node.name, "address": node.address})
        path = f"{units.FOLDER}/install"
        self.run(node, files.replace(File(path, self.balancer_script, mode="0700")))
        self.run(node, units.step("the load balancer's script", "k8s-cr-install", (path,), given, runs.INSTALL_WITHIN))
        self.run(node, script("the mark of the installation", runs.MARK, INSTALLED, self._target.installed))

    def _look_at_balancer(self) -> Balancer:
        assert self.balancer is not None
        return load_balancer.read(self.run(self.balancer, load_balancer.look()))

    def _change_balancer(self, entries: Mapping[str, object]) -> None:
        assert self.balancer is not None
        balancer = self.balancer
        load_balancer.changed(lambda command: self.run(balancer, command), load_balancer.CLUSTER, entries)
