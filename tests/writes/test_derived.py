# SPDX-License-Identifier: Apache-2.0
"""Fields that the API server has derived from a former manifest go with what they were derived from."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers
from tests.instance import Instance, obj

RECREATE = {"strategy": {"type": "Recreate"}}


@pytest.fixture(autouse=True)
def workloads(api: FakeApi) -> None:
    controllers.run_workloads(api)


def workload(account: str = "", kind: str = "Deployment", **spec: Any) -> Object:
    pods = {"containers": [{"name": "c", "image": "i:1"}], **({"serviceAccountName": account} if account else {})}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pods}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return obj("apps/v1", kind, "web", "default", spec=spec)


def account(api: FakeApi, kind: str = "Deployment") -> Object:
    pods = api.get(kind, "default", "web")["spec"]["template"]["spec"]
    return {name: value for name, value in pods.items() if name.startswith("serviceAccount")}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize("yields", [False, True], ids=["change", "rollback"])
def test_an_account_that_the_manifest_no_longer_names_is_removed(api: FakeApi, kind: str, yields: bool) -> None:
    Instance(api.url).reconcile([workload("agent", kind)])
    assert account(api, kind) == {"serviceAccountName": "agent", "serviceAccount": "agent"}
    Instance(api.url, yields=yields).reconcile([workload("", kind)])
    assert account(api, kind) == {}


def test_an_account_that_a_former_version_of_the_driver_has_left_is_removed(api: FakeApi) -> None:
    Instance(api.url).reconcile([workload()])

    def derived(live: Object) -> None:
        live["spec"]["template"]["spec"].update(serviceAccountName="agent", serviceAccount="agent")

    before = api.get("Deployment", "default", "web")["metadata"]["managedFields"]
    api.edit("Deployment", "default", "web", derived, manager="x")
    api.edit("Deployment", "default", "web", lambda live: live["metadata"].update(managedFields=before))
    Instance(api.url).reconcile([workload()])
    assert account(api) == {}


def test_an_account_that_others_have_set_stays(api: FakeApi) -> None:
    Instance(api.url).reconcile([workload()])

    def chosen(live: Object) -> None:
        live["spec"]["template"]["spec"]["serviceAccountName"] = "theirs"

    api.edit("Deployment", "default", "web", chosen, manager="kubectl-set")
    api.requests.clear()
    Instance(api.url).reconcile([workload()])
    assert account(api) == {"serviceAccountName": "theirs", "serviceAccount": "theirs"}
    assert len(api.requests.select("PATCH", "deployments/web")) == 1


@pytest.mark.parametrize("yields", [False, True], ids=["change", "rollback"])
def test_a_default_strategy_gives_way_to_another_one(api: FakeApi, yields: bool) -> None:
    Instance(api.url).reconcile([workload()])
    Instance(api.url, yields=yields).reconcile([workload(**RECREATE)])
    assert api.get("Deployment", "default", "web")["spec"]["strategy"] == {"type": "Recreate"}
    Instance(api.url).reconcile([workload()])
    assert api.get("Deployment", "default", "web")["spec"]["strategy"]["type"] == "RollingUpdate"


def test_the_types_of_a_network_policy_are_those_of_its_rules(api: FakeApi) -> None:
    def policy(**rules: Any) -> Object:
        return obj("networking.k8s.io/v1", "NetworkPolicy", "p", "default", spec={"podSelector": {}, **rules})

    def types() -> Any:
        return api.get("NetworkPolicy", "default", "p")["spec"]["policyTypes"]

    Instance(api.url).reconcile([policy(ingress=[{}])])
    assert types() == ["Ingress"]
    Instance(api.url).reconcile([policy(ingress=[{}], egress=[{}])])
    assert types() == ["Ingress", "Egress"]
    Instance(api.url).reconcile([policy(ingress=[{}])])
    assert types() == ["Ingress"]
    api.requests.clear()
    Instance(api.url).reconcile([policy(ingress=[{}])])
    assert not api.requests.select("PATCH", "networkpolicies/p")


@pytest.mark.parametrize("given", [{"maxSurge": 1}, {"maxUnavailable": 0}, {"maxSurge": 1, "maxUnavailable": 0}])
def test_a_strategy_of_which_only_a_part_was_applied_gives_way(api: FakeApi, given: Object) -> None:
    Instance(api.url).reconcile([workload(**RECREATE)])
    Instance(api.url).reconcile([workload(strategy={"type": "RollingUpdate", "rollingUpdate": given})])
    Instance(api.url, yields=True).reconcile([workload(**RECREATE)])
    assert api.get("Deployment", "default", "web")["spec"]["strategy"] == {"type": "Recreate"}


def test_an_account_by_its_deprecated_name_is_that_of_the_manifest(api: FakeApi) -> None:
    def deprecated(name: str) -> Object:
        made = workload()
        made["spec"]["template"]["spec"]["serviceAccount"] = name
        return made

    for name in ("one", "two"):
        Instance(api.url).reconcile([deprecated(name)])
        assert account(api) == {"serviceAccountName": name, "serviceAccount": name}
    Instance(api.url).reconcile([workload()])
    assert account(api) == {}
