# SPDX-License-Identifier: Apache-2.0
"""Small print of writes: uids, protected namespaces, options that do not go together."""

from tests.fake_api.tests.conftest import MERGE, Client, config_map


def test_a_uid_is_a_precondition_of_apply(server: Client) -> None:
    wanted = config_map()
    wanted["metadata"]["uid"] = "other"
    missing = server.apply(wanted)
    assert (missing.status, missing.body["reason"]) == (409, "Conflict")
    assert "no existing object was found" in missing.body["message"]
    server.create(config_map())
    existing = server.apply(wanted)
    assert (existing.status, existing.body["details"]["causes"][0]["field"]) == (422, "metadata.uid")


def test_a_stale_patch_is_a_conflict(server: Client) -> None:
    server.create(config_map())
    reply = server.call("PATCH", server.path(config_map()), {"metadata": {"resourceVersion": "3"}}, MERGE)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")


def test_the_default_namespace_stays(server: Client) -> None:
    reply = server.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    assert (reply.status, reply.body["message"]) == (
        403, 'namespaces "default" is forbidden: this namespace may not be deleted')


def test_managed_fields_cannot_be_applied(server: Client) -> None:
    wanted = config_map()
    wanted["metadata"]["managedFields"] = []
    reply = server.apply(wanted)
    assert (reply.status, reply.body["message"]) == (400, "metadata.managedFields must be nil")


def test_force_is_for_apply_only(server: Client) -> None:
    server.create(config_map())
    reply = server.call("PATCH", server.path(config_map()), {}, MERGE, force="true")
    assert (reply.status, reply.body["details"]["causes"][0]["field"]) == (422, "force")


def test_nobody_owns_labels_that_an_update_leaves_empty(server: Client) -> None:
    labelled = config_map()
    labelled["metadata"]["labels"] = {"tier": "web"}
    live = server.apply(labelled).body
    live["metadata"]["labels"] = {}
    updated = server.call("PUT", server.path(live), live).body["metadata"]
    assert "labels" not in updated
    assert not any("f:metadata" in entry["fieldsV1"] for entry in updated["managedFields"])
