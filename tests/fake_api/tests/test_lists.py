# SPDX-License-Identifier: Apache-2.0
"""LIST: selectors, pages, what items carry."""

import pytest

from tests.fake_api.tests.conftest import Client, config_map, cron_tab


@pytest.fixture
def maps(server: Client) -> str:
    for name, tier in (("a", "web"), ("b", "db"), ("c", "")):
        labels = {"set": "mine", **({"tier": tier} if tier else {})}
        server.create({**config_map(name), "metadata": {"name": name, "labels": labels}})
    return server.path(config_map(), named=False)


@pytest.mark.parametrize(("selector", "names"), [
    ("tier=web", ["a"]), ("tier==web", ["a"]), ("tier!=web", ["b", "c"]), ("tier in (web,db)", ["a", "b"]),
    ("tier notin (web)", ["b", "c"]), ("tier", ["a", "b"]), ("!tier", ["c"]), ("set=mine,tier in (db, x)", ["b"])])
def test_label_selectors(server: Client, maps: str, selector: str, names: list[str]) -> None:
    reply = server.call("GET", maps, labelSelector="set=mine," + selector)
    assert [item["metadata"]["name"] for item in reply.body["items"]] == names


def test_field_selectors(server: Client, maps: str) -> None:
    reply = server.call("GET", maps, fieldSelector="metadata.name=b")
    assert [item["metadata"]["name"] for item in reply.body["items"]] == ["b"]
    reply = server.call("GET", "/api/v1/configmaps", fieldSelector=f"metadata.namespace={server.namespace}",
                        labelSelector="set=mine")
    assert len(reply.body["items"]) == 3


def test_pages_follow_each_other(server: Client, maps: str) -> None:
    first = server.call("GET", maps, limit=2, labelSelector="set")
    rest = server.call("GET", maps, limit=2, labelSelector="set", **{"continue": first.body["metadata"]["continue"]})
    assert [item["metadata"]["name"] for page in (first, rest) for item in page.body["items"]] == ["a", "b", "c"]
    assert "continue" not in rest.body["metadata"]


def test_items_of_built_in_lists_do_not_say_their_kind(server: Client, maps: str) -> None:
    reply = server.call("GET", maps)
    assert reply.body["kind"] == "ConfigMapList"
    assert not [item for item in reply.body["items"] if "kind" in item or "apiVersion" in item]


def test_items_of_custom_lists_do(server: Client, cron_tabs: str) -> None:
    server.apply(cron_tab(group=cron_tabs))
    reply = server.call("GET", server.path(cron_tab(group=cron_tabs), named=False))
    assert (reply.body["kind"], reply.body["items"][0]["kind"]) == ("CronTabList", "CronTab")
