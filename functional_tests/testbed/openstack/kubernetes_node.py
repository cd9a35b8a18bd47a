# SPDX-License-Identifier: Apache-2.0
"""The images of Kubernetes nodes: Debian with kubeadm, kubelet and containerd, and the container images of one version.

What depends on the host, and not on the cluster, is in the image, so that the user data is the same as on any cloud.
"""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from builds.controllers import CONTROLLERS
from builds.programs import build

from .. import config, images, kubernetes, rootfs
from ..release import FORMER, NEWEST, PROTOCOLS, Release
from . import container_store
from .server import Image

RELEASES = (NEWEST, FORMER)
INSIDE = ("flannel", "cloud-provider-openstack")
"""The programs of which a cluster may have containers."""
FAMILIES = tuple({family: None for release in RELEASES for family in (*release.families, *INSIDE)})
PLUGIN = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel2"
"""The image that Flannel's chart names."""
HOST_SETTINGS = "/etc/kubernetes/kubelet.conf.d/10-host.conf"
"""Of kubelet, which finds them by its option `--config-dir`."""
_VOLUMES = (container_store.FOLDER, "/var/lib/etcd", "/var/lib/kubelet")
# What kubeadm runs as: the machine is a part of the host's, which its checks do not know.
_KUBEADM = "/usr/libexec/kubeadm"
_MOVED = {"kubeadm": _KUBEADM}


def name(release: Release) -> str:
    return f"kubernetes-{release.version}"


def image(release: Release, packages: tuple[str, ...], more: Iterable[Path] = ()) -> Image:
    """`packages`: of Debian, beside those of every machine. `more`: archives of container images, such as `of_a_cloud`."""
    released = release.images()
    pause = next(one for one in released if "/pause:" in one)
    store = container_store.loaded((*released.values(), kubernetes.stand_ins(), *more))
    programs = {str(source): _MOVED.get(source.name, target) for source, target in release.programs().items()}
    return Image(
        root=str(rootfs.root_folder(packages)),
        files={
            "/etc/containerd/config.toml": config.render("containerd.toml", pause=pause),
            HOST_SETTINGS: config.render("openstack/kubelet.conf"),
            "/etc/systemd/system/kubelet.service.d/10-host.conf": config.render("openstack/kubelet_service.conf"),
            "/etc/kubernetes/kube-proxy.yaml": config.render("openstack/kube_proxy.yaml"),
        },
        scripts={"/usr/local/bin/kubeadm": config.render("openstack/kubeadm.sh", kubeadm=_KUBEADM)},
        services={
            "containerd": config.render("containerd.service"),
            "kubelet": config.render("kubelet.service"),
            "network-plugins": config.render("openstack/network_plugins.service"),
        },
        read_only=programs,
        volumes=_VOLUMES,
        containers=str(store),
    )


def without_programs(image: Image) -> Image:
    """The same for a tool that installs kubeadm, kubelet and their settings itself, without a mirror of Debian's packages."""
    kept = ("/etc/containerd/config.toml", HOST_SETTINGS)
    return dataclasses.replace(
        image,
        files={path: image.files[path] for path in kept} | {"/etc/apt/sources.list": ""},
        scripts={},
        services={name: image.services[name] for name in ("containerd", "network-plugins")},
        read_only={},
    )


def of_a_cloud() -> list[Path]:
    """The images of what a cluster on servers of the cloud may have."""
    return [*_flannel(), _manager()]


def _flannel() -> list[Path]:
    """The images of Flannel, as its manifests name them; its CNI plugin is a stand-in."""
    daemon = CONTROLLERS["flanneld"]
    files = daemon.files() | {PROTOCOLS: rootfs.file(PROTOCOLS)}
    for program in ("nft", "iptables", "ip6tables"):  # the last two to remove what an older one has left
        files |= rootfs.with_libraries(f"/usr/sbin/{program}")
    plugin = {"/flannel": build("stand-ins") / "flannel", "/bin/cp": kubernetes.SHELL}
    return [images.archive([daemon.image()], daemon.entrypoint, files), images.archive([PLUGIN], "/flannel", plugin)]


def _manager() -> Path:
    """The image of the cloud controller manager; the manifests name the program."""
    manager = CONTROLLERS["openstack-cloud-controller-manager"]
    return images.archive([manager.image()], "", manager.files())
