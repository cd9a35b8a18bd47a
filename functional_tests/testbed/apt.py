# SPDX-License-Identifier: Apache-2.0
"""Debian packages that the bed needs on this host: missing ones are installed, and no service of them is started."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from builds import commands
from builds.progress import step

from .ledger import Ledger
from .processes import TOKEN

# Asked by every package's scripts before they start a service; 101 forbids it.
POLICY = Path("/usr/sbin/policy-rc.d")


def install(ledger: Ledger, packages: Iterable[str]) -> None:
    """Install what is missing. The packages stay when the bed is taken down."""
    wanted = missing(packages)
    if not wanted:
        return
    if not POLICY.exists():
        ledger.file(POLICY, "#!/bin/sh\nexit 101\n", mode=0o755)
        try:
            _install(ledger, wanted)
        finally:
            POLICY.unlink()
    else:
        _install(ledger, wanted)


def missing(packages: Iterable[str]) -> list[str]:
    """Those of the packages that are not installed."""
    listing = commands.run(["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\\n"])
    known = dict(line.split() for line in listing.splitlines())
    return [package for package in packages if known.get(package) != "installed"]


def _install(ledger: Ledger, packages: list[str]) -> None:
    log = ledger.home / "apt.log"
    with step(f"Installing {', '.join(packages)}"), log.open("ab") as output:
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            # Neither Ctrl-C (a session of its own) nor `undo` (no token) may end dpkg half-way.
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            environment.pop(TOKEN, None)
            child = subprocess.Popen(
                ["apt-get", "-o", "DPkg::Lock::Timeout=300", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                child.wait()
            except KeyboardInterrupt:
                child.wait()
                raise
            if child.returncode:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
                raise RuntimeError(f"apt-get {' '.join(arguments)} ended with {child.returncode}:\n{tail}")
