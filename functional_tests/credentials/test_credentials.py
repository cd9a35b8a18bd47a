# SPDX-License-Identifier: Apache-2.0
"""A kubeconfig is sent and received, its cluster becomes a VIM, and the next CNF is instantiated, scaled and terminated there.

The workload cluster is a second Kubernetes of the bed. Its kubeconfig is in a Secret as Cluster API writes it. No controller
of Cluster API runs: the Cluster is an object without a status.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ..client import Body, Client
from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..objects import Object, Place, annotated, deployment, make
from ..packages import Package
from ..testbed import kubernetes, mariadb, network
from ..testbed.bed import Environment
from ..testbed.ledger import Ledger
from ..testbed.processes import until
from ..vnf import Vnf
from .receiver import Receiver

pytestmark = pytest.mark.alone("cluster-api")

PLACE = Place("workloads")
GROUP = "cluster.x-k8s.io"
RED = annotated(make(f"{GROUP}/v1beta2", "Cluster", "red", PLACE.name, spec={}), ready_when="stored")
REGISTERED = 60
"""Seconds for the receiver and Tacker's server to open a cluster."""

CNF = Package(
    {"web.yaml": deployment("web"), "crd.yaml": Place("cnf").crd("Gauge"), "gauge.yaml": Place("cnf").custom("Gauge", "main")},
    {"web": "web"},
)


def _clusters() -> Object:
    """The CRD of Clusters, with any fields."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    spec = {"group": GROUP, "scope": "Namespaced", "names": {"kind": "Cluster", "plural": "clusters"}, "versions": [version]}
    return make("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"clusters.{GROUP}", spec=spec)


@pytest.fixture(scope="module")
def workload(ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[kubernetes.Kubernetes]:
    """Another Kubernetes, of a machine that reaches nothing of the first."""
    own = Ledger(tmp_path_factory.mktemp("workload") / "bed")
    try:
        yield kubernetes.up(own, "workload", str(network.NETWORK[200]))
    finally:
        own.undo()


@pytest.fixture
def receiver(bed: Environment, tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver.prepare(tmp_path, bed)
    yield receiver
    receiver.forget()


@pytest.fixture
def admin(workload: kubernetes.Kubernetes, cluster: Cluster, place: Place) -> Iterator[str]:
    """The kubeconfig, in the Secret that Cluster API would write."""
    text = workload.kubeconfig.read_text()
    secret = make("v1", "Secret", "red-kubeconfig", place.name, type=f"{GROUP}/secret", stringData={"value": text})
    secret["metadata"]["labels"] = {f"{GROUP}/cluster-name": "red"}
    with cluster.holding(secret):
        yield text


@pytest.fixture
def red(receiver: Receiver, onboard: Onboard, make_vnf: MakeVnf) -> Vnf:
    """An instance with one workload cluster, whose package has the credential sender."""
    return make_vnf(onboard(Package({"crd.yaml": _clusters(), "red.yaml": RED}, sender=receiver.settings())))


def test_a_workload_cluster_is_a_vim_until_it_is_terminated(
    red: Vnf,
    receiver: Receiver,
    admin: str,
    tacker: Client,
    workload: kubernetes.Kubernetes,
    make_vnf: MakeVnf,
    onboard: Onboard,
    ledger: Ledger,
) -> None:
    receiver.start()
    red.instantiate("crd.yaml", "red.yaml")
    assert [keys(path.read_text()) for path in receiver.kubeconfigs] == [keys(admin)]
    assert until(lambda: vims(tacker, red), REGISTERED), receiver.log
    [vim] = vims(tacker, red)

    lead_a_life(make_vnf(onboard(CNF)), vim, workload)

    messages = receiver.log.count("ready")
    red.heal()
    assert receiver.log.count("ready") == messages, "an unchanged kubeconfig was sent again"
    red.change(red.shown()["vnfdId"], "crd.yaml", "red.yaml", credential_sender={"resend": True})
    assert receiver.log.count("ready") == messages + 1
    red.terminate()
    assert receiver.kubeconfigs == []
    assert until(lambda: not vims(tacker, red), REGISTERED), receiver.log
    assert found_in(tacker, red, ledger, [red.id]), "what is no secret is found"
    assert found_in(tacker, red, ledger, [*keys(admin), *receiver.secrets]) == []


def test_an_instantiate_waits_for_a_receiver_that_is_down_and_its_retry_sends(
    red: Vnf, receiver: Receiver, admin: str, tacker: Client
) -> None:
    operation = red.begin_instantiate("crd.yaml", "red.yaml")
    detail = red.failure(operation)["detail"]
    assert f"{PLACE.name}/red" in detail and f"https://127.0.0.1:{receiver.port}/" in detail
    receiver.start()
    red.retry(operation)
    assert [keys(path.read_text()) for path in receiver.kubeconfigs] == [keys(admin)]
    assert until(lambda: vims(tacker, red), REGISTERED), receiver.log
    receiver.stop()  # with a message that it has confirmed and acted on
    receiver.start()
    red.terminate()
    assert until(lambda: not vims(tacker, red), REGISTERED), receiver.log


def lead_a_life(cnf: Vnf, vim: Body, workload: kubernetes.Kubernetes) -> None:
    """Instantiates, scales and terminates a CNF on the VIM."""
    there = {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}
    cnf.instantiate("web.yaml", "crd.yaml", "gauge.yaml", vim=there, namespace="default")
    assert pods(workload) == 1
    assert "main" in workload.kubectl("get", "gauges.cnf.example.com", "--output=name")
    cnf.scale_out("web")
    assert pods(workload) == 2
    cnf.terminate()
    assert pods(workload) == 0


def pods(workload: kubernetes.Kubernetes) -> int:
    """How many of the CNF run."""
    return len(workload.kubectl("get", "pods", "--field-selector=status.phase=Running", "--output=name").split())


def vims(tacker: Client, vnf: Vnf) -> list[Body]:
    return [vim for vim in tacker.vims() if vim["name"] == f"red_{PLACE.name}_{vnf.id}"]


def keys(kubeconfig: str) -> list[str]:
    """What is secret in it, as it is written there and in the Secret."""
    [user] = yaml.safe_load(kubeconfig)["users"]
    key = user["user"]["client-key-data"]
    return [key, base64.b64decode(key).decode().splitlines()[1]]


def found_in(tacker: Client, vnf: Vnf, ledger: Ledger, secrets: list[str]) -> list[str]:
    """Where Tacker, its data base, its logs and files have any of the secrets."""
    shown = [("API", str(one)) for one in (*tacker.operations(vnf.id), *tacker.packages(), vnf.shown())]
    stored = mariadb.Server(ledger.home / "mariadb" / "mariadb.sock").values("tacker")
    return [place for place, text in (*shown, *stored, *_files(ledger.home)) for secret in secrets if secret in text]


def _files(home: Path) -> Iterator[tuple[str, str]]:
    for root, folders, files in os.walk(home):
        folders[:] = [name for name in folders if name not in ("machines", "mariadb")]
        for path in (Path(root, name) for name in files):
            if path.is_file():
                yield str(path), path.read_bytes().decode(errors="replace")
