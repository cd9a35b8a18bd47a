"""The controllers of the sample management cluster: which program is which image in the released manifests."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import build
from .kubernetes import Kubernetes
from .progress import step

CERT_MANAGER = "github.com/cert-manager/cert-manager"
CLUSTER_API = "sigs.k8s.io/cluster-api"

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


def load(kubernetes: Kubernetes) -> None:
    """Give the node the images of all controllers, built first if need be."""
    for family in dict.fromkeys(controller.family for controller in CONTROLLERS.values()):
        build.build(family)
    with step("Loading the images of the controllers"), ThreadPoolExecutor() as pool:
        list(pool.map(partial(_load, kubernetes), CONTROLLERS.values()))


def _load(kubernetes: Kubernetes, controller: Controller) -> None:
    kubernetes.load_image(controller.image(), controller.program(), controller.entrypoint, USER)
