# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's GPU operator with its CRD and the ClusterPolicy of its Helm chart.

Its dependency, Node Feature Discovery, is left out: a cluster may have it already, and it takes a program of its own.
"""

from pathlib import Path

import yaml

from .. import controllers
from . import tools

FAMILIES = ("gpu-operator", tools.FAMILY)

NAMESPACE = "gpu-operator"
# Of the chart's objects, which name no namespace: `helm install` has one for them.
NAMESPACED = ("ServiceAccount", "Deployment")


def render(folder: Path) -> None:
    """One file."""
    chart = controllers.CONTROLLERS["gpu-operator"].source() / "deployments" / "gpu-operator"
    objects = list(filter(None, yaml.safe_load_all(tools.helm_template(chart, NAMESPACE, "nfd.enabled=false"))))
    for one in objects:
        if one["kind"] in NAMESPACED:
            one["metadata"]["namespace"] = NAMESPACE
    (folder / "gpu-operator.yaml").write_text(yaml.safe_dump_all(objects))
