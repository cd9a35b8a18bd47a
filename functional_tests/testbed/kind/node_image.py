# SPDX-License-Identifier: Apache-2.0
"""The image of a node as kind's own images are: its files over the machines' root folder, with programs and images.

The root folder is made once and cached by the hash of its recipe; Docker gets it anew with every daemon.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from builds import cache, commands, programs
from builds.progress import step

from .. import config, rootfs
from ..kubernetes import stand_ins
from ..processes import until
from ..release import NEWEST
from .docker import Docker

NAME = "bed.test/node:1"
FAMILIES = ("kind", *NEWEST.families)
_MODULE = "sigs.k8s.io/kind"
# As its Dockerfile has it: these are run, the others are read.
_RUN = ("usr/local/bin/entrypoint", "usr/local/bin/clean-install", "kind/bin")
_UNWANTED = (
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
)
_UNITS = ("kubelet", "containerd", "undo-mount-hacks")


def give(docker: Docker) -> None:
    """Let Docker have the image, under NAME."""
    folder = _root_folder()
    with step("Loading the image of kind's nodes"):
        changes = ['ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]', "ENV container=docker"]
        tar = ["tar", f"--directory={folder}", "--numeric-owner", "--xattrs", "--one-file-system", "--create", "."]
        argv = ["docker", "import", *(f"--change={change}" for change in changes), "-", NAME]
        with subprocess.Popen(tar, stdout=subprocess.PIPE) as packing:
            subprocess.run(argv, env=docker.environment, stdin=packing.stdout, stdout=subprocess.DEVNULL, check=True)


def _root_folder() -> Path:
    for family in FAMILIES:
        programs.build(family)
    archives = {**NEWEST.images(), "stand-ins": stand_ins()}
    recipe = [rootfs.root_folder().name, *map(programs.key, FAMILIES), *(path.name for path in archives.values())]
    recipe.append(Path(__file__).read_text())
    target = cache.folder() / "kind" / cache.digest(*map(str.encode, recipe))
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            shutil.rmtree(target.parent / "unfinished", ignore_errors=True)
            with step("Making the root folder of kind's nodes"):
                _make(target.parent / "unfinished", archives)
            (target.parent / "unfinished").rename(target)
    return target


def _make(root: Path, archives: dict[str, Path]) -> None:
    commands.run(["cp", "--archive", rootfs.root_folder(), root])
    _copy(programs.module_dir("kind", _MODULE) / "images/base/files", root)
    for pattern in _UNWANTED:
        for path in root.glob(pattern):
            path.unlink()
    for unit in _UNITS:
        (root / f"etc/systemd/system/multi-user.target.wants/{unit}.service").symlink_to(f"/etc/systemd/system/{unit}.service")
    with (root / "etc/systemd/journald.conf").open("a") as file:
        file.write("ReadKMsg=no\n")
    for folder in ("etc/kubernetes/manifests", "etc/cni/net.d", "opt/cni", "kind/manifests"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "opt/cni/bin").symlink_to("/usr/lib/cni")
    (root / "usr/local/bin/containerd").symlink_to("/usr/bin/containerd")
    for program, path in NEWEST.programs().items():
        shutil.copy(program, root / path.lstrip("/"))
    (root / "kind/version").write_text(NEWEST.version)
    pause = next(name for name in archives if "/pause:" in name)
    _configure_containerd(root, pause)
    with _containerd(root) as ctr:
        for archive in archives.values():
            commands.run([*ctr, "images", "import", "--snapshotter=overlayfs", archive])


def _copy(files: Path, root: Path) -> None:
    for file in (path for path in files.rglob("*") if path.is_file()):
        name = file.relative_to(files)
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        target.chmod(0o755 if str(name).startswith(_RUN) else 0o644)


def _configure_containerd(root: Path, pause: str) -> None:
    """As kind's Dockerfile does, with the image that kubeadm names, and for hosts that do not let an OOM score be lowered."""
    spec = json.loads(commands.run(["chroot", root, "ctr", "oci", "spec"]))
    spec.setdefault("hooks", {}).setdefault("createContainer", []).append({"path": "/kind/bin/mount-product-files.sh"})
    spec["process"].pop("rlimits", None)
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec))
    file = root / "etc/containerd/config.toml"
    text = file.read_text().replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true")
    file.write_text(re.sub(r"sandbox_image = .*", f'sandbox_image = "{pause}"', text))


@contextmanager
def _containerd(root: Path) -> Iterator[list[str | Path]]:
    """The host's containerd at work on the store of the root folder; its `ctr`."""
    with tempfile.TemporaryDirectory() as state:
        socket = Path(state, "containerd.sock")
        file = Path(state, "config.toml")
        file.write_text(config.render("kind/containerd.toml", store=root / "var/lib/containerd", state=state, socket=socket))
        process = subprocess.Popen(["containerd", f"--config={file}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if not until(socket.exists, 30):
                raise TimeoutError("containerd does not respond after 30 s")
            yield ["ctr", f"--address={socket}", "--namespace=k8s.io"]
        finally:
            process.terminate()
            process.wait()
