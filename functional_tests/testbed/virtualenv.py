# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of services whose pins and Tacker's need not agree: made once of a lock file, kept in the cache."""

import sys
import sysconfig
from pathlib import Path

from builds import cache
from builds.commands import run

LOCKS = Path(__file__).parents[2] / "requirements"


def synced(name: str) -> Path:
    """The virtual environment with what `requirements/<name>.lock` says; made at the first call."""
    lock = LOCKS / f"{name}.lock"
    environment = cache.folder() / f"{name}-{cache.digest(lock.read_bytes(), sys.version.encode())}"
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    if not (environment / "bin" / "python").exists():
        run([uv, "venv", "--python", sys.executable, environment])
    run([uv, "pip", "sync", "--python", environment / "bin" / "python", lock])
    return environment
