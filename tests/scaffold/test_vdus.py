# SPDX-License-Identifier: Apache-2.0
"""Which objects become VDUs, and how they scale."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.scaffold import vdus
from k8s_cr_driver.scaffold.model import Vdu
from tests.instance import crontab, deployment, obj, scalable

CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"


def counted(made: Object, count: Any) -> Object:
    return {**made, "spec": {**made["spec"], "replicas": count}}


def with_default(crd: Object, default: int) -> Object:
    [version] = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["default"] = default
    return crd


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([deployment()], ("web", 1, True, 1, 1)),
        ([counted(deployment(), 4)], ("web", 4, True, 1, 1)),
        ([counted(deployment(), 0)], ("web", 0, True, 0, 1)),
        ([counted(deployment(), "${COPIES}")], ("web", None, True, 2, 1)),
        ([counted(deployment(), "${OTHER}")], ("web", None, True, 1, 1)),
        ([counted(obj(CONTROL_PLANE, "KubeadmControlPlane", "cp", spec={}), 3)], ("cp", 3, True, 1, 2)),
        ([scalable(), crontab("one")], ("one", None, False, 1, 1)),
        ([with_default(scalable(), 2), crontab("one")], ("one", 2, True, 1, 1)),
    ],
)
def test_the_count_and_the_steps(objects: list[Object], expected: tuple[Any, ...]) -> None:
    [vdu], _, _ = vdus.of(objects, "default", {"COPIES": 2})
    assert (vdu.id, vdu.count, vdu.aspect, vdu.least, vdu.delta) == expected


def test_the_level_of_a_count() -> None:
    levels = [Vdu("a", "a", "", count, True, least, delta).level for count, least, delta in ((3, 1, 1), (5, 1, 2), (0, 0, 1))]
    assert levels == [2, 2, 0]


def test_a_name_with_a_parameter_is_found_by_an_annotation() -> None:
    [vdu], [made], _ = vdus.of([deployment("${NAME}-web")], "default", {})
    assert (vdu.id, made["metadata"]["annotations"]) == ("name-web", {"k8s-cr-driver/vdu": "name-web"})


def test_an_annotation_of_the_author_names_the_vdu() -> None:
    made = obj("apps/v1", "Deployment", "web", spec={})
    made["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Front"}
    [vdu], [after], _ = vdus.of([made], "default", {})
    assert (vdu.id, after) == ("Front", made)


@pytest.mark.parametrize(("its", "target"), [("", "default"), ("default", ""), ("", "")])
def test_an_autoscaler_is_found_with_and_without_a_namespace(its: str, target: str) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    hpa = obj("autoscaling/v2", "HorizontalPodAutoscaler", "hpa", its, spec={"scaleTargetRef": reference})
    [vdu], _, [choice] = vdus.of([hpa, obj("apps/v1", "Deployment", "web", target, spec={})], "default", {})
    assert (vdu.aspect, "sets its count" in choice.why) == (False, True)
