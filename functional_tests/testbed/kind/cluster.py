# SPDX-License-Identifier: Apache-2.0
"""A cluster of one node that kind makes, with its images loaded, not pulled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from builds import commands
from builds.programs import build
from builds.progress import step

from .. import config, images
from ..kubernetes import PODS, SERVICES, present_images
from ..ledger import Ledger
from ..release import NEWEST
from . import node_image
from .docker import Docker

PORT = 6443


class Kind:
    """`Kind.create` makes one. `kubeconfig` is the path of a file with the permissions of cluster-admin."""

    def __init__(self, docker: Docker, ledger: Ledger, name: str) -> None:
        self.name = name
        self.kubeconfig = ledger.home / f"{name}.kubeconfig"
        self._docker = docker
        self._ledger = ledger

    @classmethod
    def create(cls, docker: Docker, ledger: Ledger, name: str = "kind", port: int = PORT, pods: str = PODS) -> Kind:
        """Returns when its node and its DNS are ready."""
        kind = cls(docker, ledger, name)
        values = {"address": docker.address, "port": port, "pods": pods, "services": SERVICES}
        file = ledger.file(ledger.home / f"{name}.yaml", config.render("kind/cluster.yaml", **values))
        ledger.file(kind.kubeconfig, "")
        with step(f"Making the cluster {name} with kind"):
            kind._kind("create", "cluster", f"--config={file}", f"--image={node_image.NAME}", f"--kubeconfig={kind.kubeconfig}")
            node = f"{name}-control-plane"
            network = ledger.file(ledger.home / f"{name}.conflist", config.render("pods.conflist", pods=pods))
            docker.run("cp", network, f"{node}:/etc/cni/net.d/10-pods.conflist")
            docker.lead(pods, node)
            kind.kubectl("apply", "--server-side", f"--filename={present_images(ledger, NEWEST, name)}")
            kind.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=240s")
            kind.kubectl("--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=240s")
        return kind

    def kubectl(self, *arguments: str | Path) -> str:
        """The stdout of kubectl."""
        return commands.run([build("kubernetes") / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments])

    def load_image(self, name: str, entrypoint: str, files: Mapping[str, Path], user: str = "") -> None:
        """Give the node an image; all as `images.archive` has it."""
        self.load([images.archive([name], entrypoint, files, user)])

    def load(self, archives: Iterable[Path]) -> None:
        """Give the node the images of `images.archive`."""
        for archive in archives:
            self._kind("load", "image-archive", archive)

    def _kind(self, *arguments: str | Path) -> None:
        commands.run([build("kind") / "kind", *arguments, f"--name={self.name}"], env=self._docker.environment)
