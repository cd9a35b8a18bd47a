# SPDX-License-Identifier: Apache-2.0
"""A MachinePool, whose provider makes no Machines: the test is that provider, as Cluster API's contract for one has it.

The provider for tests has pools of Docker containers only (Cluster API book, "Contract rules for InfraMachinePool").
"""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from kubernetes.client.exceptions import ApiException

from ..cluster import CRDS, Cluster
from ..conftest import MakeVnf, Onboard
from ..objects import Object, make
from ..testbed.kubernetes import Kubernetes
from ..testbed.processes import until
from .clusters import CORE, OF_CLUSTER, package, parameters, staying

GROUP, VERSION = "infrastructure.cluster.x-k8s.io", "v1beta2"
POOL, NAMESPACE = "ThinMachinePool", "default"
NOTICED = 60
"""Seconds within which Cluster API has found the nodes: it counts replicas before."""
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

pytestmark = pytest.mark.usefixtures("samples", "served")


def provider_s_kind() -> Object:
    """Cluster API may write objects of the whole group; by the label it finds the version that has its contract."""
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANY, "status": _ANY}}},
        "subresources": {"status": {}},
    }
    plural = f"{POOL.lower()}s"
    spec = {"group": GROUP, "names": {"kind": POOL, "plural": plural}, "scope": "Namespaced", "versions": [version]}
    crd = make(CRDS, "CustomResourceDefinition", f"{plural}.{GROUP}", spec=spec)
    return {**crd, "metadata": {**crd["metadata"], "labels": {f"cluster.x-k8s.io/{VERSION}": VERSION}}}


@pytest.fixture
def served(cluster: Cluster) -> Iterator[None]:
    """The provider's kind is there, until the instance is not."""
    with cluster.holding(provider_s_kind()):
        yield


def pool() -> list[Object]:
    machine = {
        "clusterName": "${CLUSTER_NAME}",
        "version": "${KUBERNETES_VERSION}",
        "bootstrap": {"dataSecretName": "bootstrap"},
        "infrastructureRef": {"apiGroup": GROUP, "kind": POOL, "name": "${CLUSTER_NAME}-pool"},
    }
    spec = {"clusterName": "${CLUSTER_NAME}", "replicas": 2, "template": {"spec": machine}}
    owner = make(CORE, "MachinePool", "${CLUSTER_NAME}-pool", spec=spec)
    owner["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Pool"}
    return [owner, make(f"{GROUP}/{VERSION}", POOL, "${CLUSTER_NAME}-pool", spec={})]


PACKAGE = package({"pool.yaml": pool()}, {"Pool": "pool"})


def test_each_replica_of_a_pool_without_machines_is_a_vnfc(
    onboard: Onboard, make_vnf: MakeVnf, cluster: Cluster, kubernetes: Kubernetes, tmp_path: Path
):
    lime = make_vnf(onboard(PACKAGE))
    with providing(cluster, kubernetes, "lime", tmp_path):
        lime.instantiate(*PACKAGE.files, wait_timeout=240, parameters=parameters("lime", WORKERS=0))
        assert len(lime.vnfcs("Pool")) == 2
        lime.scale_out("Pool")
        assert len(lime.vnfcs("Pool")) == 3 and until(lambda: len(nodes(cluster, "lime")) == 3, NOTICED)
        lime.scale_in("Pool")
        assert len(lime.vnfcs("Pool")) == 2 and until(lambda: len(nodes(cluster, "lime")) == 2, NOTICED)
        assert len(staying(cluster, f"{OF_CLUSTER}=lime")) == 1, "only the control plane has a Machine"
        lime.terminate()
    assert cluster.of(lime.id) == []


def nodes(cluster: Cluster, name: str) -> list[Object]:
    """The nodes that Cluster API has found for the pool."""
    live = cluster.get("MachinePool", f"{name}-pool", NAMESPACE, CORE) or {}
    return list(live["status"]["nodeRefs"])


@contextmanager
def providing(cluster: Cluster, kubernetes: Kubernetes, name: str, folder: Path) -> Iterator[None]:
    """Makes as many nodes in the workload cluster as the pool is to have, until the end."""
    ended = Event()

    def follow() -> None:
        while not ended.wait(0.5):
            with suppress(ApiException, RuntimeError):
                provide(cluster, kubernetes, name, folder)

    thread = Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def provide(cluster: Cluster, kubernetes: Kubernetes, name: str, folder: Path) -> None:
    """One round; what is not there yet is there in a later one."""
    owner = cluster.get("MachinePool", f"{name}-pool", NAMESPACE, CORE)
    made = cluster.get(POOL, f"{name}-pool", NAMESPACE, f"{GROUP}/{VERSION}")
    secret = cluster.get("Secret", f"{name}-kubeconfig", NAMESPACE)
    if not (owner and made and secret) or "deletionTimestamp" in owner["metadata"]:
        return
    wanted = [f"thin://{name}/{number}" for number in range(owner["spec"]["replicas"])]
    former = made["spec"].get("providerIDList", [])
    if wanted == former:
        return
    kubeconfig = folder / "workload.kubeconfig"
    kubeconfig.write_bytes(base64.b64decode(secret["data"]["value"]))
    for provider_id in wanted[len(former) :]:
        file = folder / "node.json"
        file.write_text(json.dumps(node(provider_id, owner["spec"]["template"]["spec"]["version"])))
        kubernetes.kubectl(f"--kubeconfig={kubeconfig}", "create", "--validate=false", f"--filename={file}")
    cluster.change(POOL, f"{name}-pool", NAMESPACE, f"{GROUP}/{VERSION}", spec={"providerIDList": wanted})
    cluster.set_status(POOL, f"{name}-pool", NAMESPACE, f"{GROUP}/{VERSION}", ready=True, replicas=len(wanted))


def node(provider_id: str, version: str) -> Object:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [ready], "nodeInfo": {"kubeletVersion": version}}
    name = provider_id.removeprefix("thin://").replace("/", "-")
    return make("v1", "Node", name, spec={"providerID": provider_id}, status=status)
