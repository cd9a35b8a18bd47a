# SPDX-License-Identifier: Apache-2.0
"""clusterctl, with the providers that the bed builds as a local repository."""

import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import yaml

from builds import commands
from builds.controllers import CONTROLLERS
from builds.manifests import cert_manager, cluster_api, in_memory, rendered
from builds.programs import build

FAMILY = "clusterctl"


class Provider(NamedTuple):
    """A provider of a type: `file` of the manifests of `project` is `component`-components.yaml in a repository."""

    type: str
    project: ModuleType
    file: str
    component: str


_PROVIDERS = {
    "cluster-api": Provider("Core", cluster_api, "cluster-api.yaml", "core"),
    "bootstrap-kubeadm": Provider("Bootstrap", cluster_api, "kubeadm-bootstrap.yaml", "bootstrap"),
    "control-plane-kubeadm": Provider("ControlPlane", cluster_api, "kubeadm-control-plane.yaml", "control-plane"),
    "infrastructure-docker": Provider("Infrastructure", in_memory, "infrastructure.yaml", "infrastructure"),
}
"""By the names of their folders in a repository."""


class Clusterctl:
    """`folder` is to hold the repository and what clusterctl stores."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "clusterctl.yaml"
        certificates = rendered(cert_manager) / "cert-manager.yaml"
        released = CONTROLLERS["cert-manager-controller"].version()
        configured = {
            "providers": [self._provider(name) for name in _PROVIDERS],
            "cert-manager": {"url": f"file://{self._release('cert-manager', released, certificates)}", "version": released},
            "CLUSTER_TOPOLOGY": "true",
        }
        self._file.write_text(yaml.safe_dump(configured))

    def run(self, kubeconfig: Path, *arguments: str) -> str:
        """The stdout of `clusterctl` at work on that cluster."""
        environment = {**os.environ, "HOME": str(self._folder), "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
        argv = [build(FAMILY) / "clusterctl", f"--config={self._file}", *arguments, f"--kubeconfig={kubeconfig}"]
        return commands.run(argv, env=environment)

    def _provider(self, name: str) -> dict[str, str]:
        provider, core = _PROVIDERS[name], CONTROLLERS["cluster-api-controller"]
        manifests = rendered(provider.project) / provider.file
        path = self._release(name, core.version(), manifests, f"{provider.component}-components.yaml")
        shutil.copyfile(core.source() / "metadata.yaml", path.with_name("metadata.yaml"))
        short = name if provider.type == "Core" else name.rpartition("-")[2]
        return {"name": short, "type": f"{provider.type}Provider", "url": f"file://{path}"}

    def _release(self, name: str, version: str, file: Path, component: str = "") -> Path:
        """A file in the place where clusterctl looks for a release."""
        path = self._folder / name / version / (component or file.name)
        path.parent.mkdir(parents=True)
        return Path(shutil.copyfile(file, path))
