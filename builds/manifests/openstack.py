# SPDX-License-Identifier: Apache-2.0
"""Cluster API Provider OpenStack, and the OpenStack Resource Controller, whose kind Image the provider reads."""

from pathlib import Path

from . import providers, tools

FAMILIES = ("cluster-api-openstack", tools.FAMILY)


def render(folder: Path) -> None:
    providers.render(folder / "infrastructure.yaml", "capi-openstack-controller", "config/default")
    providers.render(folder / "openstack-resources.yaml", "openstack-resource-controller", "config/default")
