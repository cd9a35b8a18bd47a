# SPDX-License-Identifier: Apache-2.0
"""A bare HTTP client for the tests of the fake, and the servers that they run against.

Tests that use `server` say what Kubernetes does. With K8S_CR_COMPARE_KUBECONFIG naming the kubeconfig of a throw-away
cluster they run against that one too, which is how the fake is kept honest.
"""

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import kubernetes
import pytest
import urllib3

from tests.fake_api import FakeApi

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
PLURALS = {"ConfigMap": "configmaps", "Deployment": "deployments", "Namespace": "namespaces", "Secret": "secrets",
           "Service": "services", "Job": "jobs", "ReplicaSet": "replicasets", "Pod": "pods", "CronTab": "crontabs",
           "CustomResourceDefinition": "customresourcedefinitions", "ServiceAccount": "serviceaccounts"}


@dataclass
class Reply:
    status: int
    body: Any
    headers: Any

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


class Client:
    """Requests as dicts in and out, in one namespace."""

    def __init__(self, url: str, namespace: str = "default", read_timeout: float = 10, **tls: Any) -> None:
        self.url = url
        self.namespace = namespace
        self.pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=5, read=read_timeout), **tls)

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json",
             headers: dict[str, str] | None = None, **query: Any) -> Reply:
        data = None if body is None else json.dumps(body)
        reply = self.pool.request(method, self._url(path, query), body=data,
                                  headers={"Content-Type": content_type, **(headers or {})})
        text = reply.headers.get("Content-Type", "").startswith("text/")
        decoded = reply.data.decode() if text else json.loads(reply.data) if reply.data else None
        return Reply(reply.status, decoded, reply.headers)

    def path(self, obj: dict[str, Any], named: bool = True) -> str:
        version, kind = obj["apiVersion"], obj["kind"]
        parts = ["", "apis" if "/" in version else "api", version]
        if kind not in ("Namespace", "CustomResourceDefinition"):
            parts += ["namespaces", obj["metadata"].get("namespace", self.namespace)]
        return "/".join([*parts, PLURALS[kind], *([obj["metadata"]["name"]] if named else [])])

    def apply(self, obj: dict[str, Any], manager: str = "me", sub: str = "", **query: Any) -> Reply:
        return self.call("PATCH", self.path(obj) + sub, obj, APPLY, fieldManager=manager, **query)

    def create(self, obj: dict[str, Any]) -> Reply:
        return self.call("POST", self.path(obj, named=False), obj)

    def get(self, obj: dict[str, Any]) -> Reply:
        return self.call("GET", self.path(obj))

    def delete(self, obj: dict[str, Any], **options: Any) -> Reply:
        return self.call("DELETE", self.path(obj), {"apiVersion": "v1", "kind": "DeleteOptions", **options})

    def watch(self, path: str, **query: Any) -> "Watch":
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": 20, **query}
        return Watch(self.pool.request("GET", self._url(path, query), preload_content=False))

    def _url(self, path: str, query: dict[str, Any]) -> str:
        return f"{self.url}{path}?{urlencode(query)}" if query else self.url + path


class Watch:
    """An open stream. A chunk may hold several events, or part of one."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.status = reply.status
        self._chunks = iter(reply.read_chunked(decode_content=False)) if reply.status == 200 else iter(())
        self._buffer = b""

    def raw(self) -> bytes:
        """The next line; StopIteration at the end of the stream."""
        while b"\n" not in self._buffer:
            self._buffer += next(self._chunks)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def next(self) -> tuple[str, dict[str, Any]]:
        """(type, object) of the next event."""
        event = json.loads(self.raw())
        return event["type"], event["object"]

    def close(self) -> None:
        self.reply.close()


def _real_client() -> Client:
    config = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(os.environ["K8S_CR_COMPARE_KUBECONFIG"], client_configuration=config)
    return Client(config.host, f"compare-{uuid.uuid4().hex[:8]}", ca_certs=config.ssl_ca_cert,
                  cert_file=config.cert_file, key_file=config.key_file)


def _servers() -> list[str]:
    return ["fake", "real"] if os.environ.get("K8S_CR_COMPARE_KUBECONFIG") else ["fake"]


@pytest.fixture(params=_servers())
def server(request: pytest.FixtureRequest, api: FakeApi) -> Iterator[Client]:
    """A client of the fake, and of the real API server if there is one, in a namespace of its own."""
    client = Client(api.url, "compare") if request.param == "fake" else _real_client()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": client.namespace}}
    assert client.create(namespace).status == 201
    yield client
    client.delete(namespace)


@pytest.fixture
def client(api: FakeApi) -> Client:
    """A client of the fake alone."""
    return Client(api.url)


def config_map(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


def crd(group: str = "stable.example.com", status: bool = True) -> dict[str, Any]:
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "required": ["cronSpec"], "properties": {
            "cronSpec": {"type": "string", "pattern": "^\\S+ \\S+$"}, "image": {"type": "string"},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "replicas": {"type": "integer", "minimum": 1},
            "hosts": {"type": "array", "items": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "items": {"type": "object", "required": ["name"], "properties": {
                          "name": {"type": "string"}, "number": {"type": "integer"}}}}}},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "phase": {"type": "string"}}}}}
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        version["subresources"] = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                           "statusReplicasPath": ".status.replicas"}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"crontabs.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "versions": [version],
                     "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "shortNames": ["ct"]}}}


def cron_tab(name: str = "nightly", group: str = "stable.example.com", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "CronTab", "metadata": {"name": name},
            "spec": {"cronSpec": "* *", **spec}}


@pytest.fixture
def cron_tabs(server: Client) -> Iterator[str]:
    """A CRD for CronTab in a group of its own, served; gives the group."""
    group = f"{server.namespace}.example.com"
    declared = crd(group)
    assert server.create(declared).status == 201
    name = declared["metadata"]["name"]
    events = server.watch("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fieldSelector=f"metadata.name={name}")
    while True:
        _, live = events.next()
        if any(c["type"] == "Established" and c["status"] == "True" for c in live.get("status", {}).get("conditions") or []):
            break
    events.close()
    path = f"/apis/{group}/v1/namespaces/{server.namespace}/crontabs"
    while server.call("GET", path).status != 200:  # a real server serves the kind a moment later
        pass
    yield group
    server.delete(declared)
