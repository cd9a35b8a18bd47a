# SPDX-License-Identifier: Apache-2.0
"""Does the steps of a plan on the servers, counts them, and reports each to the conductor's log."""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.node_clusters import facts as looks
from k8s_cr_driver.node_clusters import plan, work
from k8s_cr_driver.node_clusters.contents import Package
from k8s_cr_driver.node_clusters.facts import APPLIED, INSTALLED, KUBECONFIG, Cluster, Facts, Server
from k8s_cr_driver.node_clusters.inventory import Inventory, Node
from k8s_cr_driver.node_clusters.kubeadm import balancing, configuration, etcd
from k8s_cr_driver.node_clusters.parameters import Parameters
from k8s_cr_driver.ssh import files, units
from k8s_cr_driver.ssh.command import Command, script
from k8s_cr_driver.ssh.files import File
from k8s_cr_driver.ssh.host import Host, HostError, Unreachable
from k8s_cr_driver.ssh.hosts import Hosts

BOOT_WITHIN = 300.0
"""Seconds in which a new server has to accept a login."""
INSTALL_WITHIN, KUBEADM_WITHIN, READY_WITHIN = 1800.0, 900.0, 300.0
HOLDER_WITHIN = 30.0
"""Seconds in which one master has the virtual IP, after a change of the load balancing."""
NOTICED_WITHIN = 90.0
"""Seconds in which a node whose server is dead is not Ready any more: 50 by default, and what the look takes."""
TRIES = 10
"""Of what the API server refuses for a moment."""

_CERTIFICATE_KEY = re.compile(r"\b[0-9a-f]{64}\b")
_JOIN = re.compile(r"--token (\S+) .*?--discovery-token-ca-cert-hash (sha256:[0-9a-f]{64})", re.DOTALL)
MARK = 'umask 077; mkdir -p "$(dirname "$1")"; printf "%s" "$2" >"$1"'


