# SPDX-License-Identifier: Apache-2.0
"""The cache on this host: a folder of what is expensive to make, each part under the hash of its recipe."""

import hashlib
import os
from pathlib import Path


def folder() -> Path:
    """The folder of everything that is expensive to make and can be made again; it need not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "k8s-cr-driver"


def digest(*parts: bytes) -> str:
    """A short key of a recipe: equal parts give equal keys, and moving a byte between parts changes the key."""
    total = hashlib.sha256()
    for part in parts:
        total.update(b"%d:" % len(part) + part)
    return total.hexdigest()[:16]
