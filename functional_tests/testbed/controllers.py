"""The controllers of the sample management cluster: which program is which image in the released manifests."""

from dataclasses import dataclass
from pathlib import Path

from . import build

CERT_MANAGER = "github.com/cert-manager/cert-manager"
CLUSTER_API = "sigs.k8s.io/cluster-api"


@dataclass(frozen=True)
class Controller:
    """A program of one of the Go module families, and the image as whose entry point its project releases it."""

    family: str
    module: str
    binary: str
    repository: str
    entrypoint: str = "/manager"

    def source(self) -> Path:
        return build.module_dir(self.family, self.module)

    def version(self) -> str:
        return self.source().name.rpartition("@")[2]

    def image(self) -> str:
        return f"{self.repository}:{self.version()}"

    def program(self) -> Path:
        return build.build(self.family) / self.binary


def _cert_manager(name: str) -> Controller:
    binary = f"cert-manager-{name}"
    return Controller("cert-manager", CERT_MANAGER, binary, f"quay.io/jetstack/{binary}", f"/app/cmd/{name}/{name}")


def _cluster_api(binary: str) -> Controller:
    return Controller("cluster-api", CLUSTER_API, binary, f"registry.k8s.io/cluster-api/{binary}")


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
    )
}
