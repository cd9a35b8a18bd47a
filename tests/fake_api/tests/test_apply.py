# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: creation, ownership, conflicts, pruning, preconditions, subresources."""

import pytest

from tests.fake_api.tests.conftest import MERGE, Client, config_map, cron_tab, deployment


def test_create_only_apply_makes_a_missing_object(server: Client) -> None:
    wanted = config_map(x="1")
    wanted["metadata"]["resourceVersion"] = "1"
    reply = server.apply(wanted)
    assert reply.status == 201
    assert reply.version != "1"


def test_create_only_apply_of_an_existing_object_writes_nothing(server: Client) -> None:
    before = server.create(config_map(x="1"))
    wanted = config_map(y="2")
    wanted["metadata"]["resourceVersion"] = "1"
    reply = server.apply(wanted)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert "causes" not in reply.body["details"]
    assert "the object has been modified" in reply.body["message"]
    assert server.get(config_map()).version == before.version


def test_create_only_apply_meets_foreign_fields_first(server: Client) -> None:
    """Field conflicts are found before the precondition is looked at: a 409 with causes also means "it exists"."""
    server.apply(config_map(x="1"), "other")
    wanted = config_map(x="2")
    wanted["metadata"]["resourceVersion"] = "1"
    reply = server.apply(wanted)
    assert (reply.status, len(reply.body["details"]["causes"])) == (409, 1)


def test_create_only_apply_of_ones_own_unchanged_object_is_a_conflict(server: Client) -> None:
    server.apply(config_map(x="1"))
    wanted = config_map(x="1")
    wanted["metadata"]["resourceVersion"] = "1"
    reply = server.apply(wanted)
    assert (reply.status, reply.body["details"].get("causes")) == (409, None)


def test_apply_with_the_stored_version_is_done(server: Client) -> None:
    wanted = config_map(x="1")
    wanted["metadata"]["resourceVersion"] = server.apply(wanted).version
    wanted["data"]["x"] = "2"
    assert server.apply(wanted).status == 200


def test_apply_that_changes_nothing_keeps_the_version(server: Client) -> None:
    first = server.apply(config_map(x="1"))
    again = server.apply(config_map(x="1"))
    assert (again.status, again.version) == (200, first.version)


def test_a_second_manager_of_an_equal_value_shares_it(server: Client) -> None:
    server.apply(config_map(x="1"))
    reply = server.apply(config_map(x="1"), "other")
    assert reply.status == 200
    assert {entry["manager"] for entry in reply.body["metadata"]["managedFields"]} == {"me", "other"}


def test_another_value_of_a_foreign_field_is_a_conflict_that_names_it(server: Client) -> None:
    server.apply(config_map(x="1", y="1"))
    reply = server.apply(config_map(x="2", z="1"), "other")
    assert reply.status == 409
    assert reply.body["details"] == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.x"}]}
    assert reply.body["message"] == 'Apply failed with 1 conflict: conflict with "me": .data.x'


def test_a_conflict_with_a_plain_write_names_its_version(server: Client) -> None:
    server.call("POST", server.path(config_map(), named=False), config_map(x="1"), fieldManager="kubectl-create")
    reply = server.apply(config_map(x="2"))
    cause, = reply.body["details"]["causes"]
    assert cause["message"] == 'conflict with "kubectl-create" using v1'


def test_two_conflicts_are_two_causes(server: Client) -> None:
    server.apply(config_map(x="1", y="1"))
    reply = server.apply(config_map(x="2", y="2"), "other")
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == [".data.x", ".data.y"]
    assert reply.body["message"] == 'Apply failed with 2 conflicts: conflicts with "me":\n- .data.x\n- .data.y'


def test_force_takes_the_field_over(server: Client) -> None:
    server.apply(config_map(x="1"))
    reply = server.apply(config_map(x="2"), "other", force="true")
    assert (reply.status, reply.body["data"]) == (200, {"x": "2"})
    assert [entry["manager"] for entry in reply.body["metadata"]["managedFields"]] == ["other"]


def test_a_field_no_longer_applied_goes_unless_shared(server: Client) -> None:
    server.apply(config_map(mine="1", shared="1"))
    server.apply(config_map(shared="1"), "other")
    reply = server.apply(config_map(new="1"))
    assert reply.body["data"] == {"new": "1", "shared": "1"}


def test_a_plain_writers_field_survives_an_apply_without_it(server: Client) -> None:
    server.create(config_map(theirs="1"))
    assert server.apply(config_map(mine="1")).body["data"] == {"theirs": "1", "mine": "1"}


