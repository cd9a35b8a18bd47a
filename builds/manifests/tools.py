# SPDX-License-Identifier: Apache-2.0
"""The programs that projects render their manifests with, built from pinned sources."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from .. import programs

FAMILY = "rendering"


def helm_template(chart: Path, namespace: str, *settings: str) -> str:
    """The objects of a chart, its CRDs included, as the release of the chart's own name; `settings` are NAME=VALUE."""
    options = [word for setting in settings for word in ("--set", setting)]
    return _run("helm", "template", chart.name, str(chart), "--namespace", namespace, "--include-crds", *options)


def kustomized(folder: Path, **patch: Any) -> str:
    """The objects of a kustomization, with a strategic merge patch of each Deployment."""
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", **patch}
    deployment["metadata"] = {"name": "ignored", **patch.get("metadata", {})}
    with tempfile.TemporaryDirectory() as work:
        overlay = {
            "resources": [os.path.relpath(folder, Path(work).resolve())],
            "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(deployment)}],
        }
        Path(work, "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        return _run("kustomize", "build", work)


def _run(tool: str, *arguments: str) -> str:
    done = subprocess.run([programs.build(FAMILY) / tool, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tool} {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
