# SPDX-License-Identifier: Apache-2.0
"""A management cluster with the Cluster of an instance, and its workload cluster, both on fake API servers."""

from __future__ import annotations

import base64
from typing import Any

import yaml

from tests.cli.tool import kubeconfig
from tests.fake_api import FakeApi
from tests.instance import BLUE, obj

GROUP = "cluster.x-k8s.io"
NAME = "default/red"
TOKEN = "workload-token-0123456789abcdef"
HMAC_KEY = "00112233445566778899aabbccddeeff00112233"


def cluster_crd(version: str = "v1beta2") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "clusters", "singular": "cluster", "kind": "Cluster"}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"clusters.{GROUP}", spec=spec)


def put_cluster(api: FakeApi, name: str = "red", instance: str = BLUE, manager: str = "", version: str = "v1beta2") -> None:
    """A Cluster as the driver applies it for `instance`."""
    manifest = obj(f"{GROUP}/{version}", "Cluster", name, spec={})
    manifest["metadata"]["labels"] = {"tacker_vnf_instance_id": instance}
    api.put(manifest, manager=manager or f"k8s-cr-driver-{instance}")


def put_kubeconfig(api: FakeApi, workload: FakeApi, name: str = "red", token: str = TOKEN) -> str:
    """The Secret that Cluster API writes; returns the kubeconfig."""
    text = kubeconfig_of(workload, token)
    put_secret(api, f"{name}-kubeconfig", {"value": text})
    return text


def kubeconfig_of(workload: FakeApi, token: str = TOKEN) -> str:
    content = kubeconfig(workload.url, token=token)
    content["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(workload.ca_cert.encode()).decode()
    return yaml.safe_dump(content)


def put_secret(api: FakeApi, name: str, values: dict[str, str], namespace: str = "default") -> None:
    if namespace != "default":
        api.put(obj("v1", "Namespace", namespace))
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    api.put(obj("v1", "Secret", name, namespace=namespace, data=data))
