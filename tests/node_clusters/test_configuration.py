# SPDX-License-Identifier: Apache-2.0
"""What kubeadm and the package's script are given."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from k8s_cr_driver.node_clusters import parameters
from k8s_cr_driver.node_clusters.kubeadm import configuration
from k8s_cr_driver.node_clusters.parameters import Parameters

from .clusters import ENDPOINT, MASTERS, WORKERS

GROUP = {"ssh_cp_name": "CP1", "username": "u"}
GIVEN: dict[str, Any] = {
    "master_node": {**GROUP, "vdu_id": "masterNode", "cluster_cp_name": "vip", "pod_cidr": "10.244.0.0/16"},
    "worker_node": {**GROUP, "vdu_id": "workerNode"},
}


def read(**sections: Any) -> Parameters:
    return parameters.read({**GIVEN, **sections}, {}, "4a1f")


def test_the_control_plane_is_at_the_virtual_ip() -> None:
    """Never at a master; the certificate is for whatever address leads there."""
    first, cluster = yaml.safe_load_all(configuration.initial(MASTERS[0], ENDPOINT, read(), "v1.36.3"))
    assert cluster["controlPlaneEndpoint"] == "10.0.0.100:16443"
    assert cluster["apiServer"]["certSANs"] == ["10.0.0.100", "198.51.100.7"]
    assert cluster["networking"] == {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/12"}
    assert cluster["kubernetesVersion"] == "v1.36.3"
    assert first["localAPIEndpoint"] == {"advertiseAddress": "10.0.0.10", "bindPort": 6443}
    assert first["nodeRegistration"]["name"] == "master-m0", "servers of a VDU have one host name"


def test_who_joins_verifies_the_cluster() -> None:
    master, worker = (
        yaml.safe_load(configuration.joining(node, ENDPOINT, "the-token", "sha256:d", "the-key"))
        for node in (MASTERS[1], WORKERS[0])
    )
    for one in (master, worker):
        bootstrap = one["discovery"]["bootstrapToken"]
        assert (bootstrap["apiServerEndpoint"], bootstrap["caCertHashes"]) == ("10.0.0.100:16443", ["sha256:d"])
        assert "unsafeSkipCAVerification" not in bootstrap
    assert master["controlPlane"]["certificateKey"] == "the-key"
    assert "controlPlane" not in worker and "the-key" not in json.dumps(worker)


def test_the_script_is_given_the_contract() -> None:
    given = configuration.for_script(WORKERS[0], ENDPOINT, read(kubernetes_version="1.36.3"))
    assert given == {
        "role": "worker",
        "name": "worker-w0",
        "address": "10.0.0.20",
        "kubernetes_version": "1.36.3",
        "pod_cidr": "10.244.0.0/16",
        "service_cidr": "10.96.0.0/12",
        "haproxy": {"address": "10.0.0.100", "port": 16443},
        "proxy": {},
    }


@pytest.mark.parametrize(
    ("given", "own", "named"),
    [
        ({}, "10.0.0.0/24", ""),
        ({"k8s_node_cidr": "10.0.0.0/16", "no_proxy": "a.example, b.example"}, "10.0.0.0/16", "a.example,b.example,"),
    ],
)
def test_what_belongs_to_the_cluster_does_not_go_through_the_proxy(given: dict[str, str], own: str, named: str) -> None:
    """Each of the two proxies is the request's own."""
    proxies = {"http_proxy": "http://one.example:3128", "https_proxy": "http://two.example:3129"}
    found = configuration.proxy(WORKERS[0], ENDPOINT, read(proxy={**proxies, **given}))
    direct = f"localhost,127.0.0.1,10.0.0.100,{own},10.244.0.0/16,10.96.0.0/12"
    assert found == {**proxies, "no_proxy": f"{named}{direct}"}


def test_a_cut_kubeadm_is_reset_before_the_next() -> None:
    argv = configuration.fresh("join", "--config=/dev/stdin")
    assert argv[:2] == ("sh", "-euc") and argv[-2:] == ("join", "--config=/dev/stdin")
    assert argv[2].index("kubeadm reset --force") < argv[2].index('exec kubeadm "$@"')
