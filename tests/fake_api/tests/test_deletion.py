# SPDX-License-Identifier: Apache-2.0
"""Deletion: preconditions, finalizers, owners, Namespaces, CRDs."""

from collections.abc import Callable
from typing import Any

from tests.fake_api.tests.conftest import MERGE, Client, config_map, crd, cron_tab


def until(server: Client, obj: dict[str, Any], holds: Callable[[Any], bool]) -> Any:
    """Read an object until something holds: a real server's controllers need a moment."""
    while True:
        reply = server.get(obj)
        if holds(reply):
            return reply


def gone(reply: Any) -> bool:
    return bool(reply.status == 404)


def owned_by(owner: Any, name: str, block: bool = False, finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
                 "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block}
    return {**config_map(name), "metadata": {"name": name, "ownerReferences": [reference],
                                             "finalizers": list(finalizers)}}


def release(server: Client, obj: dict[str, Any]) -> None:
    server.call("PATCH", server.path(obj), {"metadata": {"finalizers": None}}, MERGE)


def test_deletion_answers_a_status_with_the_uid(server: Client) -> None:
    uid = server.create(config_map()).body["metadata"]["uid"]
    reply = server.delete(config_map())
    assert (reply.status, reply.body["kind"], reply.body["status"]) == (200, "Status", "Success")
    assert reply.body["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert server.delete(config_map()).body["message"] == 'configmaps "a" not found'


def test_another_uid_is_a_conflict(server: Client) -> None:
    uid = server.create(config_map()).body["metadata"]["uid"]
    reply = server.delete(config_map(), preconditions={"uid": "other"})
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.body["message"] == (
        f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in '
        f"record ({uid}). The object might have been deleted and then recreated")
    assert server.delete(config_map(), preconditions={"uid": uid}).status == 200


def test_another_version_is_a_conflict(server: Client) -> None:
    version = server.create(config_map()).version
    reply = server.delete(config_map(), preconditions={"resourceVersion": "1"})
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert server.delete(config_map(), preconditions={"resourceVersion": version}).status == 200


def test_a_finalizer_holds_until_it_is_removed(server: Client) -> None:
    held = {**config_map(), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}}
    server.create(held)
    reply = server.delete(held)
    assert (reply.status, reply.body["kind"]) == (200, "ConfigMap")
    assert reply.body["metadata"]["deletionTimestamp"]
    assert server.get(held).body["metadata"]["finalizers"] == ["example.com/hold"]
    release(server, held)
    assert server.get(held).status == 404


def test_a_dependent_follows_its_owner(server: Client) -> None:
    owner = server.create(config_map("owner")).body
    server.create(owned_by(owner, "child"))
    server.delete(config_map("owner"))
    until(server, config_map("child"), gone)


def test_orphans_stay_without_the_reference(server: Client) -> None:
    owner = server.create(config_map("owner")).body
    server.create(owned_by(owner, "child"))
    server.delete(config_map("owner"), propagationPolicy="Orphan")
    until(server, config_map("owner"), gone)
    assert "ownerReferences" not in server.get(config_map("child")).body["metadata"]


def test_foreground_waits_for_blocking_dependents(server: Client) -> None:
    owner = server.create(config_map("owner")).body
    child = owned_by(owner, "child", block=True, finalizers=("example.com/hold",))
    server.create(child)
    reply = server.delete(config_map("owner"), propagationPolicy="Foreground")
    assert reply.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    until(server, child, lambda reply: "deletionTimestamp" in reply.body["metadata"])
    assert server.get(config_map("owner")).status == 200
    release(server, child)
    until(server, config_map("owner"), gone)


def test_a_namespace_takes_its_contents_and_refuses_new_ones(server: Client) -> None:
    name = server.namespace + "-b"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert server.create(space).status == 201
    held = {**config_map(), "metadata": {"name": "a", "namespace": name, "finalizers": ["example.com/hold"]}}
    assert server.create(held).status == 201
    reply = server.delete(space)
    assert reply.body["status"]["phase"] == "Terminating"
    refused = server.create({**config_map("b"), "metadata": {"name": "b", "namespace": name}})
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert refused.body["message"] == (
        f'configmaps "b" is forbidden: unable to create new content in namespace {name} because it is being terminated')
    assert refused.body["details"]["causes"] == [{
        "reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated",
        "field": "metadata.namespace"}]
    until(server, held, lambda reply: "deletionTimestamp" in reply.body["metadata"])
    release(server, held)
    until(server, space, gone)


def test_a_crd_takes_its_objects(server: Client, cron_tabs: str) -> None:
    server.apply(cron_tab(group=cron_tabs))
    reply = server.delete(crd(cron_tabs))
    assert reply.status == 200
    until(server, crd(cron_tabs), gone)
    until(server, cron_tab(group=cron_tabs), gone)


def test_a_collection_is_deleted_by_selector(server: Client) -> None:
    server.create({**config_map("a"), "metadata": {"name": "a", "labels": {"go": "yes"}}})
    server.create(config_map("b"))
    assert server.call("DELETE", server.path(config_map(), named=False), labelSelector="go=yes").status == 200
    assert [server.get(config_map(name)).status for name in "ab"] == [404, 200]
