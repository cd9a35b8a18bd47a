# SPDX-License-Identifier: Apache-2.0
"""Machines behind real SSH servers: an Ansible server whose playbooks are a stand-in, a load balancer, masters and workers."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_cr_driver.node_clusters.inventory import Endpoint, Inventory, Node, Role
from k8s_cr_driver.node_clusters.kubespray import parameters
from k8s_cr_driver.node_clusters.kubespray.run import Run
from k8s_cr_driver.node_clusters.run import Package
from k8s_cr_driver.ssh.command import Command
from k8s_cr_driver.ssh.host import Host
from k8s_cr_driver.ssh.hosts import Hosts
from tests.ssh import server as ssh

from .specification import ansible, balancer, parameter

PATHS = ("/etc/kubernetes", "/etc/haproxy", "/var/lib/k8s-cr-nodes", "/opt/kubespray")
BALANCER = Node("lb", Role.BALANCER, "load-balancer-lb", "127.0.0.1", "10.0.0.200")
MASTER = Node("m0", Role.MASTER, "master-m0", "127.0.0.1", "10.0.0.10")
WORKERS = tuple(Node(f"w{k}", Role.WORKER, f"worker-w{k}", "127.0.0.1", f"10.0.0.2{k}") for k in range(3))
LOG = 'echo "$(basename "$0") $*" >>"$ROOT/log"\n'

_PROGRAMS = {
    "ip": "",
    "systemctl": """\
case $1 in
show) echo inactive ;;
is-active) cat "$ROOT/units/$2" 2>/dev/null || { echo inactive; exit 3; } ;;
restart) echo active >"$ROOT/units/$2" ;;
esac
case $1 in
restart|reload) [ -e "$ROOT/stuck" ] || sed -n 's/^  bind .*:/x x x *:/p' "$ROOT/etc/haproxy/haproxy.cfg" >"$ROOT/next" ;;
esac
case $1 in show|is-active) ;; *) """ + LOG.strip() + """ ;; esac
""",
    # A reload ends before HAProxy has its new ports: the first look finds the former ones.
    "ss": """\
sed 's/$/ * users:(("haproxy"))/' "$ROOT/now"
cat "$ROOT/others"
if [ -e "$ROOT/next" ]; then mv "$ROOT/next" "$ROOT/now"; fi
""",
    "systemd-run": 'while [ "$1" != -- ]; do shift; done; shift; "$@"',
    "haproxy": 'for file in "$@"; do :; done; [ -z "$(grep -e ^frontend -e ^backend "$file" | sort | uniq -d)" ]',
    "sshpass": "",
    "kubectl": """\
