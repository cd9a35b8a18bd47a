# SPDX-License-Identifier: Apache-2.0
"""Kinds of Cluster API whose VNFCs are Machines: by name, and by the subresource `scale` of their CRD."""

from __future__ import annotations

import pytest

from k8s_cr_driver import capi
from k8s_cr_driver.capi import contract
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from tests.instance import obj

MACHINE = {
    "metadata": {"name": "blue-1"},
    "spec": {"providerID": "test:///1", "version": "v1.36.3", "failureDomain": "asked"},
    "status": {
        "nodeRef": {"name": "node-1"},
        "addresses": [{"type": kind, "address": ip} for kind, ip in (("InternalIP", "192.0.2.1"), ("Hostname", "192.0.2.1"))],
    },
}
LONG = "blue-" + "x" * 59
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}


def crd(**subresources: Object) -> Object:
    return {"spec": {"versions": [{"name": "v1", "served": True, "subresources": subresources}]}}


def of(kind: str, group: str, name: str = "blue", definition: Object | None = None) -> CustomResource:
    return resource_for(obj(f"{group}/v1", kind, name, "default", spec={"size": 3}), definition)


@pytest.mark.parametrize("group", ["controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io"])
def test_a_kind_of_any_provider_with_the_subresource_scale_has_machines(group: str) -> None:
    one = of("Other", group, definition=crd(scale=SCALE))
    children = one.children({"status": {"selector": "a=b"}})
    assert one.replicas() == ("spec", "size")
    assert children is not None
    assert (children.kind, children.selector, children.by_selector) == (contract.MACHINES, "a=b", False)


def test_a_control_plane_of_a_cloud_without_the_subresource_has_none() -> None:
    one = of("CloudControlPlane", contract.CONTROL_PLANE_GROUP, definition=crd())
    assert isinstance(one, capi.ControlPlane)
    assert (one.children(), one.replicas()) == (None, None)


def test_groups_that_only_sound_alike_are_no_kinds_of_cluster_api() -> None:
    assert type(of("Cluster", "mycluster.x-k8s.io")) is CustomResource


def test_etcd_keeps_its_quorum_in_a_control_plane_of_any_provider() -> None:
    one = of("OtherControlPlane", contract.CONTROL_PLANE_GROUP, definition=crd(scale=SCALE))
    assert [one.scaling().max_unavailable(count) for count in range(6)] == [0, 0, 0, 1, 1, 2]


def test_names_too_long_for_a_label_are_hashed_in_selectors() -> None:
    """The hash is that of Cluster API's own format.MustFormatValue."""
    assert contract.label_value("b" * 63) == "b" * 63
    assert contract.label_value(LONG) == "hash_ht6pOA_z"
    children = of("KubeadmControlPlane", contract.CONTROL_PLANE_GROUP, LONG).children()
    assert children is not None
    assert children.selector == "cluster.x-k8s.io/control-plane-name=hash_ht6pOA_z"


def test_the_metadata_of_a_machine_are_those_that_it_has() -> None:
    assert contract.machine_metadata(MACHINE) == {
        "machine": "blue-1",
        "node": "node-1",
        "providerID": "test:///1",
        "addresses": "192.0.2.1",
        "version": "v1.36.3",
        "failureDomain": "asked",
    }
    placed = {**MACHINE, "status": {"failureDomain": "given", "addresses": None}}
    assert contract.machine_metadata(placed).keys() == {"machine", "providerID", "version", "failureDomain"}
    assert contract.machine_metadata(placed)["failureDomain"] == "given"
    assert contract.machine_metadata({"metadata": {"name": "new"}, "spec": "text"}) == {"machine": "new"}
