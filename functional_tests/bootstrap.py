# SPDX-License-Identifier: Apache-2.0
"""The virtual environment in which everything else runs; needs nothing but Python's standard library.

Quick when nothing has changed: the environment remembers from which files it was made. With --bed it first asks whether
this host can hold a test bed, so that a missing precondition is reported before anything is changed.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from functional_tests.testbed import preconditions

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
COMPLETE = VENV / "complete"
LOCK = ROOT / "requirements" / "dev.lock"
OLDEST = (3, 10)


def main() -> None:
    """Makes or renews the environment; ends with one sentence if that cannot be."""
    if sys.version_info < OLDEST:
        sys.exit(f"Python 3.10 or newer is needed, and {sys.executable} is {sys.version.split()[0]}: try make PYTHON=...")
    if "--bed" in sys.argv[1:]:
        try:
            preconditions.check()
        except preconditions.PreconditionError as error:
            sys.exit(f"{error}.")
    wanted = _fingerprint()
    if COMPLETE.exists() and COMPLETE.read_text() == wanted:
        return
    started = time.monotonic()
    try:
        _make()
    except subprocess.CalledProcessError as error:
        sys.exit(f"`{' '.join(map(str, error.cmd))}` failed with status {error.returncode}; see above.")
    except KeyboardInterrupt:
        sys.exit("Interrupted; the next run goes on from here.")
    COMPLETE.write_text(wanted)
    print(f"Virtual environment ready ({time.monotonic() - started:.0f} s)", flush=True)


def _fingerprint() -> str:
    content = b"".join(path.read_bytes() for path in (LOCK, ROOT / "setup.cfg", Path(__file__)))
    return hashlib.sha256(content + sys.version.encode() + os.fsencode(ROOT)).hexdigest()


def _make() -> None:
    print("Making the virtual environment .venv (about a minute, the first time) ...", flush=True)
    if importlib.util.find_spec("ensurepip") is None:
        _install_venv_package()
    if not (VENV / "bin" / "pip").exists():
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    python = str(VENV / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "--requirement", "/dev/stdin"], check=True, input=_locked("uv"), text=True)
    sync = [python, "-m", "uv", "pip", "sync", "--quiet", "--python", python, "--require-hashes", str(LOCK)]
    subprocess.run(sync, check=True)
    install = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python, "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--editable", str(ROOT)], check=True)


def _locked(name: str) -> str:
    """What the lock has of a package: its version and the hashes of its files."""
    entry = re.search(rf"^{re.escape(name)}==.*\\\n(?: +--hash=.*\n)+", LOCK.read_text(), re.M)
    if entry is None:
        sys.exit(f"{LOCK} has no hashes of {name}.")
    return entry[0].rstrip().rstrip("\\") + "\n"


def _install_venv_package() -> None:
    """Debian and Ubuntu keep ensurepip in a package of its own."""
    if os.geteuid() != 0:
        sys.exit("Python's venv module is not complete: install python3-venv, or run this as root.")
    print("Installing python3-venv ...", flush=True)
    subprocess.run(["apt-get", "-qq", "update"], check=True)
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "-qq", "-y", "install", "python3-venv"], check=True, env=quietly)


if __name__ == "__main__":
    main()