while [ "${1#--}" != "$1" ]; do shift; done
if [ "$1" != get ]; then """ + LOG.strip() + """; fi
case $1 in
get) "$PYTHON" - "$CLUSTER" <<'END'
import json, pathlib, sys
ready = {"conditions": [{"type": "Ready", "status": "True"}]}
items = [{"metadata": {"name": one.name}, "status": ready} for one in sorted(pathlib.Path(sys.argv[1]).glob("nodes/*"))]
print(json.dumps({"items": items}, indent=1))
END
;;
drain) if [ -e "$CLUSTER/budget" ]; then echo "Cannot evict pod as it would violate its disruption budget" >&2; exit 1; fi ;;
delete) rm -f "$CLUSTER/nodes/$3" ;;
apply) cat >/dev/null ;;
esac
""",
    "ansible-playbook": '"$PYTHON" "$CLUSTER/playbook.py" "$@"\n',
}
_PLAYBOOK = '''\
"""What a playbook of kubespray leaves: files of nodes, and nodes in the cluster."""
import json, os, pathlib, re, sys, yaml

cluster, arguments = pathlib.Path(os.environ["CLUSTER"]), sys.argv[1:]
inventory = pathlib.Path(arguments[arguments.index("--inventory") + 1])
playbook, hosts = arguments[-1], yaml.safe_load(inventory.read_text())["all"]["hosts"]
secrets = [pathlib.Path(one[1:]).read_text() for one in arguments if one.startswith("@")]
record = {"playbook": playbook, "arguments": arguments, "hosts": sorted(hosts), "secrets": secrets}
record |= {"cwd": os.getcwd(), "configuration": os.environ["ANSIBLE_CONFIG"]}
with (cluster / "playbooks").open("a") as file:
    print(json.dumps(record), file=file)
failing = cluster / "fails"
if failing.exists():
    print("[WARNING]: something")
    result = {"msg": "non-zero return code", "stderr": failing.read_text(), "rc": 1}
    task = {"name": "kubeadm : Join to cluster"}
    print(json.dumps({"_event": "v2_runner_on_failed", "task": task, "hosts": {sorted(hosts)[-1]: result}}))
    stats = {name: {"failures": int(name == sorted(hosts)[-1]), "ok": 3, "changed": 1} for name in hosts}
    print(json.dumps({"_event": "v2_playbook_on_stats", "stats": stats}))
    sys.exit(2)
limit = next((one[8:].split(",") for one in arguments if one.startswith("--limit=")), sorted(hosts))
removed = next((json.loads(one)["node"].split(",") for one in arguments if one.startswith("{")), [])
roots = json.loads((cluster / "machines").read_text())
if playbook in ("cluster.yml", "scale.yml"):
    for name in limit:
        folder = pathlib.Path(roots[name]) / "etc/kubernetes"
        (folder / "manifests").mkdir(parents=True, exist_ok=True)
        (folder / "kubelet.conf").touch()
        if name.startswith("master"):
            (folder / "manifests/kube-apiserver.yaml").touch()
        (cluster / "nodes" / name).touch()
for name in removed:
    assert name in hosts, "the node has to be in the inventory"
    (cluster / "nodes" / name).unlink()
print(json.dumps({"_event": "v2_playbook_on_stats", "stats": {name: {"ok": 3, "changed": 1} for name in hosts}}))
'''


@dataclass
class Machine:
    """One machine: its SSH server, and the folder that it sees as `/`."""

    server: ssh.Server
    root: Path

    @property
    def log(self) -> list[str]:
        """The programs that have changed something, in their order."""
        return (self.root / "log").read_text().splitlines()

    def file(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def host(self, name: str) -> Host:
        known = self.server.host()
        return Host(name, known.address, known.user, known.trusted, private_key=known.private_key, port=known.port)


@dataclass
class Bed:
    """All machines, by the names of their nodes; `ansible` is the Ansible server."""

    cluster: Path
    machines: dict[str, Machine]
    lines: list[str] = field(default_factory=list)

    @property
    def playbooks(self) -> list[dict[str, Any]]:
        """Those that were run."""
        file = self.cluster / "playbooks"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def names(self) -> list[str]:
        return [one["playbook"] for one in self.playbooks]

    def folder(self, instance: str = "4a1f") -> Path:
        """That of the instance on the Ansible server."""
        return self.machines["ansible"].file(f"/opt/kubespray/inventory/k8s-cr-{instance}")

    @contextlib.contextmanager
    def run(self, workers: Sequence[Node] = WORKERS[:2], instance: str = "4a1f", **sections: Any) -> Iterator[Run]:
        """One operation on a master and these workers."""
        given = parameters.read(parameter(**{"external_lb_param": balancer(node_ports=[30080]), **sections}), {}, instance)
        endpoint = Endpoint(BALANCER.address, BALANCER.ssh, given.common.api_port)
        reach = {name: machine.host(name) for name, machine in self.machines.items()}
        with Hosts(lambda _: None) as hosts:
            yield Run(
                *(hosts, reach, instance, Inventory((MASTER, *workers), endpoint), given.common),
                *(Package(manifests=("kind: Network",)), self.lines.append),
                kubespray=given,
                ansible=lambda command: self.on_ansible_server(hosts, command),
                balancer=BALANCER,
                balancer_script="#!/bin/sh\nset -eu\ncat >/dev/null\n",
            )

    def on_ansible_server(self, hosts: Hosts, command: Command) -> str:
        assert not command.as_root, "nothing there is done as root"
        return hosts.run(self.machines["ansible"].host("the Ansible server"), command)

    def ensure(self, workers: Sequence[Node] = WORKERS[:2], **options: Any) -> Run:
        with self.run(workers, **options) as one:
            one.ensure()
        return one


NAMES = ("ansible", BALANCER.name, MASTER.name, *(node.name for node in WORKERS))


@contextlib.contextmanager
def serving(folder: Path, names: Sequence[str] = NAMES) -> Iterator[Bed]:
    """New servers, and an Ansible server with kubespray."""
    cluster = folder / "cluster"
    (cluster / "nodes").mkdir(parents=True)
    (cluster / "playbook.py").write_text(_PLAYBOOK)
    with contextlib.ExitStack() as stack:
        machines = {name: stack.enter_context(_machine(folder / name, cluster)) for name in names}
        (cluster / "machines").write_text(json.dumps({name: str(one.root) for name, one in machines.items()}))
        root = machines["ansible"].file("/opt/kubespray")
        (root / "playbooks").mkdir(parents=True)
        for name in ("cluster.yml", "scale.yml", "remove-node.yml", "playbooks/facts.yml"):
            (root / name).touch()
        yield Bed(cluster, machines)


@contextlib.contextmanager
def _machine(root: Path, cluster: Path) -> Iterator[Machine]:
    for name in ("bin", "units", "etc/haproxy"):
        (root / name).mkdir(parents=True)
    for name, text in _PROGRAMS.items():
        (root / "bin" / name).write_text(f"#!/bin/sh\nset -eu\n{text}")
        (root / "bin" / name).chmod(0o755)
    for name in ("log", "now", "others"):
        (root / name).touch()
    with ssh.serving() as server:
        server.root, server.paths = str(root), PATHS
        path = f"{root / 'bin'}:{os.environ['PATH']}"
        server.environment = {"PATH": path, "ROOT": str(root), "CLUSTER": str(cluster), "PYTHON": sys.executable}
        yield Machine(server, root)


__all__ = ["BALANCER", "MASTER", "WORKERS", "Bed", "Machine", "ansible", "serving"]
