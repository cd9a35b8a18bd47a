# SPDX-License-Identifier: Apache-2.0
"""Which object each VDU is: by annotation, by name, or an error that says what to do."""

from __future__ import annotations

import pytest

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf.counts import with_counts
from k8s_cr_driver.vnf.vdus import VDU, assign
from tests.instance import config_map, obj


def deployment(name: str, vdu: str = "", namespace: str = "default", kind: str = "Deployment") -> CustomResource:
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}}
    made = obj("apps/v1", kind, name, namespace, spec=spec)
    if vdu:
        made["metadata"]["annotations"] = {VDU: vdu}
    return resource_for(made)


def node(name: str) -> Object:
    return {"type": "tosca.nodes.nfv.Vdu.Compute", "properties": {"name": name}}


def test_a_vdu_is_the_scalable_object_of_its_name() -> None:
    objects = [resource_for(config_map("web")), deployment("web"), deployment("db")]
    found = assign(objects, {"VDU1": node("web"), "VDU2": node("db")})
    assert {vdu: str(one.key) for vdu, one in found.items()} == {
        "VDU1": "Deployment.apps default/web", "VDU2": "Deployment.apps default/db",
    }


def test_the_annotation_wins_over_the_name() -> None:
    assert assign([deployment("web"), deployment("other", vdu="VDU1")], {"VDU1": node("web")})["VDU1"].key.name == "other"


def test_an_object_that_is_annotated_for_one_vdu_is_not_another_by_its_name() -> None:
    objects = [deployment("web", vdu="VDU2"), deployment("web", namespace="blue")]
    found = assign(objects, {"VDU1": node("web"), "VDU2": node("other")})
    assert {vdu: one.key.namespace for vdu, one in found.items()} == {"VDU1": "blue", "VDU2": "default"}


def test_of_a_part_of_a_package_only_the_vdus_that_are_there_are_assigned() -> None:
    nodes = {"VDU1": node("web"), "VDU2": node("db")}
    assert assign([deployment("web")], nodes, partial=True).keys() == {"VDU1"}
    with pytest.raises(InvalidPackage, match=r"VDU VDU1 is several objects"):
        assign([deployment("web"), deployment("web", kind="StatefulSet")], nodes, partial=True)


ONE, TWO = {"VDU1": node("web")}, {"VDU1": node("web"), "VDU2": node("web")}
BOTH = [deployment("web"), deployment("web", kind="StatefulSet")]
NO_OBJECT = rf"VDU VDU1 is no object.*named 'web'\. Annotate exactly one object with {VDU}: VDU1"


@pytest.mark.parametrize(
    ("objects", "nodes", "words"),
    [
        ([resource_for(config_map("web"))], ONE, NO_OBJECT),
        ([deployment("other")], ONE, NO_OBJECT),
        (BOTH, ONE, r"VDU1 is several objects: Deployment.apps default/web, StatefulSet.apps default/web\."),
        ([deployment("web")], TWO, r"VDUs VDU1 and VDU2 are one object: Deployment\.apps default/web\."),
        ([deployment("web", vdu="VDU9")], TWO, r"Deployment.apps default/web: .* names 'VDU9'.* Its VDUs: VDU1, VDU2\."),
    ],
)
def test_what_is_no_object_of_its_own_is_an_error_with_the_remedy(
    objects: list[CustomResource], nodes: dict[str, Object], words: str
) -> None:
    with pytest.raises(InvalidPackage, match=words):
        assign(objects, nodes)


def test_each_object_is_looked_at_once_for_any_number_of_vdus(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[CustomResource] = []
    annotations = CustomResource.annotations
    monkeypatch.setattr(CustomResource, "annotations", lambda obj: looks.append(obj) or annotations(obj))
    objects = [deployment(f"web{number}") for number in range(20)]
    assert assign(objects, {f"VDU{number}": node(f"db{number}") for number in range(20)}, partial=True) == {}
    assert looks == objects


def with_replicas(obj: CustomResource, count: int) -> CustomResource:
    return with_counts({"VDU": obj}, {"VDU": count})["VDU"]


def test_a_count_is_put_where_the_kind_has_it_and_the_original_stays() -> None:
    web = deployment("web")
    assert with_replicas(web, 5).manifest["spec"]["replicas"] == 5
    assert web.manifest["spec"]["replicas"] == 1
    bare = obj("apps/v1", "Deployment", "bare", "default")
    assert with_replicas(resource_for(bare), 2).manifest["spec"] == {"replicas": 2}


def test_a_spec_without_room_for_a_count_is_an_error_that_names_it() -> None:
    spoiled = resource_for(obj("apps/v1", "Deployment", "web", "default", spec="text"))
    with pytest.raises(InvalidPackage, match=r"Deployment.apps default/web: spec: is text, must be a mapping"):
        with_replicas(spoiled, 2)
    empty = resource_for(obj("apps/v1", "Deployment", "web", "default", spec=None))
    assert with_replicas(empty, 2).manifest["spec"] == {"replicas": 2}


def test_a_kind_without_a_count_is_left_as_it_is() -> None:
    daemon = deployment("every-node", kind="DaemonSet")
    assert with_replicas(daemon, 5).manifest == daemon.manifest