def test_the_last_field_of_a_map_takes_the_map_with_it(server: Client) -> None:
    wanted = config_map(x="1")
    wanted["metadata"]["labels"] = {"a": "b"}
    server.apply(wanted)
    reply = server.apply(config_map(x="1"))
    assert "labels" not in reply.body["metadata"]


def test_containers_merge_by_name(server: Client) -> None:
    server.apply(deployment())
    sidecar = deployment()
    sidecar["spec"]["template"]["spec"]["containers"] = [{"name": "log", "image": "busybox"}]
    reply = server.apply(sidecar, "injector")
    assert [c["name"] for c in reply.body["spec"]["template"]["spec"]["containers"]] == ["main", "log"]
    reply = server.apply(deployment())
    assert [c["name"] for c in reply.body["spec"]["template"]["spec"]["containers"]] == ["main", "log"]


def test_a_conflict_in_a_list_names_the_item(server: Client) -> None:
    server.apply(deployment())
    wanted = deployment()
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    reply = server.apply(wanted, "other")
    assert reply.body["details"]["causes"][0]["field"] == '.spec.template.spec.containers[name="main"].image'


def test_duplicate_items_are_a_server_error_without_reason(server: Client) -> None:
    wanted = deployment()
    wanted["spec"]["template"]["spec"]["containers"] *= 2
    reply = server.apply(wanted)
    assert (reply.status, reply.body.get("reason")) == (500, None)
    assert reply.body["message"] == (
        'failed to create typed patch object (/web; apps/v1, Kind=Deployment): '
        '.spec.template.spec.containers: duplicate entries for key [name="main"]')


def test_lists_without_keys_are_one_value(server: Client, cron_tabs: str) -> None:
    server.apply(cron_tab(group=cron_tabs, hosts=["a", "b"]))
    reply = server.apply(cron_tab(group=cron_tabs, hosts=["b"]), "other")
    assert reply.body["details"]["causes"][0]["field"] == ".spec.hosts"


def test_keyed_lists_of_custom_resources_merge(server: Client, cron_tabs: str) -> None:
    server.apply(cron_tab(group=cron_tabs, ports=[{"name": "a", "number": 1}]))
    reply = server.apply(cron_tab(group=cron_tabs, ports=[{"name": "b", "number": 2}]), "other")
    assert [port["name"] for port in reply.body["spec"]["ports"]] == ["a", "b"]
    reply = server.apply(cron_tab(group=cron_tabs, ports=[{"name": "a", "number": 2}]), "third")
    assert reply.body["details"]["causes"][0]["field"] == '.spec.ports[name="a"].number'


def test_a_field_that_the_schema_does_not_declare_is_a_server_error(server: Client, cron_tabs: str) -> None:
    reply = server.apply(cron_tab(group=cron_tabs, surprise=1))
    assert reply.status == 500
    assert reply.body["message"].endswith(".spec.surprise: field not declared in schema")


def test_keyed_lists_keep_the_applied_order_around_others(server: Client, cron_tabs: str) -> None:
    def ports(*names: str) -> list[dict[str, str]]:
        return [{"name": name} for name in names]

    server.apply(cron_tab(group=cron_tabs, ports=ports("a", "b", "c", "d")), "other")
    reply = server.apply(cron_tab(group=cron_tabs, ports=ports("d", "x", "b")))
    assert [port["name"] for port in reply.body["spec"]["ports"]] == ["a", "c", "d", "x", "b"]


def test_fields_of_an_object_that_nobody_applied_are_owned_before_first_apply(server: Client) -> None:
    stored = server.create(config_map(x="1")).body
    server.call("PUT", server.path(stored), {**stored, "metadata": {**stored["metadata"], "managedFields": [{}]}})
    cause, = server.apply(config_map(x="2")).body["details"]["causes"]
    assert cause["message"] == 'conflict with "before-first-apply" using v1'


def test_managed_fields_can_be_handed_over_by_a_plain_write(server: Client) -> None:
    stored = server.create(config_map(x="1")).body
    entry, = stored["metadata"]["managedFields"]
    handed = {**stored["metadata"], "managedFields": [{**entry, "manager": "me", "operation": "Apply"}]}
    server.call("PUT", server.path(stored), {**stored, "metadata": handed})
    assert server.apply(config_map(y="1")).body["data"] == {"y": "1"}


def test_dry_run_writes_nothing(server: Client) -> None:
    reply = server.apply(config_map(x="1"), dryRun="All")
    assert (reply.status, reply.body["data"]) == (201, {"x": "1"})
    assert server.get(config_map()).status == 404


