# SPDX-License-Identifier: Apache-2.0
"""Discovery in both forms, versions, and who may not ask."""

from typing import Any

import pytest

from tests.fake_api import FakeApi
from tests.fake_api.tests.conftest import Client, crd

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def resources(server: Client, path: str, group: str, version: str) -> dict[str, dict[str, Any]]:
    reply = server.call("GET", path, headers={"Accept": AGGREGATED})
    assert reply.headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    item = next(i for i in reply.body["items"] if (i["metadata"].get("name") or "") == group)
    found = next(v for v in item["versions"] if v["version"] == version)
    return {one["resource"]: one for one in found["resources"]}


def test_built_in_kinds_in_aggregated_form(server: Client) -> None:
    core = resources(server, "/api", "", "v1")
    assert core["pods"]["responseKind"] == {"group": "", "version": "", "kind": "Pod"}
    assert core["namespaces"]["scope"] == "Cluster"
    apps = resources(server, "/apis", "apps", "v1")
    assert [sub["subresource"] for sub in apps["deployments"]["subresources"]] == ["scale", "status"]
    reviews = resources(server, "/apis", "authentication.k8s.io", "v1")
    assert reviews["tokenreviews"]["verbs"] == ["create"]


def test_a_custom_kind_appears_with_its_group_and_version(server: Client, cron_tabs: str) -> None:
    found = resources(server, "/apis", cron_tabs, "v1")["crontabs"]
    assert found["responseKind"] == {"group": cron_tabs, "version": "v1", "kind": "CronTab"}
    assert (found["scope"], found["shortNames"], found["singularResource"]) == ("Namespaced", ["ct"], "crontab")
    listed = server.call("GET", f"/apis/{cron_tabs}/v1").body["resources"]
    assert {row["name"] for row in listed} == {"crontabs", "crontabs/status", "crontabs/scale"}


def test_an_unchanged_document_is_not_sent_again(server: Client) -> None:
    first = server.call("GET", "/apis", headers={"Accept": AGGREGATED})
    again = server.call("GET", "/apis", headers={"Accept": AGGREGATED, "If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, None)


def test_the_older_lists(server: Client) -> None:
    assert "v1" in server.call("GET", "/api").body["versions"]
    groups = server.call("GET", "/apis").body["groups"]
    assert {"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}} in groups
    rows = {row["name"]: row for row in server.call("GET", "/apis/apps/v1").body["resources"]}
    assert rows["deployments"]["kind"] == "Deployment"
    assert rows["deployments/scale"]["kind"] == "Scale"


@pytest.mark.parametrize("path", ["/apis/none.example.com/v1/namespaces/default/crontabs", "/apis/none.example.com/v1"])
def test_unknown_groups_are_not_found_in_plain_text(server: Client, path: str) -> None:
    reply = server.call("GET", path, headers={"Accept": "application/json"})
    assert (reply.status, reply.body) == (404, "404 page not found\n")


@pytest.mark.parametrize("path", ["/apis/apps/v1/foos", "/api/v1/namespaces/default/nodes"])
def test_unknown_resources_of_built_in_groups_are_not_found_as_a_status(server: Client, path: str) -> None:
    reply = server.call("GET", path)
    assert (reply.status, reply.body["message"]) == (404, "the server could not find the requested resource")


def test_create_only_kinds_answer_and_keep_nothing(server: Client) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {"name": "t"},
              "spec": {"token": "x"}}
    reply = server.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert (reply.status, reply.body["kind"]) == (201, "TokenReview")
    assert "authenticated" in reply.body["status"] or reply.body["status"].get("user") == {}
    assert server.call("GET", "/apis/authentication.k8s.io/v1/tokenreviews").status == 405


def test_names_of_a_crd_are_free_when_the_crd_that_has_them_is_gone(api: FakeApi, client: Client) -> None:
    other = crd()
    other["metadata"]["name"], other["spec"]["names"]["plural"] = "cronjobtabs.stable.example.com", "cronjobtabs"
    client.create(crd())
    api.put(other)
    live = api.get("CustomResourceDefinition", None, other["metadata"]["name"])
    names = next(one for one in live["status"]["conditions"] if one["type"] == "NamesAccepted")
    assert (names["reason"], names["message"]) == ("ListKindConflict", '"CronTabList" is already in use')
    assert (live["status"]["acceptedNames"]["kind"], live["status"]["acceptedNames"]["plural"]) == ("", "cronjobtabs")
    client.delete(crd())
    live = api.get("CustomResourceDefinition", None, other["metadata"]["name"])
    assert [one["status"] for one in live["status"]["conditions"]] == ["True", "True"]
    assert [kind.plural for kind in api.cluster.kinds() if kind.kind == "CronTab"] == ["cronjobtabs"]
