# SPDX-License-Identifier: Apache-2.0
"""Two clusters of kind, on which clusterctl installs Cluster API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from builds.progress import step

from .. import sample_onboarding
from ..conftest import Shown
from ..testbed import apt, network
from ..testbed.kind import docker, node_image
from ..testbed.kind.cluster import Kind
from ..testbed.ledger import Ledger
from .clusterctl import Clusterctl

ADDRESS = str(network.NETWORK[210])
PODS = {"first": "10.245.0.0/24", "second": "10.246.0.0/24"}


class Management(NamedTuple):
    """Management clusters, and what installs and moves Cluster API's objects."""

    first: Kind
    second: Kind
    clusterctl: Clusterctl


@pytest.fixture(scope="module")
def management(ledger: Ledger, shown: Shown, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Management]:
    folder = tmp_path_factory.mktemp("kind")
    own = Ledger(folder / "bed")
    try:
        with shown():
            yield _made(own, folder)
    finally:
        own.undo()


def _made(ledger: Ledger, folder: Path) -> Management:
    apt.install(ledger, docker.PACKAGES)
    daemon = docker.Docker.start(ledger, ADDRESS, "kind")
    node_image.give(daemon)
    clusters = [
        Kind.create(daemon, ledger, name, port, pods) for port, (name, pods) in enumerate(PODS.items(), start=6443)
    ]
    clusterctl = Clusterctl(folder)
    for one in clusters:
        sample_onboarding.load(one, ["cluster_api_management"])
        with step(f"Installing Cluster API on {one.name} with clusterctl"):
            clusterctl.run(one.kubeconfig, "init", "--infrastructure=docker", "--wait-providers")
    return Management(*clusters, clusterctl)
