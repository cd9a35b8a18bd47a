# SPDX-License-Identifier: Apache-2.0
"""Operations on hosts that only print: what is waited for, and what ends an operation."""

from __future__ import annotations

import re

import pytest

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.node_clusters import run, work

from .printing import Hosts, operation

DEAD = "worker-w0"


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "PAUSE", 0.0)


@pytest.mark.parametrize(
    ("noticed", "within", "done"),
    [
        (1, 90, ["the removal of the node"]),
        (3, 90, ["the removal of the node"]),
        (1000, 0, [f"kubectl drain {DEAD}", "the removal of the node"]),
    ],
    ids=["at once", "later", "never"],
)
def test_a_drain_does_not_wait_for_the_pods_of_a_dead_server(
    monkeypatch: pytest.MonkeyPatch, noticed: int, within: float, done: list[str]
) -> None:
    """The cluster takes most of a minute to notice. A node that stays Ready runs, though SSH does not reach it."""
    monkeypatch.setattr(run, "NOTICED_WITHIN", within)
    hosts = Hosts(dead=[DEAD], noticed=noticed)
    operation(hosts).leave(["w0"])
    assert hosts.done == done


@pytest.mark.parametrize(
    ("holders", "found"), [((), "no node"), (("master-m0", "master-m2"), "master-m0, master-m2")], ids=["none", "two"]
)
@pytest.mark.parametrize("is_balanced", [False, True], ids=["configured now", "configured before"])
def test_exactly_one_master_has_the_virtual_ip(
    monkeypatch: pytest.MonkeyPatch, holders: tuple[str, ...], found: str, is_balanced: bool
) -> None:
    """With two, clients reach either; with none, nobody reaches the API, and kubeadm would wait for it in vain."""
    monkeypatch.setattr(run, "HOLDER_WITHIN", 0.05)
    hosts = Hosts(holders=holders, is_balanced=is_balanced)
    with pytest.raises(DriverError, match=re.escape(f"{found} has the virtual IP; exactly one server has to, within")):
        operation(hosts).ensure()
    assert not any("kubeadm" in what for what in hosts.done)


def test_one_master_with_the_virtual_ip_is_right() -> None:
    operation(Hosts(holders=["master-m1"])).ensure()


def test_a_master_without_a_healthy_member_of_etcd_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kubelet is Ready all the same, and the next loss of a master would be that of the cluster."""
    monkeypatch.setattr(run, "READY_WITHIN", 0.05)
    with pytest.raises(DriverError, match="master-m2 is not Ready, or its member of etcd is not healthy"):
        operation(Hosts(holders=["master-m1"], sick=["master-m2"])).ensure()


@pytest.mark.parametrize(("new", "sent"), [("master-m2", 1), ("worker-w1", 0)])
def test_certificates_of_the_masters_go_into_the_cluster_for_masters_only(new: str, sent: int) -> None:
    hosts = Hosts(holders=["master-m1"], new=[new])
    operation(hosts).ensure()
    assert [hosts.done.count(what) for what in ("kubeadm token", "kubeadm join", "kubeadm upload-certs")] == [1, 1, sent]
