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
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import yaml

from builds import programs
from builds.controllers import CONTROLLERS, USER, Controller
from builds.progress import step
from k8s_cr_driver.package.tosca_meta import MANIFESTS
from sample_packages import infrastructure, upstream
from sample_packages.__main__ import make

from .client import Client


class Node(Protocol):
    """A cluster that is given images."""

    def load_image(self, name: str, entrypoint: str, files: Mapping[str, Path], user: str = "") -> None:
        """All as `images.archive` has it."""


class Sample(NamedTuple):
    """An onboarded package; `files` are its manifests."""

    package_id: str
    vnfd_id: str
    files: list[str]


def onboard(
    client: Client, names: Iterable[str], provider: str = infrastructure.DEFAULT, sender: Path | None = None
) -> dict[str, Sample]:
    """By name. A package that an earlier run has left is replaced; Tacker says so if it is still in use.

    `provider` is that of a management cluster, `sender` the settings of a workload cluster's credential sender.
    """
    with tempfile.TemporaryDirectory() as work:
        made = {name: make(name, Path(work), provider, sender) for name in names}
        old = {_vnfd_id(csar) for csar in made.values()}
        for package in client.packages():
            if package.get("vnfdId") in old:
                client.delete_package(package["id"])
        onboarded = {name: client.onboard(csar) for name, csar in made.items()}
        return {name: Sample(info["id"], info["vnfdId"], _files(made[name])) for name, info in onboarded.items()}


def manifests(name: str, folder: Path) -> dict[str, str]:
    """Those of a sample by their names, for packages that differ in some; `folder` is for the sample."""
    with zipfile.ZipFile(make(name, folder)) as archive:
        return {Path(file).name: archive.read(file).decode() for file in archive.namelist() if file.startswith(f"{MANIFESTS}/")}


def load(node: Node, names: Iterable[str], provider: str = infrastructure.DEFAULT) -> None:
    """Give a node the images of the controllers that the samples install, built first if need be."""
    wanted = build(names, provider)
    with step("Loading the images of the controllers"), ThreadPoolExecutor() as pool:
        list(pool.map(partial(_load, node), [one for one in CONTROLLERS.values() if one.family in wanted]))


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


def programs_of(names: Iterable[str], provider: str = infrastructure.DEFAULT) -> list[str]:
    """The Go module families of the samples' manifests and controllers."""
    return list(dict.fromkeys(family for name in names for family in upstream.families(name, provider)))


def build(names: Iterable[str], provider: str = infrastructure.DEFAULT) -> list[str]:
    """The Go module families of the samples, all built."""
    families = programs_of(names, provider)
    for family in families:
        programs.build(family)
    return families


def _load(node: Node, controller: Controller) -> None:
    node.load_image(controller.image(), controller.entrypoint, controller.files(), USER)


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
