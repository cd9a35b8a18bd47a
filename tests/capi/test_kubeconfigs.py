# SPDX-License-Identifier: Apache-2.0
"""A workload cluster is ready when its kubeconfig opens it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import yaml

from k8s_cr_driver.capi.cluster import UNREACHABLE
from k8s_cr_driver.engine.report.not_ready import NotReady, Report
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.workload import RESPONSE_LIMIT, workload_endpoint
from k8s_cr_driver.objects.keys import Object, SecretEntry
from tests.capi.clusters import CLUSTERS, DEPLOYMENTS, LABELS, OWNED, cluster, crd, put_kubeconfig
from tests.cli.tool import kubeconfig
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, obj

TOKEN = "workload-token-0123456789"
NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def management(api: FakeApi) -> FakeApi:
    """A Cluster is available as soon as it exists; nobody writes its kubeconfig."""
    api.put(crd(CLUSTERS, status={}))

    def available(live: Object) -> None:
        if "status" not in live and "deletionTimestamp" not in live["metadata"]:
            api.set_status("Cluster", "default", "blue", {"conditions": [{"type": "Available", "status": "True"}]})

    api.react("Cluster", available)
    return api


def desired(**annotations: str) -> Object:
    manifest = cluster()
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}, "spec": {}}


def why(blue: Instance, words: str) -> Report:
    """What the run reports at its end, once it has reported these words of the cluster."""
    run = blue.start([desired()])
    blue.wait_until_reported("blue", "Waiting", words)
    blue.end()
    with pytest.raises(NotReady) as error:
        run.result(60)
    assert TOKEN not in str(error.value)
    return error.value.reports[0]


def reads(api: FakeApi) -> int:
    return sum(one.path.endswith("/secrets/blue-kubeconfig") for one in api.requests)


def test_a_cluster_is_ready_when_its_kubeconfig_has_opened_it(management: FakeApi) -> None:
    blue = Instance(management.url)
    run = blue.start([desired()])
    blue.wait_until_reported("blue", "Waiting", "does not open the cluster")
    assert not run.done()
    put_kubeconfig(management, management.get("Cluster", "default", "blue"), token=TOKEN)
    run.result(10)


@pytest.mark.parametrize(
    ("url", "words"), [(NOBODY, "cannot connect to http://127.0.0.1:1"), ("blue:6443", "server is no plain URL")]
)
def test_a_kubeconfig_that_does_not_open_the_cluster_is_the_reason(management: FakeApi, url: str, words: str) -> None:
    management.react("Cluster", lambda live: put_kubeconfig(management, live, url, TOKEN))
    report = why(Instance(management.url), words)
    assert report.reason == "KubeconfigNotOpened"
    assert report.message.startswith("the kubeconfig in Secret default/blue-kubeconfig does not open the cluster: ")
    assert words in report.message


def test_a_cluster_with_another_certificate_is_not_ready(management: FakeApi, tls_api: FakeApi) -> None:
    management.react("Cluster", lambda live: put_kubeconfig(management, live, tls_api.url, TOKEN))
    assert "certificate" in why(Instance(management.url), "certificate").message


def test_the_kubeconfig_leads_only_where_the_connection_to_the_management_cluster_may_go(management: FakeApi) -> None:
    def judge(host: str, addresses: list[str]) -> list[str]:
        if host == "localhost":
            raise InvalidRequest("localhost: no connection to this host is permitted")
        return addresses

    management.react("Cluster", lambda live: put_kubeconfig(management, live, "http://localhost:1", TOKEN))
    blue = Instance(management.url)
    blue.endpoint = replace(blue.endpoint, judge=judge)
    assert "no connection to this host is permitted" in why(blue, "is permitted").message


@pytest.mark.parametrize("annotations", [{UNREACHABLE: "true"}, {"k8s-cr-driver/ready-when": "stored"}])
def test_the_kubeconfig_of_a_cluster_that_cannot_be_reached_is_not_tried(
    management: FakeApi, annotations: dict[str, str]
) -> None:
    Instance(management.url).reconcile([desired(**annotations)])
    assert not reads(management)


def test_a_kubeconfig_is_tried_once_and_again_when_the_cluster_becomes_ready_again(management: FakeApi) -> None:
    management.react("Cluster", lambda live: put_kubeconfig(management, live, token=TOKEN))
    blue = Instance(management.url)
    blue.reconcile([desired()])
    assert reads(management) == 1
    blue.reconcile([desired()])
    assert reads(management) == 2


def of_topology(seen: int) -> Object:
    """A MachineDeployment that a controller has made of the topology of the Cluster `blue`."""
    made = obj("cluster.x-k8s.io/v1", "MachineDeployment", "blue-md-0", "default", spec={"replicas": 0})
    made["metadata"]["labels"] = {**OWNED, LABELS["machineDeployments"]: "md-0"}
    available = {"type": "Available", "status": "True", "observedGeneration": seen}
    return {**made, "status": {"observedGeneration": seen, "replicas": 0, "conditions": [available]}}


def test_a_cluster_with_a_topology_is_ready_when_what_was_made_of_it_is(management: FakeApi) -> None:
    """Its status is as before for a moment when a controller has changed these."""
    management.put(crd(DEPLOYMENTS, status={}))
    management.react("Cluster", lambda live: put_kubeconfig(management, live, token=TOKEN))
    management.put(of_topology(0))
    blue = Instance(management.url)
    workers = {"machineDeployments": [{"name": "md-0"}]}
    run = blue.start([{**desired(), "spec": {"topology": {"version": "v1.36.0", "workers": workers}}}])
    blue.wait_until_reported("blue", "Waiting", "MachineDeployment.cluster.x-k8s.io default/blue-md-0: SpecNotObserved")
    assert not run.done()
    management.set_status("MachineDeployment", "default", "blue-md-0", of_topology(1)["status"])
    run.result(10)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"url": "https://[::1"}, "server is no plain URL"),
        ({"url": "https://admin:hunter2@10.0.0.1:6443"}, "server is no plain URL"),
        ({"url": "http://127.0.0.1:1/admin/reboot?now=1&x="}, "server is no plain URL"),
        ({"url": "http://127.0.0.1:1/a/../b"}, "server is no plain URL"),
        ({"token": "workload\u2713token"}, "token has a character that no token has"),
        ({"token": "hunter2\r\nX-Evil: 1"}, "token has a character that no token has"),
    ],
)
def test_a_kubeconfig_that_makes_no_sense_keeps_its_cluster_waiting(
    management: FakeApi, given: dict[str, str], reason: str
) -> None:
    management.react("Cluster", lambda live: put_kubeconfig(management, live, **{"token": TOKEN, **given}))
    report = why(Instance(management.url), reason)
    assert reason in report.message
    assert not {"hunter2", "reboot"} & set(re.findall(r"\w+", report.message))


def test_a_token_may_end_with_a_newline(management: FakeApi) -> None:
    management.react("Cluster", lambda live: put_kubeconfig(management, live, token=f"{TOKEN}\n"))
    Instance(management.url).reconcile([desired()])


def test_a_kubeconfig_leads_to_https_if_the_management_cluster_is_https() -> None:
    content = yaml.safe_dump(kubeconfig("http://10.0.0.1:6443", token=TOKEN))
    where = SecretEntry("default", "blue-kubeconfig", "value")
    with Connection(Endpoint("https://10.0.0.2:6443")) as connection, pytest.raises(InvalidRequest, match="is not https"):
        workload_endpoint(connection, content, where)


def test_what_a_workload_cluster_responds_has_a_limited_size(management: FakeApi) -> None:
    management.react("Cluster", lambda live: put_kubeconfig(management, live, token=TOKEN))
    large = json.dumps({"items": "x" * RESPONSE_LIMIT}).encode()
    management.fail(faults.lie(large), path="^/api/v1/namespaces$", times=1000)
    assert "the response has more than" in why(Instance(management.url), "the response").message
