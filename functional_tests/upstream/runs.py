# SPDX-License-Identifier: Apache-2.0
"""Runs of the tests on a bed that is up: one conductor with the wanted driver, a VIM by name, no remains of failures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from builds.progress import step

from ..client import Body, Client
from ..cluster import Cluster
from ..testbed import paths
from ..testbed.bed import Environment
from ..testbed.ledger import Ledger
from ..testbed.tacker import CONDUCTORS, Conductor, config_file
from ..vim import connection_info
from ..vnf import Vnf
from .tests import Result, Tests

VIM = "vim-kubernetes"
"""The name by which the tests look for a registered VIM."""

# Some of their requests name no CA of the cluster, which Tacker's driver takes for leave not to verify TLS.
OPTIONS = {"OS_K8S_CR__VERIFY_TLS_WITHOUT_CA": "false"}


def run(environment: Environment, driver: str, modules: Sequence[str]) -> Iterator[Result]:
    """The result of each test, with `driver` in the place of the bed's. `environment` is that of all its parts."""
    ledger = Ledger(paths.STATE)
    vim = connection_info(Path(environment["KUBECONFIG"]))
    client = Client({**os.environ, **environment})
    tests = Tests(ledger.home / "upstream", config_file(ledger), environment, vim)
    with (
        closing(Cluster(Path(environment["KUBECONFIG"]))) as cluster,
        _one_conductor(ledger, driver),
        _registered(client, vim),
    ):
        for module in modules:
            with step(f"{module} with {driver}"), _swept(client, cluster, vim):
                results = tests.run(module)
            yield from results


@contextmanager
def _one_conductor(ledger: Ledger, driver: str) -> Iterator[None]:
    """These tests upload packages as they please, which two conductors do not survive (see `testbed.tacker.onboarding`)."""
    conductors = [Conductor(ledger, name) for name in CONDUCTORS]
    with step(f"Starting one conductor with {driver}"):
        for conductor in conductors:
            conductor.kill()
            ledger.stopped(conductor.name)
        conductors[0].start(driver, OPTIONS)
    try:
        yield
    finally:
        with step("Starting the conductors as before"):
            conductors[0].kill()
            for conductor in conductors:
                conductor.launch()
            for conductor in conductors:
                conductor.wait()


@contextmanager
def _registered(client: Client, vim: Body) -> Iterator[None]:
    registered = client.register_vim(VIM, vim)
    try:
        yield
    finally:
        client.delete_vim(registered)


@contextmanager
def _swept(client: Client, cluster: Cluster, vim: Body) -> Iterator[None]:
    """What failed tests have left is removed, that the next ones find the bed as they want it."""
    instances = {one["id"] for one in client.instances()}
    packages = {one["id"] for one in client.packages()}
    try:
        yield
    finally:
        left = [one["id"] for one in client.instances() if one["id"] not in instances]
        for identifier in left:
            Vnf(client, vim, identifier).remove()
        cluster.wipe(left)
        for package in client.packages():
            if package["id"] not in packages:
                client.delete_package(package["id"])
