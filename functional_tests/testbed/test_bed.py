# SPDX-License-Identifier: Apache-2.0
"""The test bed itself: what tests take for granted of its Kubernetes and its machines."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from builds.programs import build
from functional_tests.testbed import network, processes
from functional_tests.testbed.kubernetes import NODE, Kubernetes
from functional_tests.testbed.ledger import Ledger
from functional_tests.testbed.machine import Machine

NAMESPACE = "testbed"
SERVER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "server", "labels": {"app": "server"}},
    "spec": {"containers": [{"name": "web", "image": "nginx", "imagePullPolicy": "Always"}]},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "server"},
    "spec": {"selector": {"app": "server"}, "ports": [{"port": 80}]},
}


@pytest.fixture(autouse=True, scope="module")
def namespace(kubernetes: Kubernetes) -> Iterator[None]:
    kubernetes.kubectl("create", "namespace", NAMESPACE)
    yield
    kubernetes.kubectl("delete", "namespace", NAMESPACE)


def create(kubernetes: Kubernetes, *manifests: dict[str, object]) -> None:
    file = kubernetes.kubeconfig.with_name("test_testbed.yaml")
    file.write_text(yaml.safe_dump_all(manifests))
    kubernetes.kubectl("--namespace", NAMESPACE, "create", "--filename", file)


def wait(kubernetes: Kubernetes, pod: str) -> None:
    kubernetes.kubectl("--namespace", NAMESPACE, "wait", f"pod/{pod}", "--for=condition=Ready", "--timeout=240s")


@pytest.fixture(scope="module")
def service(kubernetes: Kubernetes) -> None:
    """A Service named `server` with one pod, and another pod named `client`."""
    create(kubernetes, SERVER, SERVICE, {**SERVER, "metadata": {"name": "client"}})
    for pod in ("server", "client"):
        wait(kubernetes, pod)


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("url", ["http://server", f"http://server.{NAMESPACE}.svc.cluster.local"])
def test_a_pod_reaches_another_through_a_service_and_its_name(kubernetes: Kubernetes, url: str):
    # A pod is Ready a moment before the Service sends to it.
    assert processes.until(lambda: ask(kubernetes, url), 30) == "server\n"


@pytest.mark.usefixtures("service")
def test_services_outlive_a_full_sync_of_kube_proxy(kubernetes: Kubernetes):
    """kube-proxy makes one every hour, and when a label changes that says where the node is."""
    assert processes.until(lambda: ask(kubernetes, "http://server"), 30)
    before = full_syncs(kubernetes)
    try:
        kubernetes.kubectl("label", "node", NODE, "topology.kubernetes.io/zone=test")
        assert processes.until(lambda: full_syncs(kubernetes) > before, 30)
        assert ask(kubernetes, "http://server") == "server\n"
    finally:
        kubernetes.kubectl("label", "node", NODE, "topology.kubernetes.io/zone-")


def full_syncs(kubernetes: Kubernetes) -> int:
    """How many kube-proxy has made since its start."""
    metrics = kubernetes.machine.run("curl", "--silent", "--fail", "http://127.0.0.1:10249/metrics")
    name = 'kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"} '
    return next(int(line.removeprefix(name)) for line in metrics.splitlines() if line.startswith(name))


def ask(kubernetes: Kubernetes, url: str) -> str | None:
    try:
        return kubernetes.kubectl("--namespace", NAMESPACE, "exec", "client", "--", "/web", "get", url)
    except RuntimeError:
        return None


def test_a_loaded_image_runs_and_an_unknown_one_does_not(kubernetes: Kubernetes):
    kubernetes.load_image("example.org/manager:main", "/manager", {"/manager": build("stand-ins") / "web"}, user="65532")
    pod = {"apiVersion": "v1", "kind": "Pod"}
    container = {"name": "manager", "imagePullPolicy": "Always", "securityContext": {"runAsNonRoot": True}}
    for name, image in (("known", "example.org/manager:main"), ("unknown", "example.org/unknown:main")):
        create(kubernetes, {**pod, "metadata": {"name": name}, "spec": {"containers": [{**container, "image": image}]}})
    wait(kubernetes, "known")
    query = ("--namespace", NAMESPACE, "get", "pod/unknown", "--output")
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}"
    assert processes.until(lambda: "ImagePull" in kubernetes.kubectl(*query, reason), 30)


@pytest.fixture
def own_ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A record of its own, for what does not stay as long as the bed."""
    ledger = Ledger(tmp_path / "bed")
    yield ledger
    ledger.undo()


def test_another_machine_has_a_disk_and_reaches_the_first_until_it_is_shut_down(kubernetes: Kubernetes, own_ledger: Ledger):
    machine = Machine.create(own_ledger, "test", str(network.NETWORK[250]))
    machine.boot(disks={machine.disk(64 << 20): ["/dev/vdb"]})
    machine.run("mkfs.ext4", "-q", "/dev/vdb")
    assert "ok" in machine.run("curl", "--silent", "--insecure", f"{kubernetes.url}/readyz")
    machine.write("/etc/test", "text")
    assert machine.run("cat", "/etc/test") == "text"
    machine.shut_down()
    with pytest.raises(RuntimeError, match="test is not running"):
        machine.run("true")
    assert own_ledger.ended() == []
