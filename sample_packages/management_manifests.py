"""The manifests of a Cluster API management cluster, as their projects release them.

cert-manager comes from its Helm chart, Cluster API from its kustomizations, each rendered as the release process of its
project does it (released image, pull policy IfNotPresent), with the variables filled in that clusterctl fills in.
Nothing else is changed. The sources are the Go modules that the test bed builds the controllers from.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

from functional_tests.testbed import build, controllers

CONFIGS = {
    "cluster-api.yaml": ("cluster-api-controller", "core/config/default"),
    "kubeadm-bootstrap.yaml": ("kubeadm-bootstrap-controller", "bootstrap/kubeadm/config/default"),
    "kubeadm-control-plane.yaml": ("kubeadm-control-plane-controller", "controlplane/kubeadm/config/default"),
    "in-memory-infrastructure.yaml": ("capd-manager", "infrastructure/docker/config/default"),
}
"""File -> the controller that it installs, and the kustomization in that controller's module."""

FAMILIES = ("cert-manager", "cluster-api", "rendering")
"""The Go module families that the manifests depend on."""

VARIABLES = {"CLUSTER_TOPOLOGY": "true"}
_VARIABLE = re.compile(r"\$\{(\w+):=([^}]*)\}")


def render(folder: Path) -> None:
    """Write the manifests into `folder`: one file for cert-manager and one for each of Cluster API's controllers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cert-manager.yaml").write_text(_cert_manager())
    for file, (name, config) in CONFIGS.items():
        (folder / file).write_text(_fill(_kustomize(controllers.CONTROLLERS[name], config)))


def _cert_manager() -> str:
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
        # The lease's own default, kube-system, would keep it after terminate, and a new cert-manager waits 60 s for it.
        lease = "global.leaderElection.namespace=cert-manager"
        settings = ("installCRDs=true", "creator=static", "startupapicheck.enabled=false", lease)
        options = [word for setting in settings for word in ("--set", setting)]
        manifests = _run("helm", "template", "cert-manager", str(chart), "--namespace", "cert-manager", *options)
    return (deploy / "manifests" / "namespace.yaml").read_text() + manifests


def _kustomize(controller: controllers.Controller, config: str) -> str:
    container = {"name": "manager", "image": controller.image(), "imagePullPolicy": "IfNotPresent"}
    patch = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ignored"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    with tempfile.TemporaryDirectory() as work:
        overlay = {
            "resources": [os.path.relpath(controller.source() / config, Path(work).resolve())],
            "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(patch)}],
        }
        Path(work, "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        return _run("kustomize", "build", work)


def _fill(manifests: str) -> str:
    return _VARIABLE.sub(lambda found: VARIABLES.get(found[1], found[2]), manifests)


def _run(tool: str, *arguments: str) -> str:
    done = subprocess.run([build.build("rendering") / tool, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{tool} {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
