# SPDX-License-Identifier: Apache-2.0
"""Cluster API's in-memory infrastructure: simulated machines, each with an API server that runs no pods."""

from pathlib import Path

from . import providers, tools

FAMILIES = ("cluster-api", tools.FAMILY)


def render(folder: Path) -> None:
    providers.render(folder / "infrastructure.yaml", "capd-manager", "infrastructure/docker/config/default")
