# SPDX-License-Identifier: Apache-2.0
"""The Debian root folder that every machine of the bed boots from, made once and cached by the hash of its recipe."""

import fcntl
import os
import re
import shutil
from pathlib import Path

from builds import cache, commands
from builds.progress import step

SUITE = "bookworm"
# What a node, an NFS server or a load balancer needs of Debian. Its containerd 1.6 does for kubelet up to 1.36, which takes
# the cgroup driver from its own configuration where the runtime does not name one (getCgroupDriverFromCRI in kubelet).
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "procps", "kmod", "util-linux", "mount", "e2fsprogs",
    "iproute2", "iptables", "nftables", "ebtables", "ethtool", "conntrack", "socat", "ca-certificates", "curl", "jq",
    "netbase", "containerd", "runc", "containernetworking-plugins",
)  # fmt: skip
# Nobody logs in at a console, nothing is updated, and a resolver that cannot be reached costs 10 s a look-up.
MASKED = (
    "console-getty.service", "getty.target", "systemd-logind.service", "apt-daily.timer", "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "systemd-timesyncd.service",
    "systemd-udevd.service", "systemd-tmpfiles-clean.timer", "systemd-update-utmp.service", "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount", "run-rpc_pipefs.mount", "dev-hugepages.mount", "nftables.service",
    "netfilter-persistent.service",
)  # fmt: skip
# Which machine runs these is decided when it is made.
NOT_ENABLED = ("containerd.service", "haproxy.service", "keepalived.service", "nfs-ganesha.service")


def root_folder(more: tuple[str, ...] = ()) -> Path:
    """The read-only root folder, with `more` packages, made first if need be. Machines put an overlay on it."""
    packages = (*PACKAGES, *more)
    target = cache.folder() / "rootfs" / f"{SUITE}-{cache.digest(*map(str.encode, (SUITE, *packages, *MASKED, *NOT_ENABLED)))}"
    if target.is_dir():  # another one may be made for minutes
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            unfinished = target.with_name("unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            with step(" with ".join(("Making the machines' Debian root folder", *more))):
                _make(unfinished / "root", unfinished, packages)
            (unfinished / "root").rename(target)
            shutil.rmtree(unfinished)
    return target


def _make(folder: Path, temporary: Path, packages: tuple[str, ...]) -> None:
    # In a mount namespace of its own: what mmdebstrap mounts into the folder is unmounted when it ends, however it ends.
    private = ["unshare", "--mount", "--propagation=private"]
    options = ["--variant=minbase", "--mode=root", "--format=directory", f"--include={','.join(packages)}"]
    commands.run(
        [*private, "mmdebstrap", *options, SUITE, folder],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive", "TMPDIR": str(temporary)},
    )
    for unit in MASKED:
        (folder / "etc/systemd/system" / unit).unlink(missing_ok=True)
        (folder / "etc/systemd/system" / unit).symlink_to("/dev/null")
    for unit in NOT_ENABLED:
        (folder / "etc/systemd/system/multi-user.target.wants" / unit).unlink(missing_ok=True)
    for name in ("machine-id", "resolv.conf", "fstab"):
        (folder / "etc" / name).unlink(missing_ok=True)
        (folder / "etc" / name).touch()


def with_libraries(program: str) -> dict[str, Path]:
    """A program of the root folder and the libraries that it loads: path -> file of the host."""
    listing = commands.run(["chroot", root_folder(), "ldd", program])
    libraries = re.findall(r"(/\S+) \(0x", listing)
    return {path: file(path) for path in (program, *libraries)}


def file(path: str) -> Path:
    """The file of the host that a path in the root folder names, through links that are absolute there."""
    return root_folder() / commands.run(["chroot", root_folder(), "realpath", path]).strip().lstrip("/")
