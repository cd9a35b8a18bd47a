# SPDX-License-Identifier: Apache-2.0
"""Watch streams: how they begin, what they say, how they end."""

import pytest

from tests.fake_api.tests.conftest import MERGE, Client, config_map, crd, cron_tab

INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


def labelled(name: str, **labels: str) -> dict[str, object]:
    return {**config_map(name), "metadata": {"name": name, "labels": labels}}


@pytest.fixture
def maps(server: Client) -> str:
    return server.path(config_map(), named=False)


def relabel(server: Client, name: str, **labels: str | None) -> None:
    reply = server.call("PATCH", server.path(config_map(name)), {"metadata": {"labels": labels}}, MERGE)
    assert reply.status == 200


def test_initial_events_then_a_bookmark_that_says_so(server: Client, maps: str) -> None:
    server.create(labelled("a", watched="yes"))
    server.create(labelled("b"))
    stream = server.watch(maps, labelSelector="watched", **INITIAL)
    what, obj = stream.next()
    assert (what, obj["kind"], obj["metadata"]["name"]) == ("ADDED", "ConfigMap", "a")
    what, obj = stream.next()
    assert (what, obj["kind"]) == ("BOOKMARK", "ConfigMap")
    assert obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    stream.close()


def test_a_selector_sees_label_changes_as_coming_and_going(server: Client, maps: str) -> None:
    stream = server.watch(maps, labelSelector="watched in (yes, maybe)", **INITIAL)
    assert stream.next()[0] == "BOOKMARK"
    server.create(labelled("a"))
    relabel(server, "a", watched="maybe")
    assert [stream.next()[0]] == ["ADDED"]
    relabel(server, "a", more="1")
    assert stream.next()[0] == "MODIFIED"
    relabel(server, "a", watched=None)
    what, obj = stream.next()
    assert (what, obj["metadata"]["labels"]) == ("DELETED", {"watched": "maybe", "more": "1"})
    stream.close()


def test_deletion_carries_the_last_state_and_a_new_version(server: Client, maps: str) -> None:
    created = server.create(config_map(x="1"))
    stream = server.watch(maps, fieldSelector="metadata.name=a", resourceVersion=created.version)
    server.delete(config_map())
    what, obj = stream.next()
    assert (what, obj["data"]) == ("DELETED", {"x": "1"})
    assert int(obj["metadata"]["resourceVersion"]) > int(created.version)
    stream.close()


def test_a_version_resumes_after_it(server: Client, maps: str) -> None:
    first = server.create(config_map("a"))
    server.create(config_map("b"))
    stream = server.watch(maps, resourceVersion=first.version)
    what, obj = stream.next()
    assert (what, obj["metadata"]["name"]) == ("ADDED", "b")
    stream.close()


def test_without_a_version_what_exists_comes_first(server: Client, maps: str) -> None:
    server.create(config_map("a"))
    stream = server.watch(maps, fieldSelector="metadata.name=a")
    assert stream.next()[0] == "ADDED"
    assert stream.next()[0] == "BOOKMARK"
    stream.close()


def test_a_stream_ends_after_its_timeout(server: Client, maps: str) -> None:
    stream = server.watch(maps, timeoutSeconds=1, fieldSelector="metadata.name=a", allowWatchBookmarks="false", **INITIAL)
    with pytest.raises(StopIteration):
        stream.next()


def test_initial_events_need_the_match_parameter(server: Client, maps: str) -> None:
    reply = server.call("GET", maps, watch="true", sendInitialEvents="true")
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert reply.body["details"]["causes"] == [{
        "reason": "FieldValueForbidden", "field": "resourceVersionMatch",
        "message": "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"}]


def test_one_stream_over_all_namespaces(server: Client) -> None:
    stream = server.watch("/api/v1/configmaps", labelSelector=f"run={server.namespace}", **INITIAL)
    assert stream.next()[0] == "BOOKMARK"
    server.create(labelled("a", run=server.namespace))
    _, obj = stream.next()
    assert obj["metadata"]["namespace"] == server.namespace
    stream.close()


@pytest.mark.usefixtures("cron_tabs")
def test_a_changed_crd_ends_the_streams_of_its_kind(server: Client, cron_tabs: str) -> None:
    path = server.path(cron_tab(group=cron_tabs), named=False)
    stream = server.watch(path, **INITIAL)
    assert stream.next()[0] == "BOOKMARK"
    changed = crd(cron_tabs)
    name = changed["metadata"]["name"]
    change = {"spec": {"names": {**changed["spec"]["names"], "categories": ["all"]}}}
    reply = server.call("PATCH", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}", change, MERGE)
    assert reply.status == 200
    with pytest.raises(StopIteration):
        while True:
            assert stream.next()[0] == "BOOKMARK"


def test_deleting_a_crd_ends_the_watches_of_its_objects(server: Client, cron_tabs: str) -> None:
    server.apply(cron_tab(group=cron_tabs))
    stream = server.watch(server.path(cron_tab(group=cron_tabs), named=False), **INITIAL)
    assert [stream.next()[0] for _ in range(2)] == ["ADDED", "BOOKMARK"]
    assert server.delete(crd(cron_tabs)).status == 200
    assert stream.next()[0] == "DELETED"
    with pytest.raises(StopIteration):
        while True:
            assert stream.next()[0] == "BOOKMARK"
