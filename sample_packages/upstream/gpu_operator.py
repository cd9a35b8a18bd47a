"""NVIDIA's GPU operator with its CRD and the ClusterPolicy of its Helm chart.

Its dependency, Node Feature Discovery, is left out: a cluster may have it already, and it takes a program of its own.
"""

from pathlib import Path

from functional_tests.testbed import controllers

from . import tools

FAMILIES = ("gpu-operator", tools.FAMILY)

NAMESPACE = "gpu-operator"


def render(folder: Path) -> None:
    """One file."""
    chart = controllers.CONTROLLERS["gpu-operator"].source() / "deployments" / "gpu-operator"
    (folder / "gpu-operator.yaml").write_text(tools.helm_template(chart, NAMESPACE, "nfd.enabled=false"))
