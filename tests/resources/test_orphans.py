# SPDX-License-Identifier: Apache-2.0
"""What a workload has left that was deleted, by the names that its controller gives: Pods, and claims of a StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.resources.registry import resource_for
from tests.instance import obj


@pytest.mark.parametrize(
    ("kind", "metadata", "is_left"),
    [
        ("StatefulSet", {"name": "web-0"}, True),
        ("StatefulSet", {"name": "web-12"}, True),
        ("StatefulSet", {"name": "web-shell"}, False),
        ("StatefulSet", {"name": "web-"}, False),
        ("StatefulSet", {"name": "web-²"}, False),
        ("StatefulSet", {"name": "my-web-0"}, False),
        ("StatefulSet", {"name": "web-1-0"}, False),
        ("Deployment", {"name": "web-5d8f7c", "labels": {"pod-template-hash": "5d8f7c"}}, True),
        ("Deployment", {"name": "web-5d8f7c", "labels": {"pod-template-hash": "aaaaaa"}}, False),
        ("Deployment", {"name": "web-5d8f7c"}, False),
        ("ReplicaSet", {"name": "web-x7k2p", "generateName": "web-"}, True),
        ("ReplicaSet", {"name": "web-x7k2p"}, False),
        ("ReplicaSet", {"name": "web-a-x7k2p", "generateName": "web-a-"}, False),
        ("DaemonSet", {"name": "web-x7k2p", "generateName": "web-"}, True),
        ("DaemonSet", {"name": "web-x7k2p", "generateName": None}, False),
    ],
)
def test_what_a_workload_has_left(kind: str, metadata: dict[str, Any], is_left: bool) -> None:
    assert resource_for(obj("apps/v1", kind, "web", "default", spec={})).has_controlled({"metadata": metadata}) is is_left


def test_other_kinds_leave_nothing() -> None:
    assert not resource_for(obj("example.org/v1", "Set", "web", "default")).has_controlled({"metadata": {"name": "web-0"}})


def test_a_stateful_set_leaves_claims_only_of_templates() -> None:
    """So nothing is said to be kept of one without any, whatever its policy."""
    spec = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}, "selector": {"matchLabels": {"app": "web"}}}
    assert resource_for(obj("apps/v1", "StatefulSet", "web", "default", spec=spec)).orphans() is None
    spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
    left = resource_for(obj("apps/v1", "StatefulSet", "web", "default", spec=spec)).orphans()
    assert (left.selector, left.are_kept, left.names.pattern) == ("app=web", True, "(data)-web-[0-9]+")


def test_claims_that_no_label_tells_apart_are_not_looked_for() -> None:
    spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    left = resource_for(obj("apps/v1", "StatefulSet", "web", "default", spec=spec)).orphans()
    assert left.selector is None
    claim = obj("v1", "PersistentVolumeClaim", "data-web-0", "default")
    assert left.may_include(claim)
    assert not left.may_include({**claim, "metadata": {"name": "data-web-0", "namespace": "other"}})
