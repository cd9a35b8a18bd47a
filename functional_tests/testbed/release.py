# SPDX-License-Identifier: Apache-2.0
"""Versions of Kubernetes that nodes of the bed run: built programs, and the images that kubeadm wants, made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builds import commands
from builds.programs import build

from . import images, rootfs

# Without it `nft --json` writes protocols as numbers: at its hourly full sync kube-proxy takes the keys of its maps that it
# reads for others than it wants, and deletes them (ListElements in knftables, cleanupLeftoverKeys in kube-proxy).
PROTOCOLS = "/etc/protocols"
_STAND_INS = "stand-ins"


@dataclass(frozen=True)
class Release:
    """One version, and the family of Go programs that has what is its own; the rest is that of the newest."""

    version: str
    family: str
    policies: str = "v1beta1"
    """The version of `admissionregistration.k8s.io` that has MutatingAdmissionPolicy."""

    @property
    def minor(self) -> str:
        return self.version.removeprefix("v").rpartition(".")[0]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.family, NEWEST.family, _STAND_INS)))

    def programs(self) -> dict[Path, str]:
        """What a node runs itself: files of the host -> where the machine sees them."""
        return {self._program(name): f"/usr/bin/{name}" for name in ("kubeadm", "kubelet", "kubectl")}

    def images(self) -> dict[str, Path]:
        """The images that kubeadm wants, by their names."""
        listing = commands.run([self._program("kubeadm"), "config", "images", "list", f"--kubernetes-version={self.version}"])
        return {name: self._image(name) for name in listing.split()}

    def _image(self, name: str) -> Path:
        program = name.rpartition("/")[2].partition(":")[0]
        path = "/coredns" if program == "coredns" else f"/usr/local/bin/{program}"
        files = {path: build(_STAND_INS) / program if program == "pause" else self._program(program)}
        if program == "kube-proxy":
            files |= rootfs.with_libraries("/usr/sbin/nft") | {PROTOCOLS: rootfs.file(PROTOCOLS)}
        return images.archive([name], path, files)

    def _program(self, name: str) -> Path:
        own = build(self.family) / name
        return own if own.exists() else build(NEWEST.family) / name


NEWEST = Release("v1.36.3", "kubernetes", policies="v1")
FORMER = Release("v1.35.8", "kubernetes-1.35")
"""The minor version before."""
OLDER = {release.minor: release for release in (FORMER, Release("v1.34.10", "kubernetes-1.34"))}
"""Those that the bed's Kubernetes may have in place of the newest, by their minor versions."""
