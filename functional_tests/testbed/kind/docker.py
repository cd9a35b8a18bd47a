# SPDX-License-Identifier: Apache-2.0
"""A Docker daemon in a network and a mount namespace of its own.

Its filter rules, bridges and mounts are not the host's: one address on the bed's bridge and a socket in the state folder
are all that the host sees of it.
"""

import os
from pathlib import Path

from builds import commands
from builds.progress import step

from .. import cgroups, config, network
from ..ledger import Ledger

# Of Debian, on the host.
PACKAGES = ("docker.io", "iptables", "jq", "iproute2", "util-linux")

# Beside the bed's network, and for the same reason: the default bridge, and what networks are taken from.
_BRIDGE, _POOL = "198.19.78.1/24", "base=198.19.80.0/20,size=24"
# What the daemon leaves behind although its state is elsewhere.
_LEFT = ("/etc/docker/key.json", "/opt/containerd", "/opt/containerd/bin", "/opt/containerd/lib")


class Docker:
    """The daemon: `Docker.start` starts it. Its containers' published ports are at `address`."""

    def __init__(self, ledger: Ledger, address: str, name: str) -> None:
        self.address, self.name = address, name
        self._ledger = ledger
        self._namespace = Path(f"/run/netns/k8scr-{name}")
        self._home = ledger.home / name

    @classmethod
    def start(cls, ledger: Ledger, address: str, name: str = "docker") -> "Docker":
        """`address` is one of `network.NETWORK`; the bridge must be there."""
        docker = cls(ledger, address, name)
        with step("Starting Docker"):
            network.namespace(ledger, name, address)
            docker._spawn()
        return docker

    def run(self, *arguments: str | Path) -> str:
        """The stdout of `docker`."""
        return commands.run(["docker", *arguments], env=self.environment)

    def exec(self, container: str, *argv: str) -> str:
        """The stdout of a command in a container."""
        return self.run("exec", container, *argv)

    @property
    def environment(self) -> dict[str, str]:
        """With which clients find the daemon, Debian's `docker` first."""
        return {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}", "DOCKER_HOST": f"unix://{self._socket}"}

    def lead(self, pods: str, container: str) -> None:
        """Let the host reach the pods of a node, as the API servers of in-memory clusters are."""
        network.lead(pods, self.address)
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        node = self.run("inspect", "--format", template, container).strip()
        self._inside("ip", "route", "replace", pods, "via", node)
        self._inside("iptables", "--policy", "FORWARD", "ACCEPT")

    @property
    def _socket(self) -> Path:
        return self._home / "docker.sock"

    def _spawn(self) -> None:
        ledger, home = self._ledger, self._ledger.folder(self._home)
        for path in map(Path, _LEFT):
            ledger.foreseen(path)
        runtime = ledger.file(home / "runc", config.render("kind/runc.sh"), mode=0o755)
        daemon = [
            "dockerd", f"--data-root={home / 'data'}", "--exec-root=/run/docker", "--pidfile=/run/docker.pid",
            f"--host=unix://{self._socket}", f"--cgroup-parent=/k8scr-{self.name}", "--storage-driver=overlay2",
            f"--add-runtime=bed={runtime}", "--default-runtime=bed", f"--bip={_BRIDGE}", f"--default-address-pool={_POOL}",
        ]  # fmt: skip
        joining = "".join(f"echo $$ > {group}; " for group in cgroups.create(ledger, self.name))
        # Not `ip netns exec`, which mounts a new /sys, without the control groups.
        private = ["nsenter", f"--net={self._namespace}", "unshare", "--mount", "--propagation=private"]
        script = f'{joining}mount -t tmpfs tmpfs /run && exec "$@"'
        process = ledger.spawn(self.name, [*private, "sh", "-c", script, "sh", *daemon])
        process.wait_until(self._is_up, 60, "Docker responds")

    def _is_up(self) -> bool:
        try:
            self.run("version")
        except RuntimeError:
            return False
        return True

    def _inside(self, *argv: str) -> None:
        commands.run(["nsenter", f"--net={self._namespace}", *argv])

