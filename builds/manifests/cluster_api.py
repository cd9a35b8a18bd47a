# SPDX-License-Identifier: Apache-2.0
"""Cluster API, from its kustomizations, rendered as its release process does it.

That sets the released image and the pull policy IfNotPresent. The variables are filled in that clusterctl fills in;
nothing else is changed.
"""

import re
from pathlib import Path

from .. import controllers
from . import tools

FAMILIES = ("cluster-api", tools.FAMILY)

CONFIGS = {
    "cluster-api.yaml": ("cluster-api-controller", "core/config/default"),
    "kubeadm-bootstrap.yaml": ("kubeadm-bootstrap-controller", "bootstrap/kubeadm/config/default"),
    "kubeadm-control-plane.yaml": ("kubeadm-control-plane-controller", "controlplane/kubeadm/config/default"),
    "in-memory-infrastructure.yaml": ("capd-manager", "infrastructure/docker/config/default"),
}
"""File -> the controller that it installs, and the kustomization in that controller's module."""

VARIABLES = {"CLUSTER_TOPOLOGY": "true"}
_VARIABLE = re.compile(r"\$\{(\w+):=([^}]*)\}")


def render(folder: Path) -> None:
    """One file for each controller."""
    for file, (name, config) in CONFIGS.items():
        (folder / file).write_text(_fill(_kustomize(controllers.CONTROLLERS[name], config)))


def _kustomize(controller: controllers.Controller, config: str) -> str:
    container = {"name": "manager", "image": controller.image(), "imagePullPolicy": "IfNotPresent"}
    return tools.kustomized(controller.source() / config, spec={"template": {"spec": {"containers": [container]}}})


def _fill(manifests: str) -> str:
    return _VARIABLE.sub(lambda found: VARIABLES.get(found[1], found[2]), manifests)
