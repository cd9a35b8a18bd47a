# SPDX-License-Identifier: Apache-2.0
"""cert-manager, from its Helm chart, rendered as the release process of the project does it."""

import shutil
import tempfile
from pathlib import Path

import yaml

from .. import controllers
from . import tools

FAMILIES = ("cert-manager", tools.FAMILY)

SETTINGS = (
    "installCRDs=true",
    "creator=static",
    "startupapicheck.enabled=false",
    # The lease's own default, kube-system, would keep it after terminate, and a new cert-manager waits 60 s for it.
    "global.leaderElection.namespace=cert-manager",
    # Else the keys that it has made stay in the cluster after their Certificates.
    "extraArgs={--enable-certificate-owner-ref=true}",
)


def render(folder: Path) -> None:
    """The chart in the module is the source of the released one: its metadata and its CRDs are filled in first."""
    controller = controllers.CONTROLLERS["cert-manager-controller"]
    deploy = controller.source() / "deploy"
    with tempfile.TemporaryDirectory() as work:
        chart = Path(work, "cert-manager")
        # Not copytree's own copy2: the files of a module are read-only.
        shutil.copytree(deploy / "charts" / "cert-manager", chart, copy_function=shutil.copyfile)
        for directory in (chart, chart / "templates"):
            directory.chmod(0o755)
        metadata = yaml.safe_load((chart / "Chart.template.yaml").read_text())
        metadata |= {"version": controller.version(), "appVersion": controller.version(), "annotations": {}}
        (chart / "Chart.yaml").write_text(yaml.safe_dump(metadata))
        crds = "\n---\n".join(path.read_text() for path in sorted((deploy / "crds").glob("crd-*.yaml")))
        (chart / "templates" / "crds.yaml").write_text(f"{{{{- if .Values.installCRDs }}}}\n{crds}\n{{{{- end }}}}\n")
        manifests = tools.helm_template(chart, "cert-manager", *SETTINGS)
    namespace = (deploy / "manifests" / "namespace.yaml").read_text()
    (folder / "cert-manager.yaml").write_text(namespace + manifests)