def test_status_is_not_applied_through_the_object(server: Client, cron_tabs: str) -> None:
    wanted = {**cron_tab(group=cron_tabs), "status": {"phase": "Ready"}}
    assert "status" not in server.apply(wanted).body


def test_status_has_its_own_endpoint_and_owner(server: Client, cron_tabs: str) -> None:
    server.apply(cron_tab(group=cron_tabs))
    wanted = {**cron_tab(group=cron_tabs, image="ignored"), "status": {"phase": "Ready"}}
    reply = server.apply(wanted, "controller", sub="/status")
    assert reply.body["status"] == {"phase": "Ready"}
    assert "image" not in reply.body["spec"]
    assert reply.body["metadata"]["generation"] == 1
    entry, = (e for e in reply.body["metadata"]["managedFields"] if e["manager"] == "controller")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:phase": {}}})


def test_scale_owns_replicas_apart(server: Client) -> None:
    server.apply(deployment(replicas=1))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    reply = server.call("PUT", server.path(deployment()) + "/scale", scale, fieldManager="autoscaler")
    assert (reply.status, reply.body["kind"], reply.body["spec"]["replicas"]) == (200, "Scale", 3)
    conflict = server.apply(deployment(replicas=1))
    cause, = conflict.body["details"]["causes"]
    assert cause["field"] == ".spec.replicas"
    assert cause["message"] == 'conflict with "autoscaler" with subresource "scale" using apps/v1'
    assert server.apply(deployment()).body["spec"]["replicas"] == 3


def test_an_applied_scale_conflicts_with_the_object_s_manager(server: Client) -> None:
    server.apply(deployment(replicas=1))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    reply = server.call("PATCH", server.path(deployment()) + "/scale", scale, "application/apply-patch+yaml",
                        fieldManager="autoscaler")
    assert (reply.status, reply.body["details"]["causes"][0]["field"]) == (409, ".spec.replicas")


def test_generation_counts_changes_of_the_spec_only(server: Client) -> None:
    wanted = deployment(replicas=0)
    assert server.apply(wanted).body["metadata"]["generation"] == 1
    wanted["metadata"]["labels"] = {"a": "b"}
    assert server.apply(wanted).body["metadata"]["generation"] == 1
    wanted["spec"]["paused"] = True
    assert server.apply(wanted).body["metadata"]["generation"] == 2


def test_apply_needs_a_manager(server: Client) -> None:
    reply = server.call("PATCH", server.path(config_map()), config_map(), "application/apply-patch+yaml")
    assert reply.status == 422
    assert reply.body["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value: is required for apply patch",
         "field": "fieldManager"}]


@pytest.mark.parametrize("change", [{"name": "other"}, {"namespace": "other"}])
def test_names_must_be_those_of_the_path(server: Client, change: dict[str, str]) -> None:
    wanted = config_map()
    wanted["metadata"].update(change)
    reply = server.call("PATCH", server.path(config_map()), wanted, "application/apply-patch+yaml", fieldManager="me")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


def test_apply_into_a_missing_namespace_is_not_found(server: Client) -> None:
    wanted = config_map()
    wanted["metadata"]["namespace"] = "nowhere"
    reply = server.apply(wanted)
    assert (reply.status, reply.body["message"]) == (404, 'namespaces "nowhere" not found')


def test_string_data_becomes_data(server: Client) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "x"}}
    reply = server.apply(secret)
    assert (reply.body["data"], reply.body.get("stringData")) == ({"a": "eA=="}, None)
    secret["stringData"] = {"b": "y"}
    assert server.apply(secret).body["data"] == {"a": "eA==", "b": "eQ=="}  # the old key stays for ever


def test_the_create_only_verbs_of_others(server: Client) -> None:
    server.create(config_map(x="1"))
    reply = server.create(config_map(x="1"))
    assert (reply.status, reply.body["reason"]) == (409, "AlreadyExists")
    reply = server.call("PATCH", server.path(config_map()), {"data": {"x": None, "y": "2"}}, MERGE)
    assert reply.body["data"] == {"y": "2"}


def test_custom_resources_refuse_strategic_merge(server: Client, cron_tabs: str) -> None:
    server.apply(cron_tab(group=cron_tabs))
    reply = server.call("PATCH", server.path(cron_tab(group=cron_tabs)), {"spec": {}},
                        "application/strategic-merge-patch+json")
    assert (reply.status, reply.body["reason"]) == (415, "UnsupportedMediaType")
