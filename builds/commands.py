# SPDX-License-Identifier: Apache-2.0
"""Commands that run to their end: what they print is returned, and is in the error when they fail."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """The command's stdout. RuntimeError with the end of its stderr when it fails; arguments must hold no secret."""
    done = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).splitlines()[-20:])
        raise RuntimeError(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{tail}")
    return done.stdout
