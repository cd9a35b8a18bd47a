# SPDX-License-Identifier: Apache-2.0
"""A one-node Kubernetes that kubeadm makes in a machine, with all its parts real, and its images loaded, not pulled.

`up` makes it; `Kubernetes(ledger)` is the one that runs, also for a test that has not started it. A test that needs another
cluster makes one of another node with a ledger of its own.
"""

import ssl
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

from builds import commands
from builds.programs import build
from builds.progress import step

from . import config, images, network, rootfs
from .ledger import Ledger
from .machine import Machine
from .processes import until
from .release import NEWEST, Release

# Of Debian, on the host; the programs of the node itself are built.
PACKAGES = (
    *("mmdebstrap", "debian-archive-keyring", "systemd-container", "iproute2", "util-linux", "mount"),
    "busybox-static",
)

NODE = "node1"
ADDRESS = str(network.NETWORK[10])
PODS, SERVICES = "10.244.0.0/24", "10.96.0.0/16"
# Of the API server: its policy, and what it has logged; in the machine.
AUDIT = "/etc/kubernetes/audit"
# What stays up and answers HTTP, under the names that tests and samples use, with a shell for their Jobs.
SHELL = Path("/bin/busybox")
STAND_INS = (
    "bed.test/web:1",
    "nginx",
    "nginx:alpine",
    "tomcat",
    "cirros",
    "k8s.gcr.io/nginx-slim:0.8",
    "quay.io/prometheus/prometheus:v3.5.0",
)


