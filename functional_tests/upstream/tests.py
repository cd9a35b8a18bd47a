# SPDX-License-Identifier: Apache-2.0
"""One run of the tests: their configuration, the process that they run in, and what it reports of each."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, STDOUT

import yaml

from ..client import Body
from .source import fetch

SUITE = Path("tacker", "tests", "functional", "sol_kubernetes_v2")
MODULES = (
    "test_vnflcm_basic",
    "test_change_vnfpkg",
    "test_kubernetes_container_update",
    "test_vnffm_basic",
    "test_prom_auto_scale_heal",
)
"""What needs no service beside Tacker, Keystone and Kubernetes. The rest asks for Helm, or for a Prometheus by SSH."""

# In a mount namespace: $1 is laid over /etc and over the sources, $2, for reading only.
_LAID_OVER = """
mount -t overlay -o "lowerdir=$1/etc:/etc" tests /etc
mount -t overlay -o "lowerdir=$1/source:$2" tests "$2"
cd "$2"
shift 2
exec "$@"
"""


@dataclass(frozen=True)
class Result:
    """Of one test. `problem` is the end of what it says of its failure; empty when it has passed."""

    test: str
    seconds: float
    problem: str


class Tests:
    """`environment` are the bed's OS_* variables, `folder` is for the run's files, which hold credentials."""

    def __init__(self, folder: Path, tacker_conf: Path, environment: Mapping[str, str], vim: Body) -> None:
        self._source = fetch()
        self._folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        (folder / "tmp").mkdir()
        (folder / "etc" / "tacker").mkdir(parents=True)
        (folder / "etc" / "tacker" / "tacker.conf").symlink_to(tacker_conf)
        samples = folder / "source" / "samples" / "tests" / "etc" / "samples"
        samples.mkdir(parents=True)
        (samples / "local-vim.yaml").write_text(yaml.safe_dump(_keystone(environment)))
        (samples / "local-k8s-vim.yaml").write_text(yaml.safe_dump(_kubernetes(vim)))

    def run(self, module: str) -> list[Result]:
        """Of every test of the module; RuntimeError with the end of its output when it could not run."""
        report, log = self._folder / f"{module}.xml", self._folder / f"{module}.log"
        argv = [
            *("unshare", "--mount", "sh", "-euc", _LAID_OVER, "sh", self._folder, self._source),
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull),
            *(f"--rootdir={self._source}", f"--junitxml={report}", SUITE / f"{module}.py"),
        ]
        with log.open("wb") as output:
            environment = os.environ | {"TMPDIR": str(self._folder / "tmp")}
            subprocess.run(argv, env=environment, stdin=DEVNULL, stdout=output, stderr=STDOUT, check=False)
        if not report.exists():
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise RuntimeError(f"{module} could not be run:\n{tail}")
        return [_result(module, case) for case in ElementTree.parse(report).iter("testcase")]


def _result(module: str, case: ElementTree.Element) -> Result:
    problems = [found.get("message") or found.tag for found in case if found.tag in ("failure", "error", "skipped")]
    return Result(f"{module}.{case.get('name')}", float(case.get("time") or 0), " ".join("; ".join(problems).split()))


def _keystone(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        "auth_url": environment["OS_AUTH_URL"].removesuffix("/v3"),
        "username": environment["OS_USERNAME"],
        "password": environment["OS_PASSWORD"],
        "project_name": environment["OS_PROJECT_NAME"],
        "user_domain_name": environment["OS_USER_DOMAIN_NAME"],
        "project_domain_name": environment["OS_PROJECT_DOMAIN_NAME"],
    }


def _kubernetes(vim: Body) -> dict[str, str]:
    return {
        "auth_url": vim["interfaceInfo"]["endpoint"],
        "ssl_ca_cert": vim["interfaceInfo"]["ssl_ca_cert"],
        "bearer_token": vim["accessInfo"]["bearer_token"],
    }
