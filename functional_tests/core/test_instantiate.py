# SPDX-License-Identifier: Apache-2.0
"""Instantiate and terminate: objects of every kind, wherever they are written and wherever they are to be."""

import pytest

from ..cluster import CRDS, Cluster
from ..objects import Place, annotated, config_map, deployment, make, namespace
from ..packages import Package
from ..vnf import Vnf

KINDS = Place("instantiate")

REVIEW = {
    **make("authorization.k8s.io/v1", "SelfSubjectAccessReview", "review"),
    "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
}
TOKEN_REVIEW = {**make("authentication.k8s.io/v1", "TokenReview", "review"), "spec": {"token": "none"}}

SELECTORS = KINDS.crd("Selector")
SELECTORS["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
    "type": "object",
    "properties": {
        "selector": {
            "type": "object",
            "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}},
        },
        "note": {"type": "string", "nullable": True},
    },
}

PACKAGE = Package(
    {
        "resources.yaml": [
            KINDS.custom("Gadget", "first"),
            KINDS.custom("Gadget", "second", "blue"),
            KINDS.custom("Planet", "earth"),
        ],
        "definitions.yaml": [KINDS.crd("Gadget"), KINDS.crd("Planet", scope="Cluster")],
        "namespaced.yaml": [config_map("own", "blue", a="1"), config_map("given", a="1"), namespace("blue")],
        "list.yaml": {
            "apiVersion": "v1",
            "kind": "List",
            "items": [config_map("one", a="1"), {"apiVersion": "v1", "kind": "List", "items": [config_map("two", a="1")]}],
        },
        "reviews.yaml": [REVIEW, TOKEN_REVIEW],
        "cluster.yaml": [
            make("scheduling.k8s.io/v1", "PriorityClass", "test-priority", value=7),
            make("rbac.authorization.k8s.io/v1", "ClusterRole", "test-role", rules=[]),
        ],
        "web.yaml": [
            deployment("web", 2),
            make("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
        ],
        "nulls.yaml": [SELECTORS, KINDS.custom("Selector", "null", selector={"matchLabels": None}, note=None)],
        "stubborn.yaml": annotated(
            {**deployment("never", image="example.org/unknown:1"), "apiVersion": "apps/v1"}, ready_when="stored"
        ),
    }
)


def test_crds_and_their_custom_resources_in_any_order_and_scope(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("resources.yaml", "namespaced.yaml", "definitions.yaml")
    assert cluster.of(vnf.id) == [
        "ConfigMap blue/own",
        "ConfigMap default/given",
        f"CustomResourceDefinition gadgets.{KINDS.group}",
        f"CustomResourceDefinition planets.{KINDS.group}",
        "Gadget blue/second",
        "Gadget default/first",
        "Namespace blue",
        "Planet earth",
    ]
    vnf.terminate()
    assert cluster.of(vnf.id) == []
    assert cluster.get("CustomResourceDefinition", f"gadgets.{KINDS.group}", api_version=CRDS) is None
    assert cluster.get("Namespace", "blue") is None


def test_a_namespace_that_is_given_is_for_those_without_one(vnf: Vnf, cluster: Cluster):
    with cluster.holding(namespace("given")):
        vnf.instantiate("namespaced.yaml", "list.yaml", namespace="given")
        assert cluster.of(vnf.id) == [
            "ConfigMap blue/own", "ConfigMap given/given", "ConfigMap given/one", "ConfigMap given/two", "Namespace blue",
        ]  # fmt: skip
        vnf.terminate()
        assert cluster.get("Namespace", "given") is not None


def test_kinds_that_can_only_be_created_and_kinds_of_the_cluster(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("reviews.yaml", "cluster.yaml")
    assert cluster.of(vnf.id) == ["ClusterRole test-role", "PriorityClass test-priority"]
    vnf.terminate()
    assert cluster.of(vnf.id) == []


@pytest.mark.parametrize("graceful_timeout", [None, 1])
def test_terminate_takes_workloads_with_their_pods(vnf: Vnf, cluster: Cluster, graceful_timeout: int | None):
    vnf.instantiate("web.yaml")
    assert len(cluster.all("Pod", "default", "app=web")) == 2
    vnf.terminate(graceful_timeout)
    assert cluster.of(vnf.id) == []
    assert cluster.all("Pod", "default", "app=web") == []
    assert cluster.all("ReplicaSet", "default", "app=web", "apps/v1") == []


def test_a_custom_resource_is_what_its_manifest_says(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("resources.yaml", "definitions.yaml", "namespaced.yaml")
    live = cluster.get("Gadget", "first", "default", KINDS.version)
    assert live is not None and live["metadata"]["labels"]["tacker_vnf_instance_id"] == vnf.id


def test_stored_is_enough_for_what_says_so(vnf: Vnf, cluster: Cluster):
    vnf.instantiate("stubborn.yaml", wait_timeout=15)
    live = cluster.get("Deployment", "never", "default", "apps/v1")
    assert live is not None and not live.get("status", {}).get("readyReplicas")


def test_nulls_are_as_kubectl_apply_has_them(vnf: Vnf, cluster: Cluster):
    """It takes `matchLabels: null`, which server-side apply refuses, and keeps the nulls that the schema allows."""
    vnf.instantiate("nulls.yaml")
    live = cluster.get("Selector", "null", "default", KINDS.version)
    assert live is not None and live["spec"] == {"selector": {}, "note": None}