class Kubernetes:
    """The bed's Kubernetes. `kubeconfig` is the path of a file with the permissions of cluster-admin."""

    def __init__(self, ledger: Ledger, node: str = NODE, address: str = ADDRESS) -> None:
        self._address = address
        self.machine = Machine(ledger, node)
        self.kubeconfig = ledger.home / "kubeconfig"
        self.url = f"https://{address}:6443"

    def kubectl(self, *arguments: str | Path) -> str:
        """The stdout of kubectl."""
        return commands.run([build("kubernetes") / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments])

    def load_image(self, name: str, entrypoint: str, files: Mapping[str, Path], user: str = "") -> None:
        """Give the node an image; all as `images.archive` has it."""
        self._load([images.archive([name], entrypoint, files, user)])

    @property
    def audit_log(self) -> Path:
        """One event of audit.k8s.io/v1 a line, as `templates/audit_policy.yaml` selects them."""
        return self._audit / "log"

    @property
    def crashes(self) -> list[datetime]:
        """When `restart` has killed the API server or etcd."""
        return [datetime.fromisoformat(line) for line in self._crashes.read_text().split()] if self._crashes.exists() else []

    @property
    def _crashes(self) -> Path:
        return self._audit / "crashes"

    @property
    def _audit(self) -> Path:
        return self.machine.root / AUDIT.lstrip("/")

    def is_ready(self) -> bool:
        """Does the API server say that it is ready?"""
        context = ssl.create_default_context(cadata=self.machine.read("/etc/kubernetes/pki/ca.crt"))
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2, context=context) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def restart(self, program: str) -> None:
        """Kill the API server, or etcd, as a crash would, and wait until a new one runs and all is ready.

        TimeoutError after 120 s: the more often one has died of late, the longer the kubelet lets it be.
        """

        def processes() -> str:
            return self.machine.run("sh", "-c", f"pgrep -x {program} || true")

        killed = processes()
        with self._crashes.open("a") as file:
            file.write(f"{datetime.now(timezone.utc).isoformat()}\n")
        self.machine.run("pkill", "-KILL", "-x", program)
        if not until(lambda: processes() not in ("", killed) and self.is_ready(), 120, pause=0.2):
            raise TimeoutError(f"the API server is not ready 120 s after {program} was killed")

    def await_controllers(self) -> None:
        """After a restart: until the controllers, the scheduler and the kubelet act again; RuntimeError after 150 s.

        The informers of each try again by themselves, and the more often the API server has died of late, the later: after up
        to a minute (client-go's Reflector).
        """
        try:
            self.kubectl("create", "deployment", "probe", f"--image={STAND_INS[0]}")
            self.kubectl("rollout", "status", "deployment/probe", "--timeout=150s")
        finally:
            self.kubectl("delete", "deployment", "probe", "--ignore-not-found", "--cascade=foreground", "--timeout=150s")

    def renew_certificate(self) -> None:
        """Has the API server serve with a new certificate of the same authority, as operators do once a year."""
        self.machine.run("kubeadm", "certs", "renew", "apiserver")
        self.restart("kube-apiserver")

    def certificate(self) -> str:
        """What the API server serves with, as PEM."""
        return ssl.get_server_certificate((self._address, 6443))

    def _load(self, archives: Iterable[Path]) -> None:
        """Give the node the images of `images.archive`."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._load_archive, archives))

    def _load_archive(self, archive: Path) -> None:
        self.machine.run("ctr", "--namespace=k8s.io", "images", "import", f"/opt/images/{archive.name}")


def up(ledger: Ledger, node: str = NODE, address: str = ADDRESS, release: Release = NEWEST) -> Kubernetes:
    """Make and start it; returns when the node is ready, and Services and DNS work in pods.

    `address` is one of `network.NETWORK`.
    """
    rootfs.root_folder()
    for family in release.families:
        build(family)
    released = release.images()
    kubernetes = Kubernetes(ledger, node, address)
    with step("Booting a machine"):
        machine = Machine.create(ledger, node, address)
        _configure(machine, address, release, pause=next(name for name in released if "/pause:" in name))
        volumes = ["/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet"]
        machine.boot(read_only=release.programs() | {images.folder(): "/opt/images"}, volumes=volumes)
    with step("Loading the images of Kubernetes"):
        kubernetes._load([*released.values(), stand_ins()])
    with step("Setting up Kubernetes with kubeadm"):
        machine.run("kubeadm", "init", "--config=/etc/kubernetes/kubeadm.yaml")
        ledger.file(kubernetes.kubeconfig, machine.read("/etc/kubernetes/admin.conf"))
        kubernetes.kubectl("apply", "--server-side", f"--filename={present_images(ledger, release, node)}")
    with step("Waiting for the node and its DNS"):
        kubernetes.kubectl("wait", f"node/{node}", "--for=condition=Ready", "--timeout=240s")
        for workload in ("daemonset/kube-proxy", "deployment/coredns"):
            kubernetes.kubectl("--namespace=kube-system", "rollout", "status", workload, "--timeout=240s")
    return kubernetes


def present_images(ledger: Ledger, release: Release, cluster: str) -> Path:
    """The manifests by which a cluster pulls no image."""
    return ledger.file(ledger.home / f"{cluster}-images.yaml", config.render("present_images.yaml", version=release.policies))


def stand_ins() -> Path:
    """The image of STAND_INS."""
    return images.archive(STAND_INS, "/web", {"/web": build("stand-ins") / "web", "/bin/sh": SHELL})


def _configure(machine: Machine, address: str, release: Release, pause: str) -> None:
    # Nothing answers there, which a look-up learns at once; CoreDNS does not start without a name server.
    machine.write("/etc/resolv.conf", f"nameserver {address}\n")
    machine.write("/etc/containerd/config.toml", config.render("containerd.toml", pause=pause))
    machine.write("/etc/cni/net.d/10-pods.conflist", config.render("pods.conflist", pods=PODS))
    machine.write(f"{AUDIT}/policy.yaml", config.render("audit_policy.yaml"))
    values = {"address": address, "name": machine.name, "pods": PODS, "services": SERVICES, "audit": AUDIT}
    kubeadm = config.render("kubeadm.yaml", **values, version=release.version, policies=release.policies)
    machine.write("/etc/kubernetes/kubeadm.yaml", kubeadm)
    machine.write("/etc/kubernetes/patches/corednsdeployment.yaml", config.render("corednsdeployment.yaml"))
    machine.service("containerd", config.render("containerd.service"))
    machine.service("kubelet", config.render("kubelet.service"))
