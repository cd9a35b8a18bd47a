# SPDX-License-Identifier: Apache-2.0
"""Which projects' released manifests a sample holds: rendered when its package is made, never kept here."""

import shutil
from pathlib import Path
from types import ModuleType

from builds.manifests import (
    cert_manager,
    cloud_provider_openstack,
    cluster_api,
    cluster_class,
    flannel,
    flannel_alone,
    gpu_operator,
    istio,
    prometheus_operator,
    rendered,
)
from k8s_cr_driver.package import tosca_meta

from . import infrastructure

PROJECTS: dict[str, tuple[ModuleType, ...]] = {
    "cert_manager": (cert_manager,),
    "cloud_provider_openstack": (cloud_provider_openstack,),
    "cluster_api_management": (cert_manager, cluster_api),
    "cluster_api_workload_openstack": (flannel,),
    "cluster_api_workload_openstack_topology": (flannel,),
    "cluster_api_workload_topology": (cluster_class,),
    "gpu_operator": (gpu_operator,),
    "ha_masters": (flannel_alone,),
    "istio": (istio,),
    "persistent_volumes": (flannel_alone,),
    "prometheus_operator": (prometheus_operator,),
}
"""Sample -> the projects whose manifests it holds."""


def add(sample: str, package: Path, provider: str = infrastructure.DEFAULT) -> None:
    """Put what projects release for a sample among the manifests of its package, a folder."""
    for project in PROJECTS.get(sample, ()):
        shutil.copytree(rendered(project), package / tosca_meta.MANIFESTS, dirs_exist_ok=True)
    if sample == infrastructure.SAMPLE:
        infrastructure.add(package, provider)


def families(sample: str, provider: str = infrastructure.DEFAULT) -> list[str]:
    """The Go module families that the sample's manifests and controllers come from."""
    found = [family for project in PROJECTS.get(sample, ()) for family in project.FAMILIES]
    return [*found, *(infrastructure.families(provider) if sample == infrastructure.SAMPLE else ())]
