# SPDX-License-Identifier: Apache-2.0
"""The sample packages as a user of Tacker's API has them: made, onboarded, and what requests must say of them.

`python -m functional_tests.sample_onboarding NAME...` builds the programs that they need, which takes minutes the first
time.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import yaml

from builds import programs
from builds.controllers import CONTROLLERS, USER, Controller
from builds.progress import step
from k8s_cr_driver.package.tosca_meta import MANIFESTS
from sample_packages import upstream
from sample_packages.__main__ import make

from .client import Client
from .testbed.kubernetes import Kubernetes


class Sample(NamedTuple):
    """An onboarded package; `files` are its manifests."""

    package_id: str
    vnfd_id: str
    files: list[str]


def onboard(client: Client, names: Iterable[str]) -> dict[str, Sample]:
    """By name. A package that an earlier run has left is replaced; Tacker says so if it is still in use."""
    with tempfile.TemporaryDirectory() as work:
        made = {name: make(name, Path(work)) for name in names}
        old = {_vnfd_id(csar) for csar in made.values()}
        for package in client.packages():
            if package.get("vnfdId") in old:
                client.delete_package(package["id"])
        onboarded = {name: client.onboard(csar) for name, csar in made.items()}
        return {name: Sample(info["id"], info["vnfdId"], _files(made[name])) for name, info in onboarded.items()}


def load(kubernetes: Kubernetes, names: Iterable[str]) -> None:
    """Give the node the images of the controllers that the samples install, built first if need be."""
    wanted = build(names)
    with step("Loading the images of the controllers"), ThreadPoolExecutor() as pool:
        list(pool.map(partial(_load, kubernetes), [one for one in CONTROLLERS.values() if one.family in wanted]))


@contextlib.contextmanager
def building(names: Iterable[str]) -> Iterator[None]:
    """Builds the samples' programs with what else the processors have to spare; who wants one of them waits for that."""
    argv = ["nice", "-n19", sys.executable, "-m", __name__, *names]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def programs_of(names: Iterable[str]) -> list[str]:
    """The Go module families of the samples' manifests and controllers."""
    return list(dict.fromkeys(family for name in names for family in upstream.families(name)))


def build(names: Iterable[str]) -> list[str]:
    """The Go module families of the samples, all built."""
    families = programs_of(names)
    for family in families:
        programs.build(family)
    return families


def _load(kubernetes: Kubernetes, controller: Controller) -> None:
    kubernetes.load_image(controller.image(), controller.entrypoint, controller.files(), USER)


def _vnfd_id(csar: Path) -> str:
    """The descriptor_id of the package's only flavour."""
    with zipfile.ZipFile(csar) as archive:
        template = yaml.safe_load(archive.read(f"Definitions/{csar.stem}.yaml"))["topology_template"]
    return str(template["node_templates"]["VNF"]["properties"]["descriptor_id"])


def _files(csar: Path) -> list[str]:
    with zipfile.ZipFile(csar) as archive:
        return [name for name in archive.namelist() if name.startswith(f"{MANIFESTS}/") and not name.endswith("/")]


if __name__ == "__main__":
    build(sys.argv[1:])
