# SPDX-License-Identifier: Apache-2.0
"""A ClusterClass with its templates, as Cluster API releases it for its in-memory infrastructure.

Every object gets the name of the cluster before its own, so that one Namespace holds several clusters of a VNF package,
and the start-up time of the simulated machines becomes a parameter.
"""

from pathlib import Path

from .. import controllers

FAMILIES = ("cluster-api",)

TEMPLATE = "infrastructure/docker/templates/clusterclass-in-memory.yaml"
PARAMETERS = {
    "name: in-memory": "name: ${CLUSTER_NAME}-in-memory",
    'startupDuration: "10s"': "startupDuration: ${MACHINE_STARTUP}",
}


def render(folder: Path) -> None:
    text = (controllers.CONTROLLERS["capd-manager"].source() / TEMPLATE).read_text()
    for given, parameter in PARAMETERS.items():
        text = text.replace(given, parameter)
    (folder / "cluster-class.yaml").write_text(text)
