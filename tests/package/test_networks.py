# SPDX-License-Identifier: Apache-2.0
"""Networks that Pods ask Multus for."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import networks
from tests.instance import deployment, obj


def network(name: str, namespace: str = "default", resource: str = "") -> Object:
    made = obj("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", name, namespace, spec={"config": "{}"})
    made["metadata"]["annotations"] = {networks.RESOURCE: resource} if resource else {}
    return made


def asking(annotation: str, **resources: Any) -> Object:
    made = deployment()
    made["metadata"]["namespace"] = "default"
    template = made["spec"]["template"]
    template["metadata"]["annotations"] = {networks.NETWORKS: annotation}
    template["spec"]["containers"][0]["resources"] = resources
    return made


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        ("n2", [("default", "n2")]),
        ("n2, blue/n3@eth1", [("default", "n2"), ("blue", "n3")]),
        ('[{"name": "n2", "ips": ["10.0.0.1"]}, {"name": "n3", "namespace": "blue"}]', [("default", "n2"), ("blue", "n3")]),
        ("[", None),
        ("n2 n3", None),
        ("[1]", None),
    ],
)
def test_the_annotation_has_names_or_json(annotation: str, found: list[tuple[str, str]] | None) -> None:
    if found is None:
        with pytest.raises(ValueError):
            list(networks.read(annotation, "default"))
    else:
        assert list(networks.read(annotation, "default")) == found


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ([network("n2"), asking("n2")], ""),
        (
            [network("n2network"), asking("n2netwrk")],
            "no NetworkAttachmentDefinition default/n2netwrk; did you mean n2network?",
        ),
        ([network("n2", "blue"), asking("n2")], "write blue/n2"),
        ([asking("n2")], "the cluster must have it"),
        ([asking("[")], "is neither names nor a list in JSON"),
        (
            [network("n2", resource="intel.com/vf"), asking("n2")],
            "wants the resource intel.com/vf, and no container requests it",
        ),
        ([network("n2", resource="intel.com/vf"), asking("n2", requests={"intel.com/vf": 1})], ""),
    ],
)
def test_networks_against_their_definitions(objects: list[Object], problem: str) -> None:
    found = list(networks.problems(objects))
    assert (problem in found[0]) if problem else not found