@dataclass
class Run:
    """One operation on the servers of an instance."""

    hosts: Hosts
    reach: Mapping[str, Host]
    """How each server that is there is reached, by the name of its node."""
    instance: str
    inventory: Inventory
    parameters: Parameters
    package: Package
    progress: Callable[[str], None]
    changes: int = 0

    def ensure(self) -> None:
        """The cluster of all servers afterwards. Raises DriverError."""
        facts = self.look(BOOT_WITHIN)
        phases = plan.ensure(self._wanted, facts)
        is_changed = any(phase.name == plan.BALANCING for phase in phases)
        if facts.cluster and self.inventory.is_balanced and not is_changed and len(plan.holders(self.inventory, facts)) != 1:
            self._await_holder()
        self._do(phases)
        self._verify()

    def leave(self, servers: Iterable[str]) -> None:
        """The servers are no nodes afterwards; those that do not respond are left out. Raises DriverError."""
        gone = list(servers)
        self._do(plan.leave(self._wanted, self.look_at_leaving(gone), gone))

    def look_at_leaving(self, servers: Iterable[str]) -> Facts:
        """What there is, once the cluster has noticed which of these servers are dead."""
        gone, end = list(servers), time.monotonic() + NOTICED_WITHIN
        while (silent := plan.silent(self.inventory, facts := self.look(0), gone)) and time.monotonic() < end:
            self.progress(f"{', '.join(silent)}: the cluster has not noticed yet that it does not respond")
            time.sleep(work.PAUSE)
        return facts

    def look(self, patience: float) -> Facts:
        """What there is. Servers must respond within `patience` seconds; with 0 those that do not are left out."""
        end = time.monotonic() + patience
        nodes = self.inventory.servers
        read = work.on_all(nodes, functools.partial(self._server, end=end if patience else 0.0))
        servers = {node.name: server for node, server in zip(nodes, read, strict=True) if server is not None}
        return Facts(servers, self._cluster(servers))

    @functools.cached_property
    def _wanted(self) -> plan.Wanted:
        package, digest = self.package, configuration.digest
        scripts = digest(package.script), digest(package.balancer_script)
        return plan.Wanted(self.instance, self.inventory, scripts[0], digest(*package.manifests), scripts[1])

    def _server(self, node: Node, end: float) -> Server | None:
        """None for one that is gone, and for one that does not respond, unless it has to until `end`."""
        if not node.is_there:
            self.progress(f"{node.name}: its server is gone already")
            return None
        command = looks.of_server(node, self.inventory.endpoint.address)
        try:
            return work.when_reachable(lambda: looks.read_server(self.run(node, command)), end)
        except Unreachable:
            if end:
                raise
            self.progress(f"{node.name}: does not respond")
            return None

    def _cluster(self, servers: Mapping[str, Server]) -> Cluster | None:
        """As the first master that responds has it; None where none does, or there is no cluster yet."""
        failed: DriverError | None = None
        for node in self.inventory.masters:
            if servers.get(node.name, Server()).is_control_plane:
                try:
                    return self._read_cluster(self.run(node, self._of_cluster(node)))
                except HostError as error:
                    failed = error
                except ValueError:
                    failed = DriverError(f"{node.name}: gives no list of the nodes, or of the members of etcd")
        if failed is not None:
            raise DriverError(
                f"{failed}. No master says what is in the cluster: if etcd has lost its majority, start the masters that are "
                "down, or heal the whole VNF instance, which loses the cluster's content"
            )
        return None

    def _of_cluster(self, by: Node) -> Command:
        return looks.of_cluster(by, self.inventory.masters)

    _read_cluster = staticmethod(looks.read_cluster)

    def run(self, node: Node, command: Command) -> str:
        return self.hosts.run(self.reach[node.name], command)

    def kubectl(self, what: str, *argv: str, stdin: str = "", within: float = 120.0) -> str:
        """What kubectl prints on a master of the cluster. Raises DriverError."""
        return self._patiently(master := self._master(), _kubectl(master, what, *argv, stdin=stdin, within=within))

    def _patiently(self, node: Node, command: Command) -> str:
        """A command that may be repeated: the API server beside it does not respond while etcd changes its members."""
        for _ in range(TRIES - 1):
            try:
                return self.run(node, command)
            except HostError as error:
                self.progress(f"{error}; it is tried again")
                time.sleep(work.PAUSE)
        return self.run(node, command)

    def _do(self, phases: list[plan.Phase]) -> None:
        for phase in phases:
            self.changes += phase.run(self._step, self.progress)
            if phase.name in (plan.BALANCING, plan.RELEASE):
                self._await_holder()

    def _step(self, step: plan.Step) -> None:
        started = time.monotonic()
        match step:
            case plan.Install(node):
                self._install(node)
            case plan.Configure(node, changed, start):
                self._configure(node, changed, start)
            case plan.Release(node):
                self.run(node, script("the end of keepalived", "systemctl stop keepalived"))
            case plan.Initialize(node):
                self._initialize(node)
            case plan.Apply(node):
                self._apply(node)
            case plan.Join(node):
                self._join(node)
            case plan.RemoveMember(node, member):
                self._patiently(node, etcd.remove_member(member.id))
            case plan.Drain(node, name):
                self._drain(node, name)
            case plan.DeleteNode(node, name):
                delete = ("delete", "node", name, "--ignore-not-found")
                self._patiently(node, _kubectl(node, "the removal of the node", *delete))
        self.progress(f"{_subject(step)}: {type(step).__name__}: {time.monotonic() - started:.1f} s")

    def _install(self, node: Node) -> None:
        given = json.dumps(configuration.for_script(node, self.inventory.endpoint, self.parameters))
        path = f"{units.FOLDER}/install"
        self.run(node, files.replace(File(path, self.package.script_of(node), mode="0700")))
        secrets = self.parameters.secrets
        self.run(node, units.step("the package's script", "k8s-cr-install", (path,), given, INSTALL_WITHIN, secrets))
        self.run(node, script("the mark of the installation", MARK, INSTALLED, self._wanted.installed_of(node)))

    def _configure(self, node: Node, changed: Sequence[File], start: Sequence[str]) -> None:
        for file in changed:
            self.run(node, files.replace(file))
        reload = [balancing.UNITS[file.path] for file in changed if balancing.UNITS[file.path] not in start]
        for unit in start:
            self.run(node, script(f"the start of {unit}", 'systemctl enable --quiet "$1"; systemctl restart "$1"', unit))
        for unit in reload:
            self.run(node, script(f"the reload of {unit}", 'systemctl reload "$1"', unit))

    def _initialize(self, node: Node) -> None:
        version = self.parameters.kubernetes_version or self.run(
            node, Command("kubeadm version", ("kubeadm", "version", "--output=short"))
        )
        text = configuration.initial(node, self.inventory.endpoint, self.parameters, version.strip())
        path = f"{units.FOLDER}/kubeadm.yaml"
        self.run(node, files.replace(File(path, text, mode="0600")))
        argv, made = configuration.fresh("init", f"--config={path}"), configuration.KUBELET
        self.run(node, units.step("kubeadm init", configuration.INITIALIZE, argv, within=KUBEADM_WITHIN, made=made))

    def _apply(self, node: Node) -> None:
        for manifest in self.package.manifests:
            apply = ("apply", "--server-side", "--field-manager=k8s-cr-node-cluster", "--filename=-")
            self._patiently(node, _kubectl(node, "the package's manifests", *apply, stdin=manifest))
        self.run(node, script("the mark of the manifests", MARK, APPLIED, self._wanted.applied))

    def _join(self, node: Node) -> None:
        token, digest = self._token
        key = self._certificate_key if node.is_master else ""
        text = configuration.joining(node, self.inventory.endpoint, token, digest, key)
        argv, made = configuration.fresh("join", "--config=/dev/stdin"), configuration.KUBELET
        secrets = tuple(filter(None, (token, key)))
        self.run(node, units.step("kubeadm join", configuration.JOIN, argv, text, KUBEADM_WITHIN, secrets, made))

    @functools.cached_property
    def _token(self) -> tuple[str, str]:
        """A token to join, and the digest of the cluster's CA: of this operation only."""
        master = self._master()
        create = ("kubeadm", f"--kubeconfig={KUBECONFIG}", "token", "create", *_LASTING)
        printed = self._patiently(master, Command("kubeadm token", create))
        if (join := _JOIN.search(printed.replace("\\\n", " "))) is None:
            raise HostError(self.reach[master.name], "kubeadm prints no token")
        return join[1], join[2]

    @functools.cached_property
    def _certificate_key(self) -> str:
        """Opens the masters' certificates, which kubeadm keeps in the cluster for two hours; a worker needs none of them."""
        master = self._master()
        upload = ("kubeadm", "init", "phase", "upload-certs", "--upload-certs", f"--kubeconfig={KUBECONFIG}")
        uploaded = self._patiently(master, Command("kubeadm upload-certs", upload, within=120))
        if (key := _CERTIFICATE_KEY.search(uploaded)) is None:
            raise HostError(self.reach[master.name], "kubeadm prints no key of the certificates")
        return key[0]

    def _master(self) -> Node:
        """The first master that is in the cluster."""
        for node in self.inventory.masters:
            if self._is_control_plane(node):
                return node
        raise DriverError("no master of the cluster responds")

    def _is_control_plane(self, node: Node) -> bool:
        try:
            return looks.read_server(self.run(node, looks.of_server(node, ""))).is_control_plane
        except Unreachable:
            return False

    def _drain(self, by: Node, name: str) -> None:
        seconds = self.parameters.drain_timeout
        options = ("--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={seconds}s")
        try:
            self.run(by, _kubectl(by, f"kubectl drain {name}", "drain", name, *options, within=seconds + 60))
        except HostError as error:
            raise DriverError(
                f"{error}. The node {name} is still there, and gets no new Pods; `kubectl uncordon {name}` takes that back. "
                "See the PodDisruptionBudgets, or set drain_timeout"
            ) from None

    def _await_holder(self) -> None:
        """One server has the virtual IP; two may have it for a moment."""
        wrong = "has the virtual IP; exactly one server has to"
        work.until(self._holders, lambda found: len(found) == 1, HOLDER_WITHIN, wrong)

    def _holders(self) -> list[str]:
        able = (*self.inventory.masters, *self.inventory.balancers)
        read = {node.name: self._server(node, 0.0) for node in able}
        return plan.holders(self.inventory, Facts({name: one for name, one in read.items() if one is not None}))

    def _verify(self) -> None:
        """All nodes are Ready, and those of them that are members of etcd are healthy there."""
        names, master = {node.name for node in self.inventory.nodes}, self._master()

        def missing() -> list[str]:
            cluster = self._read_cluster(self._patiently(master, self._of_cluster(master)))
            sick = {member.name for member in cluster.members if not member.is_healthy}
            return sorted(name for name in names if name in sick or not cluster.ready.get(name))

        work.until(missing, lambda found: not found, READY_WITHIN, "is not Ready, or its member of etcd is not healthy")
        self.progress(f"all {len(names)} nodes are Ready; {self.changes} changes, {self.hosts.connections} connections")


_LASTING = ("--ttl=30m", "--print-join-command")


def _kubectl(by: Node, what: str, *argv: str, stdin: str = "", within: float = 120.0) -> Command:
    """Of the API server beside it: the virtual IP may move meanwhile."""
    server = f"--server=https://{by.address}:{balancing.API_SERVER_PORT}"
    return Command(what, ("kubectl", f"--kubeconfig={KUBECONFIG}", server, *argv), stdin, within)


def _subject(step: plan.Step) -> str:
    match step:
        case plan.RemoveMember(_, member):
            return member.name
        case plan.Drain(_, name) | plan.DeleteNode(_, name):
            return name
        case plan.Apply(node):
            return node.name
    return step.node.name


def kubeconfig(run: Run) -> str:
    """The administrator's, as the first master has it. It is kept nowhere."""
    return run.run(run._master(), Command("the look at the kubeconfig", ("cat", KUBECONFIG)))

