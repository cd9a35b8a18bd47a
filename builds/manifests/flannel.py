# SPDX-License-Identifier: Apache-2.0
"""Flannel, from its Helm chart, in the ConfigMap of a ClusterResourceSet: one for each workload cluster, by its name."""

from pathlib import Path

import yaml

from .. import controllers
from . import tools

FAMILIES = ("flannel", tools.FAMILY)

NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: kube-flannel
  labels:
    pod-security.kubernetes.io/enforce: privileged
"""


def manifests() -> str:
    """With the Namespace."""
    chart = controllers.CONTROLLERS["flanneld"].source() / "chart" / "kube-flannel"
    return NAMESPACE + tools.helm_template(chart, "kube-flannel", "flannel.enableNFTables=true")


def render(folder: Path) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "${CLUSTER_NAME}-flannel"},
        "data": {"flannel.yaml": manifests()},
    }
    (folder / "flannel.yaml").write_text(yaml.safe_dump(config_map, sort_keys=False))
