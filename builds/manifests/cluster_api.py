# SPDX-License-Identifier: Apache-2.0
"""Cluster API without an infrastructure provider, from its kustomizations."""

from pathlib import Path

from . import providers, tools

FAMILIES = ("cluster-api", tools.FAMILY)

CONFIGS = {
    "cluster-api.yaml": ("cluster-api-controller", "core/config/default"),
    "kubeadm-bootstrap.yaml": ("kubeadm-bootstrap-controller", "bootstrap/kubeadm/config/default"),
    "kubeadm-control-plane.yaml": ("kubeadm-control-plane-controller", "controlplane/kubeadm/config/default"),
}
"""File -> the controller that it installs, and the kustomization in that controller's module."""


def render(folder: Path) -> None:
    """One file for each controller."""
    for file, (controller, config) in CONFIGS.items():
        providers.render(folder / file, controller, config)
