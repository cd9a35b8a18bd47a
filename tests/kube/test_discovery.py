# SPDX-License-Identifier: Apache-2.0
"""What kinds a cluster serves."""

from __future__ import annotations

import json

import pytest

from k8s_cr_driver.errors import ApiError, ConnectionFailed, TransportError
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resources, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind
from tests.fake_api import FakeApi, faults
from tests.instance import crontab_crd

CRON_TAB = GroupKind("stable.example.com", "CronTab")
PODS = {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced"}
WITHOUT_NAMESPACES = {
    "kind": "APIGroupDiscoveryList",
    "apiVersion": "apidiscovery.k8s.io/v2",
    "metadata": {},
    "items": [{"versions": [{"version": "v1", "resources": [PODS]}]}],
}


def ask(api: FakeApi) -> Resources:
    with Connection(Endpoint(api.url)) as connection:
        return discover(connection)


def test_scopes_paths_verbs_and_subresources(api: FakeApi) -> None:
    api.put(crontab_crd(runs={"type": "integer"}))
    resources = ask(api)
    config_map, deployment = resources.find(GroupKind("", "ConfigMap")), resources.find(GroupKind("apps", "Deployment"))
    node, tab = resources.find(GroupKind("", "Node")), resources.find(CRON_TAB)
    assert config_map and deployment and node and tab
    assert config_map.path("blue", "a") == "/api/v1/namespaces/blue/configmaps/a"
    assert config_map.path() == "/api/v1/configmaps"
    assert deployment.path("blue") == "/apis/apps/v1/namespaces/blue/deployments"
    assert {"scale", "status"} <= deployment.subresources
    assert node.path("ignored", "n1") == "/api/v1/nodes/n1"
    assert {"patch", "watch"} <= tab.verbs
    assert resources.find(GroupKind("authentication.k8s.io", "TokenReview")).verbs == {"create"}  # type: ignore[union-attr]
    assert (resources.scope_of(CRON_TAB, "v1"), resources.scope_of(GroupKind("", "Node"), "v1")) == (True, False)


def test_discovery_takes_two_requests(api: FakeApi) -> None:
    ask(api)
    assert [request.path for request in api.requests] == ["/apis", "/api"]


def test_one_request_where_nothing_has_changed_and_all_where_something_has(api: FakeApi) -> None:
    first = ask(api)
    api.requests.clear()
    assert list(ask(api)) == list(first)
    assert [(request.path, request.status) for request in api.requests] == [("/apis", 304)]
    api.put(crontab_crd())
    assert ask(api).find(CRON_TAB)


def test_discovery_is_kept_for_each_account(api: FakeApi) -> None:
    ask(api)
    api.requests.clear()
    with Connection(Endpoint(api.url, authorization="Bearer other")) as connection:
        discover(connection)
    assert [request.status for request in api.requests] == [200, 200]


@pytest.mark.parametrize(("root", "kind"), [("/apis", "APIGroupList"), ("/api", "APIVersions")])
def test_a_server_without_aggregated_discovery_is_too_old(api: FakeApi, root: str, kind: str) -> None:
    api.fail(faults.lie(json.dumps({"kind": kind, "versions": ["v1"]}).encode()), path=f"^{root}$")
    with pytest.raises(ConnectionFailed, match=rf"no aggregated discovery \(GET {root}\): Kubernetes 1\.27 or later"):
        ask(api)


def test_a_core_group_without_namespaces_is_not_kept(api: FakeApi) -> None:
    """No cluster has such a one: the response was cut, and /apis does not change when the next one is whole."""
    api.fail(faults.lie(json.dumps(WITHOUT_NAMESPACES).encode()), path="^/api$")
    assert ask(api).find(NAMESPACE) is None
    assert ask(api).find(NAMESPACE)


@pytest.mark.parametrize("scope", [None, "", "namespaced", False])
def test_a_kind_of_an_unknown_scope_makes_its_group_version_unknown_and_no_other(api: FakeApi, scope: object) -> None:
    """Its objects would be looked for in no namespace, or in every one."""
    budget = {**PODS, "resource": "poddisruptionbudgets", "responseKind": {"kind": "PodDisruptionBudget"}}
    groups = [
        {"metadata": {"name": "odd.example.com"}, "versions": [{"version": "v1", "resources": [{**PODS, "scope": scope}]}]},
        {"metadata": {"name": "policy"}, "versions": [{"version": "v1", "resources": [budget]}]},
    ]
    api.fail(faults.lie(json.dumps({**WITHOUT_NAMESPACES, "items": groups}).encode()), path="^/apis$")
    resources = ask(api)
    assert resources.find(GroupKind("odd.example.com", "Pod")) is None
    assert resources.down == {("odd.example.com", "v1")}
    assert resources.find(GroupKind("policy", "PodDisruptionBudget"))


def test_the_preferred_version_is_the_one_without_a_wish(api: FakeApi) -> None:
    resources = ask(api)
    scaler = GroupKind("autoscaling", "HorizontalPodAutoscaler")
    assert resources.find(scaler).version == "v2"  # type: ignore[union-attr]
    assert resources.find(scaler, "v1").version == "v1"  # type: ignore[union-attr]
    assert resources.find(scaler, "v9") is None
    assert resources.scope_of(scaler, "v9") is None


def test_an_api_whose_server_is_down_has_unknown_kinds_and_hides_no_other(api: FakeApi) -> None:
    api.knobs.down.update({("policy", "v1"), ("autoscaling", "v1")})
    resources = ask(api)
    budget, scaler = GroupKind("policy", "PodDisruptionBudget"), GroupKind("autoscaling", "HorizontalPodAutoscaler")
    assert resources.find(budget) is None
    assert resources.unknown_in(budget) == resources.unknown_in(budget, "v1") == ("policy", "v1")
    assert resources.unknown_in(budget, "v2") is None
    assert resources.unknown_in(scaler) is None  # the other version serves it
    assert resources.unknown_in(scaler, "v1") == ("autoscaling", "v1")
    assert resources.find(GroupKind("apps", "Deployment"))


def test_a_later_look_finds_what_an_earlier_one_could_not(api: FakeApi) -> None:
    api.knobs.down.add(("policy", "v1"))
    resources = ask(api)
    resources.add_crd(crontab_crd())
    api.knobs.down.clear()
    resources.refresh(ask(api))
    assert resources.find(GroupKind("policy", "PodDisruptionBudget"))
    assert not resources.down
    assert resources.find(CRON_TAB)
    assert not resources.is_served(CRON_TAB)


def test_a_refusal_is_reported(api: FakeApi) -> None:
    api.fail(faults.status(403, "Forbidden", "no"), path="/apis$")
    with pytest.raises(ApiError, match="GET /apis: 403 Forbidden: no"):
        ask(api)


def test_a_package_s_own_crd_describes_its_kind_with_no_request(api: FakeApi) -> None:
    resources = ask(api)
    assert not resources.find(CRON_TAB)
    count = len(api.requests)
    crd = crontab_crd()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "served": False})
    resources.add_crd(crd)
    assert resources.scope_of(CRON_TAB, "v1") is True
    assert resources.find(CRON_TAB, "v2") is None
    assert resources.find(CRON_TAB).plural == "crontabs"
    assert not resources.is_served(CRON_TAB)
    assert len(api.requests) == count


