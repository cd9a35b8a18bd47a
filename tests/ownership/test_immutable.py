# SPDX-License-Identifier: Apache-2.0
"""`validate --update-of` and the engine call the same changes immutable, whatever the words of the API server."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from k8s_cr_driver.cli.package_update import immutable_changes
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.objects.immutable import changed_fields
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.ownership.labels import SHARED
from k8s_cr_driver.ownership.write_errors import Immutable, explained
from k8s_cr_driver.resources.registry import resource_for
from tests.instance import BLUE, obj

RBAC = "rbac.authorization.k8s.io/v1"


class Case(NamedTuple):
    """A field of a kind with two values, and the field in the API server's response to the change."""

    api_version: str
    kind: str
    path: str
    before: Any
    after: Any
    where: str

    def manifest(self, value: Any, **fields: Any) -> Object:
        first, *rest = self.path.split(".")
        for step in reversed(rest):
            value = {step: value}
        return obj(self.api_version, self.kind, "blue", **{first: value, **fields})


CASES = [
    Case("apps/v1", "StatefulSet", "spec.serviceName", "a", "b", "spec"),
    Case("apps/v1", "Deployment", "spec.selector", {"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "2"}}, "spec.selector"),
    Case(RBAC, "RoleBinding", "roleRef", {"name": "a"}, {"name": "b"}, "roleRef"),
    Case(RBAC, "ClusterRoleBinding", "roleRef", {"name": "a"}, {"name": "b"}, "roleRef"),
    Case("scheduling.k8s.io/v1", "PriorityClass", "value", 1, 2, "value"),
    Case("storage.k8s.io/v1", "StorageClass", "provisioner", "a", "b", "provisioner"),
    Case("v1", "PersistentVolumeClaim", "spec.storageClassName", "a", "b", "spec"),
    Case("v1", "Service", "spec.clusterIP", "10.0.0.1", "10.0.0.2", "spec.clusterIP"),
    Case("networking.k8s.io/v1", "IngressClass", "spec.controller", "a", "b", "spec.controller"),
    Case("apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec.scope", "Cluster", "Namespaced", "spec.scope"),
    Case("v1", "Secret", "type", "a", "b", "type"),
]
REPLACED = [
    Case("batch/v1", "Job", "spec.template", {"metadata": {}}, {"metadata": {"labels": {"a": "b"}}}, "spec.template"),
    Case("v1", "Pod", "spec", {"nodeName": "a"}, {"nodeName": "b"}, "spec"),
]


def judged(old: Object, new: Object, where: str) -> Exception:
    """What the engine makes of a refusal that says nothing of immutability."""
    refusal = ApiError("PATCH", 422, "Invalid", "no", [("FieldValueInvalid", where, "no")])
    return explained(refusal, resource_for(new), BLUE, old)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.path}")
def test_validate_and_the_engine_call_the_same_change_immutable(case: Case) -> None:
    old, new = case.manifest(case.before), case.manifest(case.after)
    [problem] = immutable_changes([old], [new])
    assert f"{case.path} is immutable and changes" in problem
    if key_of(new).group_kind in SHARED:
        assert problem.endswith("changes. Keep it, or rename the object: its kind is never replaced")
        assert "It is never replaced" in str(judged(old, new, case.where))
    else:
        assert isinstance(judged(old, new, case.where), Immutable)


@pytest.mark.parametrize("case", REPLACED, ids=lambda case: case.kind)
def test_a_kind_that_is_always_replaced_is_no_problem_for_either(case: Case) -> None:
    old, new = case.manifest(case.before), case.manifest(case.after)
    assert not list(immutable_changes([old], [new]))
    assert isinstance(judged(old, new, case.where), Immutable)
    assert resource_for(new).replace_strategy()


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
@pytest.mark.parametrize("frozen", [True, False])
def test_data_is_immutable_only_where_the_object_says_so(kind: str, frozen: bool) -> None:
    old, new = (obj("v1", kind, "blue", data={"a": value}, immutable=frozen) for value in "xy")
    assert bool(list(immutable_changes([old], [new]))) == frozen
    assert isinstance(judged(old, new, "data"), Immutable) == frozen


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.path}")
def test_a_field_that_stays_is_no_change(case: Case) -> None:
    old = case.manifest(case.before)
    assert not changed_fields(old, old)
    assert not isinstance(judged(old, old, case.where), Immutable)


def test_a_refusal_of_another_field_is_not_one_of_immutability() -> None:
    old, new = (CASES[1].manifest(value) for value in (CASES[1].before, CASES[1].after))
    assert not isinstance(judged(old, new, "spec.replicas"), Immutable)


def test_a_pod_whose_new_manifest_is_wrong_is_not_replaced() -> None:
    """Its spec differs from the live one, which has defaults, in any case."""
    old, new = (REPLACED[1].manifest(value) for value in (REPLACED[1].before, REPLACED[1].after))
    assert not isinstance(judged(old, new, "spec.containers[0].image"), Immutable)
