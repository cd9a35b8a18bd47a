# SPDX-License-Identifier: Apache-2.0
"""What containerd keeps of container images, loaded once for all nodes and cached by the hash of the archives.

A node gets links to the files that containerd never writes again, so that all nodes have the same pages in memory, and
copies of the others.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from builds import cache, commands
from builds.progress import step

from .. import config, rootfs

FOLDER = "/var/lib/containerd"
"""Where a node has it."""
_NEVER_WRITTEN = ("io.containerd.content.v1.content/blobs", "io.containerd.snapshotter.v1.overlayfs/snapshots")


def loaded(archives: Iterable[Path]) -> Path:
    """The folder, made first if need be."""
    root, files = rootfs.root_folder(), sorted(set(archives))
    folder = cache.folder() / "containerd"
    unfinished = folder / "unfinished"
    script = config.render("openstack/load_images.sh", root=root, store=unfinished, archives=" ".join(map(str, files)))
    target = folder / cache.digest(script.encode())
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            with step("Loading the images of containers for all nodes"):
                # In namespaces of its own: what it mounts and starts ends with it, however it ends.
                private = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child"]
                commands.run([*private, "sh", "-euc", script])
            unfinished.rename(target)
    return target


def copy(source: Path, target: Path) -> None:
    """Fill the folder of a new node."""
    never_written = tuple(str(source / folder) for folder in _NEVER_WRITTEN)

    def copy_file(path: str, to: str) -> None:
        if path.startswith(never_written):
            with suppress(OSError):  # the cache is on another file system
                os.link(path, to)
                return
        shutil.copy2(path, to)

    shutil.copytree(source, target, symlinks=True, copy_function=copy_file, dirs_exist_ok=True)
