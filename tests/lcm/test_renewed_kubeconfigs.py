# SPDX-License-Identifier: Apache-2.0
"""A kubeconfig that Cluster API renews between two operations: the database synchronization marks the instance."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.credentials.management import ManagementCluster
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from tests.credentials.clusters import NAME, put_kubeconfig
from tests.fake_api import FakeApi, faults
from tests.lcm.synced import Synced
from tests.lcm.web import deployment

PATH = "/api/v1/namespaces/default/secrets/red-kubeconfig"


@pytest.fixture
def workload() -> Iterator[FakeApi]:
    with FakeApi(tls=True) as server:
        yield server


@pytest.fixture
def delivered(cluster: FakeApi, workload: FakeApi, tmp_path: Path) -> Synced:
    """An instance whose kubeconfig was delivered as it is."""
    put_kubeconfig(cluster, workload)
    blue = Synced(cluster, tmp_path, [deployment(3)])
    with Connection(Endpoint(cluster.url)) as connection:
        digest = ManagementCluster(connection).workload(NAME).digest
    one = {"url": "https://192.0.2.1", "endpoint": workload.url, "digest": digest, "event": "ready"}
    blue.inst.metadata = {"other": "kept", "credential_sender": {"clusters": {NAME: one}}}
    if blue.differs():
        blue.sync()
    cluster.requests.clear()
    return blue


def marked(blue: Synced) -> Any:
    return blue.inst.metadata["credential_sender"].get("renewed")


def test_a_renewed_kubeconfig_marks_the_instance_once(
    delivered: Synced, cluster: FakeApi, workload: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    assert not delivered.differs() and marked(delivered) is None
    put_kubeconfig(cluster, workload, token="another-token-0123456789")
    assert delivered.differs()
    with caplog.at_level(logging.WARNING):
        delivered.sync()
    assert marked(delivered) == [NAME] and delivered.inst.metadata["other"] == "kept"
    [line] = [one.getMessage() for one in caplog.records if "than was delivered last" in one.getMessage()]
    assert NAME in line and "another-token" not in line
    assert not delivered.differs()
    put_kubeconfig(cluster, workload)
    assert delivered.differs()
    delivered.sync()
    assert marked(delivered) is None


def test_one_request_for_each_delivered_cluster_and_none_for_others(delivered: Synced, cluster: FakeApi) -> None:
    delivered.differs()
    assert len(cluster.requests.select("GET", PATH)) == 1
    clusters = delivered.inst.metadata["credential_sender"]["clusters"]
    clusters["elsewhere/red"] = {**clusters.pop(NAME)}
    cluster.requests.clear()
    delivered.differs()
    delivered.inst.metadata = {}
    delivered.differs()
    assert [one for one in cluster.requests if "secrets" in one.path] == []


@pytest.mark.parametrize("status", [403, 404])
def test_what_cannot_be_read_is_not_known_to_differ(delivered: Synced, cluster: FakeApi, status: int) -> None:
    cluster.fail(faults.status(status, "Forbidden"), method="GET", path=PATH, times=9)
    assert not delivered.differs()
