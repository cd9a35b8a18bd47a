"""Istio's CRDs, as its chart `base` installs them. Its control plane cannot be built of released modules alone."""

import shutil
from pathlib import Path

from functional_tests.testbed import build

FAMILIES = ("istio",)


def render(folder: Path) -> None:
    """One file."""
    source = build.module_dir("istio", "istio.io/api") / "kubernetes" / "customresourcedefinitions.gen.yaml"
    shutil.copyfile(source, folder / "definitions.yaml")
