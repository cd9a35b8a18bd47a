# SPDX-License-Identifier: Apache-2.0
"""kubespray itself in place of its stand-in: a checkout, its Ansible, its settings for the bed, and a server of files.

Nothing is downloaded from elsewhere: the programs are those that the bed has built, and the nodes have containerd, the images
of containers and Debian's packages from the start.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..testbed import network, rootfs, virtualenv
from ..testbed.openstack import kubernetes_node
from ..testbed.release import NEWEST
from .ansible_server import Kubespray

CHECKOUT = os.environ.get("KUBESPRAY", "")
"""The folder of one, whose version knows the bed's newest Kubernetes."""
_PROGRAMS = ("kubeadm", "kubelet", "kubectl")
_UNUSED = ("containerd", "nerdctl", "crictl", "runc")
"""kubespray downloads them, but does not install them, because the nodes have a container engine."""
_CHECKSUMS = {"containerd": "containerd_checksum", "nerdctl": "nerdctl_archive_checksum"}
"""Other names of variables than NAME_binary_checksum."""
_STUB = Path("/bin/true")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_SETTINGS = {
    "container_manager": "containerd",
    "deploy_container_engine": False,
    "download_container": False,
    "etcd_deployment_type": "kubeadm",
    # The nodes have plugins and configuration of the network of Pods, and no name server.
    "kube_network_plugin": "cni",
    "enable_nodelocaldns": False,
    "enable_dns_autoscaler": False,
    "resolvconf_mode": "none",
    "upstream_dns_servers": [str(network.HOST)],
    # The machines share the host's kernel: without modules, with control groups of version 1, and its swap is not theirs.
    "kube_proxy_mode": "nftables",
    "kube_proxy_conntrack_max_per_core": 0,
    "kube_proxy_conntrack_min": 0,
    "containerd_use_systemd_cgroup": False,
    "kubelet_fail_cgroup_v1": False,
    "kubelet_fail_swap_on": False,
    "kubelet_swap_behavior": "NoSwap",
    "kubelet_protect_kernel_defaults": False,
    "kubelet_custom_flags": [f"--config-dir={Path(kubernetes_node.HOST_SETTINGS).parent}"],
    "kubeadm_ignore_preflight_errors": ["all"],
}
_SKIPPED = ["kube-proxy"]
"""The tag of the tasks that load kernel modules; kubeadm deploys kube-proxy."""


@contextmanager
def served(folder: Path) -> Iterator[Kubespray]:
    """The checkout, while an empty folder has the files that it downloads, and is served."""
    checkout = Path(CHECKOUT).resolve()
    requirements = checkout / "requirements.txt"
    assert CHECKOUT and requirements.is_file(), f"KUBESPRAY is `{CHECKOUT}`, which is no folder of a checkout of kubespray"
    repository, _, tag = next(name for name in NEWEST.images() if "/etcd:" in name).rpartition(":")
    etcd = tag.partition("-")[0]
    settings = _SETTINGS | {"etcd_image_repo": repository, "etcd_image_tag": tag, "etcd_version": etcd}
    files = _files(folder, etcd)
    with _server(folder) as url:
        for name, file in files.items():
            checksum = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
            settings |= {f"{name}_download_url": f"{url}/{name}", _CHECKSUMS.get(name, f"{name}_binary_checksum"): checksum}
        settings["etcd_digest_checksum"] = settings["etcd_binary_checksum"]
        modules = virtualenv.of_machines("ansible-of-kubespray", requirements)
        yield Kubespray(checkout, modules, {"settings": settings, "skip_tags": _SKIPPED})


def _files(folder: Path, etcd: str) -> dict[str, Path]:
    """Put into the folder. Their names are those of kubespray's variables. etcd: the version."""
    programs = {source.name: source for source in NEWEST.programs()}
    for name in _PROGRAMS:
        (folder / name).symlink_to(programs[name])
    plugins = rootfs.root_folder() / "usr" / "lib" / "cni"
    _archive(folder / "cni", {plugin.name: plugin for plugin in plugins.iterdir()})
    # Nothing calls these while each master keeps its place; the members of etcd are containers.
    inside = f"etcd-v{etcd}-linux-{_ARCHITECTURES[os.uname().machine]}"
    _archive(folder / "etcd", {f"{inside}/{name}": _STUB for name in ("etcdctl", "etcdutl")})
    for name in _UNUSED:
        _archive(folder / name, {name: _STUB})
    return {path.name: path for path in folder.iterdir()}


def _archive(path: Path, members: Mapping[str, Path]) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name, source in members.items():
            tar.add(source.resolve(), name)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """Its URL, which the machines reach."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer((str(network.HOST), 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{network.HOST}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
