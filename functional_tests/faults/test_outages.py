# SPDX-License-Identifier: Apache-2.0
"""What goes away, or changes, in the middle of an operation: a login, an authority, a webhook."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.errors import ConnectionFailed
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from tests.fake_api.tls import server_context

from ..cluster import Cluster
from ..conftest import MakeEngine
from ..engine import Engine
from ..objects import Place, config_map, make, namespace
from ..proxy import Proxy, Upstream
from ..testbed import network
from ..testbed.bed import Environment
from ..testbed.processes import until
from ..vim import NAMESPACE, connection_info

PLACE = Place("outages")

# Seconds; several attempts of the driver.
DOWN_FOR = 10.0

# The ConfigMap is to be written when the Turbine is ready: a request that has to come after whatever has happened.
PACKAGE = [
    PLACE.crd("Turbine", status=True),
    PLACE.custom("Turbine", "main", PLACE.name, power=1),
    config_map("after", PLACE.name, a="1"),
]
TURBINE = f"{PLACE.group}/namespaces/{PLACE.name}/Turbine/main"
PACKAGE[2]["metadata"]["annotations"] = {"config.kubernetes.io/depends-on": TURBINE}
MADE = ["ConfigMap outages/after", f"CustomResourceDefinition turbines.{PLACE.group}", "Turbine outages/main"]


def make_ready(cluster: Cluster) -> None:
    """As the Turbine's controller."""
    ready = {"type": "Ready", "status": "True", "reason": "Runs", "message": ""}
    ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    cluster.set_status("Turbine", "main", PLACE.name, PLACE.version, observedGeneration=1, conditions=[ready])


def uid(cluster: Cluster) -> str:
    live = cluster.get("Turbine", "main", PLACE.name, PLACE.version)
    assert live is not None
    return str(live["metadata"]["uid"])


def test_an_expired_token_is_reported_and_a_retry_with_a_new_one_goes_on(
    make_engine: MakeEngine, bed: Environment, cluster: Cluster
):
    def login() -> Endpoint:
        vim = connection_info(Path(bed["KUBECONFIG"]), "short-lived")
        return vim_endpoint(vim["interfaceInfo"], vim["accessInfo"])

    engine = make_engine(login())
    run = engine.start(PACKAGE, seconds=120)
    engine.wait_until_reported("main", "Waiting")
    before = uid(cluster)
    cluster.delete("ServiceAccount", "short-lived", NAMESPACE)
    assert until(lambda: not is_accepted(engine.endpoint), 30)
    make_ready(cluster)
    with pytest.raises(ConnectionFailed, match=r"does not accept the credentials \(401\)"):
        run.result(120)  # an API server that starts refuses for a while, too
    assert cluster.get("ConfigMap", "after", PLACE.name) is None
    engine.endpoint = login()
    engine.reconcile(PACKAGE)
    assert (cluster.of(engine.id), uid(cluster)) == (MADE, before)


def is_accepted(endpoint: Endpoint) -> bool:
    """The API server believes in a token for some seconds after it has looked at it."""
    answer = Upstream(endpoint.url, endpoint.ca).request("GET", "/api", {"Authorization": endpoint.authorization}, b"")
    answer.drain_conn()
    return answer.status != 401


def test_another_authority_is_reported_and_a_retry_with_its_certificate_goes_on(
    make_engine: MakeEngine, endpoint: Endpoint, cluster: Cluster
):
    """The API server is behind a proxy whose certificate an authority has made that is replaced meanwhile."""
    context, ca = server_context()
    with Proxy(Upstream(endpoint.url, endpoint.ca), context) as proxy:
        engine = make_engine(replace(endpoint, url=proxy.url, ca=ca))
        run = engine.start(PACKAGE)
        engine.wait_until_reported("main", "Waiting")
        before = uid(cluster)
        proxy.tls, new_ca = server_context()
        proxy.drop_connections()
        with pytest.raises(ConnectionFailed, match=r"was not accepted: "):
            run.result()
        make_ready(cluster)
        engine.endpoint = replace(engine.endpoint, ca=new_ca)
        engine.reconcile(PACKAGE)
        assert (cluster.of(engine.id), uid(cluster)) == (MADE, before)
        engine.terminate()


class Review(BaseHTTPRequestHandler):
    """A validating webhook that allows everything."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": asked["request"]["uid"], "allowed": True},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def webhook_down(cluster: Cluster, where: str) -> Iterator[ThreadingHTTPServer]:
    """A webhook for the ConfigMaps of a Namespace, on a port that refuses connections until `server_activate`."""
    context, ca = server_context(str(network.HOST))
    server = ThreadingHTTPServer((str(network.HOST), 0), Review, bind_and_activate=False)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.server_bind()
    webhook = {
        "name": "review.example.com",
        "clientConfig": {
            "url": f"https://{network.HOST}:{server.server_port}/",
            "caBundle": base64.b64encode(ca.encode()).decode(),
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": where}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    configuration = make(
        "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "review.example.com", webhooks=[webhook]
    )
    with cluster.holding(configuration), server:
        yield server
        server.shutdown()


def test_a_webhook_that_is_down_is_waited_for(engine: Engine, cluster: Cluster):
    with cluster.holding(namespace("reviewed")), webhook_down(cluster, "reviewed") as server:
        run = engine.start([config_map("under-review", "reviewed", a="1")])
        assert not until(run.done, DOWN_FOR), "the webhook has not been asked"
        server.server_activate()
        threading.Thread(target=server.serve_forever).start()
        run.result(30)
        assert cluster.of(engine.id) == ["ConfigMap reviewed/under-review"]
        engine.terminate()
