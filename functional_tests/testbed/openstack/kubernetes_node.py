# SPDX-License-Identifier: Apache-2.0
"""The image of a Kubernetes node: Debian with kubeadm, kubelet and containerd, and the container images of one version.

What depends on the host, and not on the cluster, is in the image, so that the user data is the same as on any cloud.
"""

from .. import config, images, kubernetes, rootfs
from .server import Image

NAME = f"kubernetes-{kubernetes.VERSION}"
_VOLUMES = ("/var/lib/containerd", "/var/lib/etcd", "/var/lib/kubelet")


def image(packages: tuple[str, ...]) -> Image:
    released = kubernetes.released_images()
    pause = next(name for name in released if "/pause:" in name)
    archives = " ".join(f"/opt/images/{archive.name}" for archive in released.values())
    return Image(
        root=str(rootfs.root_folder(packages)),
        files={
            "/etc/containerd/config.toml": config.render("containerd.toml", pause=pause),
            "/etc/kubernetes/kubelet.conf.d/10-host.conf": config.render("openstack/kubelet.conf"),
            "/etc/systemd/system/kubelet.service.d/10-host.conf": config.render("openstack/kubelet_service.conf"),
        },
        services={
            "containerd": config.render("containerd.service"),
            "kubelet": config.render("kubelet.service"),
            "images": config.render("openstack/images.service", archives=archives),
        },
        read_only={str(source): target for source, target in kubernetes.programs().items()}
        | {str(images.folder()): "/opt/images"},
        volumes=_VOLUMES,
    )
