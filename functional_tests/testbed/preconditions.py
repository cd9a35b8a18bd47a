# SPDX-License-Identifier: Apache-2.0
"""What this host must be and have, asked before anything on it is changed."""

import os
import platform
import shutil
import sys
from pathlib import Path

from builds import cache

from . import cgroups, paths

# What the sources, Go's build cache and the binaries of a first run take, and what every bed takes, in GiB.
FIRST_RUN, EVERY_RUN = 20, 4
# Bits of CapEff, see capabilities(7): network namespaces and mounts.
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


class PreconditionError(Exception):
    """One sentence: what is missing, and what to do about it."""


def check() -> None:
    """Raises PreconditionError for the first thing that is not so."""
    if sys.platform != "linux":
        raise PreconditionError(f"the test bed runs on Linux, and this is {platform.system()}")
    if os.geteuid() != 0:
        raise PreconditionError("the test bed makes mounts and network namespaces: run it as root")
    if missing := [name for name, bit in CAPABILITIES.items() if not _effective_capabilities() >> bit & 1]:
        missing = " and ".join(missing)
        raise PreconditionError(f"root misses {missing} here: run the test bed on the host or in a privileged container")
    if not shutil.which("apt-get"):
        raise PreconditionError("apt-get is missing: the test bed installs Debian or Ubuntu packages")
    if not cgroups.is_mounted():
        raise PreconditionError(f"no control groups are mounted on {cgroups.ROOT}: mount them, or boot with systemd")
    first = not any((cache.folder() / "go").glob("kubernetes-*"))
    _check_disk(cache.folder(), FIRST_RUN if first else EVERY_RUN)
    _check_disk(paths.STATE.parent, EVERY_RUN)


def _effective_capabilities() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))


def _check_disk(folder: Path, wanted: int) -> None:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free / 2**30
    if free < wanted:
        remedy = "free some, or let XDG_CACHE_HOME name a folder elsewhere"
        raise PreconditionError(f"{folder} has {free:.1f} GiB free, and the test bed needs {wanted}: {remedy}")
