# SPDX-License-Identifier: Apache-2.0
"""Flannel, from its Helm chart, as manifests for a cluster that a management driver makes."""

from pathlib import Path

from . import flannel

FAMILIES = flannel.FAMILIES


def render(folder: Path) -> None:
    (folder / "flannel.yaml").write_text(flannel.manifests())
