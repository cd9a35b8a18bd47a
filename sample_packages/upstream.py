# SPDX-License-Identifier: Apache-2.0
"""Which projects' released manifests a sample holds: rendered when its package is made, never kept here."""

import shutil
from pathlib import Path
from types import ModuleType

from builds.manifests import cert_manager, cluster_api, cluster_class, gpu_operator, istio, prometheus_operator, rendered

PROJECTS: dict[str, tuple[ModuleType, ...]] = {
    "cert_manager": (cert_manager,),
    "cluster_api_management": (cert_manager, cluster_api),
    "cluster_api_workload_topology": (cluster_class,),
    "gpu_operator": (gpu_operator,),
    "istio": (istio,),
    "prometheus_operator": (prometheus_operator,),
}
"""Sample -> the projects whose manifests it holds."""


def add(sample: str, folder: Path) -> None:
    """Put what projects release for a sample among its manifests."""
    for project in PROJECTS.get(sample, ()):
        shutil.copytree(rendered(project), folder, dirs_exist_ok=True)


def families(sample: str) -> list[str]:
    """The Go module families that the sample's manifests and controllers come from."""
    return [family for project in PROJECTS.get(sample, ()) for family in project.FAMILIES]
