"""The manifests of samples that their projects release: rendered when a package is made, never kept here.

Each project is a module with FAMILIES, the Go module families of the test bed that its sources come from, and
`render(folder)`, which writes its manifests into an existing folder.
"""

import shutil
import tempfile
from pathlib import Path
from types import ModuleType

from functional_tests.testbed import build, paths

from . import cert_manager, cluster_api, gpu_operator, istio, prometheus_operator, tools

PROJECTS: dict[str, tuple[ModuleType, ...]] = {
    "cert_manager": (cert_manager,),
    "cluster_api_management": (cert_manager, cluster_api),
    "gpu_operator": (gpu_operator,),
    "istio": (istio,),
    "prometheus_operator": (prometheus_operator,),
}
"""Sample -> the projects whose manifests it holds."""


def add(sample: str, folder: Path) -> None:
    """Put what projects release for a sample among its manifests."""
    for project in PROJECTS.get(sample, ()):
        shutil.copytree(_rendered(project), folder, dirs_exist_ok=True)


def _rendered(project: ModuleType) -> Path:
    """The manifests of one project, from the cache if nothing that decides them has changed."""
    sources = [Path(str(module.__file__)).read_bytes() for module in (project, tools)]
    folder = paths.cache() / "manifests" / paths.digest(*sources, *(build.key(name).encode() for name in project.FAMILIES))
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            unfinished = Path(work, "manifests")
            unfinished.mkdir()
            project.render(unfinished)
            unfinished.rename(folder)
    return folder
