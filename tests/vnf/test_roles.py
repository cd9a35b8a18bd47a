# SPDX-License-Identifier: Apache-2.0
"""The roles of an account for one package: enough, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.cli import package_input
from k8s_cr_driver.cli.package_request import Wish
from k8s_cr_driver.cli.role import objects_of, plural_without_cluster
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.vnf import roles
from tests.instance import config_map, crontab, crontab_crd, deployment, obj, stateful_set

ROOT = Path(__file__).parents[2]
RBAC = "rbac.authorization.k8s.io/v1"
ACCOUNT = roles.Account("kube-system", "tacker")
ALL = ("create", "patch", "get", "list", "watch", "delete")


def permissions(made: list[Object]) -> set[tuple[str, str, str, str]]:
    """(namespace, group, resource, verb) of all rules that name no objects."""
    return {
        (one["metadata"].get("namespace", ""), group, resource, verb)
        for one in made
        for rule in one.get("rules", ())
        if "resourceNames" not in rule
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def made_for(*objects: Object) -> list[Object]:
    several = list(objects)
    package_input.place(several, "blue")
    return roles.of(several, plural_without_cluster(several), "default", ACCOUNT)


@pytest.mark.parametrize(
    ("package", "file"),
    [("sample_packages/crontab", "cluster_role.yaml"), ("doc/source/tutorial/package", "role.yaml")],
)
def test_it_has_what_functional_tests_need(package: str, file: str) -> None:
    """Those documents are the roles with which the packages were run."""
    objects, _ = objects_of(ROOT / package, Wish("default"))
    made = permissions(roles.of(objects, plural_without_cluster(objects), "default", ACCOUNT))
    run = permissions(list(yaml.safe_load_all((ROOT / "doc/source/operator" / file).read_text())))
    held = {one[1:] for one in made}
    optional = {"pods", "horizontalpodautoscalers"} if package == "sample_packages/crontab" else {"pods"}
    assert {one[1:] for one in run if one[2] not in optional} <= held


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([config_map("a", "red")], {("red", "", "configmaps", verb) for verb in ALL}),
        ([crontab_crd(), crontab("one")], {("", "apiextensions.k8s.io", "customresourcedefinitions", verb) for verb in ALL}),
        ([crontab("one")], {("default", "stable.example.com", "crontabs", "patch")}),
        ([crontab("one")], {("", "apiextensions.k8s.io", "customresourcedefinitions", "get")}),
        ([deployment()], {("blue", "", "pods", "delete"), ("blue", "apps", "replicasets", "list")}),
        ([stateful_set("db")], {("default", "", "persistentvolumeclaims", verb) for verb in ("get", "delete")}),
        ([obj("v1", "Namespace", "new"), config_map("a", "new")], {("", "", "configmaps", "create")}),
        ([obj("v1", "Namespace", "n")], {("", "", "pods", "list"), ("", "", "namespaces", "patch")}),
        ([obj("v1", "Namespace", "n")], {("", "batch", "cronjobs", "list"), ("", "apps", "daemonsets", "list")}),
        ([obj("v1", "Namespace", "n")], {("", "apiextensions.k8s.io", "customresourcedefinitions", "list")}),
        ([obj("networking.k8s.io/v1", "NetworkPolicy", "n")], {("blue", "networking.k8s.io", "networkpolicies", "get")}),
        ([obj("v1", "Endpoints", "e")], {("blue", "", "endpoints", "get")}),
    ],
)
def test_what_is_needed(objects: list[Object], expected: set[tuple[str, str, str, str]]) -> None:
    assert expected <= permissions(made_for(*objects))


def test_no_more_than_that() -> None:
    assert permissions(made_for(config_map("a", "blue"))) == {
        *(("default", "", "configmaps", verb) for verb in ALL),
        *(("blue", "", "configmaps", verb) for verb in ALL),
        ("blue", "", "events", "list"),
    }


def test_the_roles_of_the_package_are_part_of_its_own() -> None:
    rule = {"apiGroups": ["a.example.com"], "resources": ["*"], "verbs": ["use"], "resourceNames": ["x"]}
    made = made_for(obj(RBAC, "Role", "r", "blue", rules=[rule]), obj(RBAC, "ClusterRole", "c", rules=[rule]))
    found = {one["metadata"].get("namespace", ""): one["rules"] for one in made if "rules" in one}
    assert rule in found["blue"] and rule in found[""]


@pytest.mark.parametrize(
    ("is_own", "kind", "resource"), [(True, "Role", ""), (False, "Role", "roles"), (False, "ClusterRole", "clusterroles")]
)
def test_a_role_of_others_may_be_bound_by_its_name(is_own: bool, kind: str, resource: str) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
    binding = obj(RBAC, "RoleBinding", "b", "blue", roleRef=reference, subjects=[])
    own: list[Any] = [obj(RBAC, kind, "r", "blue", rules=[])] if is_own else []
    bound = [
        (rule["resources"], rule["resourceNames"])
        for one in made_for(binding, *own)
        for rule in one.get("rules", ())
        if rule["verbs"] == ["bind"]
    ]
    assert bound == ([([resource], ["r"])] if resource else [])


def test_each_role_is_bound_to_the_account() -> None:
    made = made_for(crontab_crd(), crontab("one"), config_map("a", "red"))
    bindings = [one for one in made if "subjects" in one]
    assert {one["metadata"].get("namespace", "") for one in bindings} == {"", "red", "default"}
    assert all(
        one["subjects"] == [{"kind": "ServiceAccount", "name": "tacker", "namespace": "kube-system"}] for one in bindings
    )
