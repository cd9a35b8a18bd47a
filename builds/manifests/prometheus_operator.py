# SPDX-License-Identifier: Apache-2.0
"""The Prometheus operator, its rights and its CRDs: the bundle that the project releases.

Only that the operator starts after its CRDs is added: one that finds some of them leaves the rest alone for ever.
"""

import re
from pathlib import Path

from .. import controllers
from . import tools

FAMILIES = ("prometheus-operator", tools.FAMILY)

_CRD = re.compile(r"^  name: (\w+\.monitoring\.coreos\.com)$", re.MULTILINE)


def render(folder: Path) -> None:
    """One file."""
    source = controllers.CONTROLLERS["prometheus-operator"].source()
    names = _CRD.findall((source / "bundle.yaml").read_text())
    after = ",".join(f"apiextensions.k8s.io/CustomResourceDefinition/{name}" for name in names)
    annotations = {"config.kubernetes.io/depends-on": after}
    (folder / "operator.yaml").write_text(tools.kustomized(source, metadata={"annotations": annotations}))
