# SPDX-License-Identifier: Apache-2.0
"""The controllers of the sample packages: which program is which image in the released manifests."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import programs

CERT_MANAGER = "github.com/cert-manager/cert-manager"
CLUSTER_API = "sigs.k8s.io/cluster-api"
CLUSTER_API_OPENSTACK = "sigs.k8s.io/cluster-api-provider-openstack"
OPENSTACK_RESOURCES = "github.com/k-orc/openstack-resource-controller/v2"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator"

USER = "65532"
"""The user of the released images; manifests refuse root with `runAsNonRoot`."""


@dataclass(frozen=True)
class Controller:
    """A program of one of the Go module families, and the image as whose entry point its project releases it."""

    family: str
    module: str
    binary: str
    repository: str
    entrypoint: str = "/manager"
    assets: Callable[[Path], dict[str, Path]] = lambda source: {}
    """The module's folder -> what else the image holds: path in the image -> file of the host."""

    def source(self) -> Path:
        return programs.module_dir(self.family, self.module)

    def version(self) -> str:
        return self.source().name.rpartition("@")[2]

    def image(self) -> str:
        return f"{self.repository}:{self.version()}"

    def files(self) -> dict[str, Path]:
        """What the image holds: path in the image -> file of the host."""
        return {self.entrypoint: programs.build(self.family) / self.binary, **self.assets(self.source())}


def _cert_manager(name: str) -> Controller:
    binary = f"cert-manager-{name}"
    return Controller("cert-manager", CERT_MANAGER, binary, f"quay.io/jetstack/{binary}", f"/app/cmd/{name}/{name}")


def _cluster_api(binary: str) -> Controller:
    return Controller("cluster-api", CLUSTER_API, binary, f"registry.k8s.io/cluster-api/{binary}")


def _prometheus(name: str, entrypoint: str) -> Controller:
    return Controller(
        "prometheus-operator", PROMETHEUS_OPERATOR, name, f"quay.io/prometheus-operator/{name}", f"/bin/{entrypoint}"
    )


def _gpu_operator_assets(source: Path) -> dict[str, Path]:
    """What it applies; not its RuntimeClass of node.k8s.io/v1beta1, which Kubernetes has not had since 1.25."""
    folder = source / "assets"
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "0200_runtime_class.yaml")
    return {f"/opt/gpu-operator/{path.relative_to(folder)}": path for path in sorted(files)}


def _flannel_assets(source: Path) -> dict[str, Path]:
    return {"/opt/bin/install-conf": programs.build("flannel") / "install-conf"}


CONTROLLERS = {
    controller.binary: controller
    for controller in (
        _cert_manager("controller"),
        _cert_manager("webhook"),
        _cert_manager("cainjector"),
        _cluster_api("cluster-api-controller"),
        _cluster_api("kubeadm-bootstrap-controller"),
        _cluster_api("kubeadm-control-plane-controller"),
        Controller("cluster-api", f"{CLUSTER_API}/test", "capd-manager", "gcr.io/k8s-staging-cluster-api/capd-manager"),
        Controller(
            "cluster-api-openstack",
            CLUSTER_API_OPENSTACK,
            "capi-openstack-controller",
            "registry.k8s.io/capi-openstack/capi-openstack-controller",
        ),
        Controller(
            "cluster-api-openstack",
            OPENSTACK_RESOURCES,
            "openstack-resource-controller",
            "quay.io/orc/openstack-resource-controller",
        ),
        Controller(
            "cloud-provider-openstack",
            "k8s.io/cloud-provider-openstack",
            "openstack-cloud-controller-manager",
            "registry.k8s.io/provider-os/openstack-cloud-controller-manager",
            "/bin/openstack-cloud-controller-manager",
        ),
        Controller(
            "flannel",
            "github.com/flannel-io/flannel",
            "flanneld",
            "ghcr.io/flannel-io/flannel",
            "/opt/bin/flanneld",
            assets=_flannel_assets,
        ),
        _prometheus("prometheus-operator", "operator"),
        _prometheus("prometheus-config-reloader", "prometheus-config-reloader"),
        Controller(
            "gpu-operator",
            "github.com/NVIDIA/gpu-operator",
            "gpu-operator",
            "nvcr.io/nvidia/gpu-operator",
            "/usr/bin/gpu-operator",
            assets=_gpu_operator_assets,
        ),
    )
}
