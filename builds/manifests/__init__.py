# SPDX-License-Identifier: Apache-2.0
"""The manifests that projects release, rendered from their pinned sources and cached; none is kept in this repository.

Each project is a module with FAMILIES, the Go module families that its sources come from, and `render(folder)`, which
writes its manifests into an existing folder.
"""

import tempfile
from pathlib import Path
from types import ModuleType

from .. import cache, programs

_SHARED = [Path(__file__).parent / name for name in ("providers.py", "tools.py")]


def rendered(project: ModuleType) -> Path:
    """The manifests of one project, from the cache if nothing that decides them has changed."""
    sources = [Path(str(project.__file__)).read_bytes(), *(path.read_bytes() for path in _SHARED)]
    keys = [programs.key(family).encode() for family in project.FAMILIES]
    folder = cache.folder() / "manifests" / cache.digest(*sources, *keys)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            unfinished = Path(work, "manifests")
            unfinished.mkdir()
            project.render(unfinished)
            unfinished.rename(folder)
    return folder
