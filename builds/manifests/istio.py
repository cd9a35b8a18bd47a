# SPDX-License-Identifier: Apache-2.0
"""Istio's CRDs, as its chart `base` installs them. Its control plane cannot be built of released modules alone."""

import shutil
from pathlib import Path

from .. import programs

FAMILIES = ("istio",)


def render(folder: Path) -> None:
    """One file."""
    source = programs.module_dir("istio", "istio.io/api") / "kubernetes" / "customresourcedefinitions.gen.yaml"
    shutil.copyfile(source, folder / "definitions.yaml")