@pytest.mark.parametrize(
    "versions",
    [["v1alpha1", "v1"], ["v1beta1", "v2alpha1", "v1beta2"], ["x", "v3alpha2", "v3alpha10"], ["b", "a"], ["v1", "v10", "v2"]],
)
def test_a_package_s_crd_is_read_in_the_version_that_the_server_will_prefer(versions: list[str]) -> None:
    """Whatever stands first: stages, then numbers, then letters."""
    crd = crontab_crd()
    [version] = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**version, "name": name} for name in versions]
    resources = Resources()
    resources.add_crd(crd)
    found = resources.find(GroupKind("stable.example.com", "CronTab"))
    assert found is not None and found.version in ("v1", "v1beta2", "v3alpha10", "a", "v10")


def test_a_package_s_crd_is_believed_over_the_one_that_it_replaces(api: FakeApi) -> None:
    api.put(crontab_crd())
    resources = ask(api)
    newer = crontab_crd()
    newer["spec"]["versions"][0]["subresources"] = {"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b"}}
    resources.add_crd(newer)
    assert resources.find(CRON_TAB, "v1").subresources == {"scale"}  # type: ignore[union-attr]
    assert resources.is_served(CRON_TAB)


@pytest.mark.parametrize("items", [None, []])
def test_a_response_without_kinds_is_no_discovery_and_hides_none_from_the_next_one(api: FakeApi, items: object) -> None:
    """The core group is remembered by the ETag of /apis, which does not change."""
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    api.fail(faults.lie(json.dumps(body).encode()), path="^/api$")
    with pytest.raises(TransportError, match="GET /api: the response is malformed"):
        ask(api)
    assert ask(api).find(GroupKind("", "ConfigMap"))
