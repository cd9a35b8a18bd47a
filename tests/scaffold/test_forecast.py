# SPDX-License-Identifier: Apache-2.0
"""Which kinds of a package would wait for a status that nothing of it writes."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.scaffold import forecast
from tests.instance import crontab, crontab_crd, deployment, obj

STATUS = {"type": "object", "properties": {"phase": {"type": "string"}}}
RBAC = "rbac.authorization.k8s.io/v1"


def crd(status: Any = STATUS) -> Object:
    made = crontab_crd()
    for version in made["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        properties.pop("status", None)
        if status:
            properties["status"] = status
    return made


def controller(group: str = "stable.example.com", namespace: str = "blue") -> list[Object]:
    """Its account is named in the namespace, as charts do, while the workload names none."""
    rules = [{"apiGroups": [group], "resources": ["crontabs/status"], "verbs": ["update"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    subject = {"kind": "ServiceAccount", "name": "a", "namespace": namespace}
    binding = obj(RBAC, "ClusterRoleBinding", "b", roleRef=role, subjects=[subject])
    return [obj(RBAC, "ClusterRole", "r", rules=rules), binding, deployment("controller", serviceAccountName="a")]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([crd(), crontab("one"), crontab("two")], ["CronTab.stable.example.com (one, two)"]),
        ([crd(None), crontab("one")], []),
        ([crontab("one")], []),
        ([crd(), crontab("one"), *controller()], []),
        ([crd(), crontab("one"), *controller(group="*")], []),
        ([crd(), crontab("one"), *controller(group="other.example.com")], ["CronTab.stable.example.com (one)"]),
        ([crd(), crontab("one"), *controller(namespace="red")], ["CronTab.stable.example.com (one)"]),
    ],
)
def test_kinds_whose_status_nobody_writes(objects: list[Object], expected: list[str]) -> None:
    assert [one.subject for one in forecast.of(objects, "blue")] == expected


def test_the_remedy_ends_the_wait() -> None:
    made = crontab("one")
    made["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    assert forecast.of([crd(), made], "blue") == []
