# SPDX-License-Identifier: Apache-2.0
"""What the server refuses with 422, and how it words it."""

import copy
from typing import Any

import pytest

from tests.fake_api.tests.conftest import MERGE, Client, config_map, cron_tab, deployment


def causes(reply: Any) -> list[dict[str, str]]:
    assert (reply.status, reply.body["reason"]) == (422, "Invalid"), reply.body
    return list(reply.body["details"]["causes"])


@pytest.mark.parametrize(("spec", "cause"), [
    ({"cronSpec": "x"}, {"reason": "FieldValueInvalid", "field": "spec.cronSpec", "message":
                         'Invalid value: "x": spec.cronSpec in body should match \'^\\S+ \\S+$\''}),
    ({"mode": "odd"}, {"reason": "FieldValueNotSupported", "field": "spec.mode", "message":
                       'Unsupported value: "odd": supported values: "fast", "slow"'}),
    ({"replicas": 0}, {"reason": "FieldValueInvalid", "field": "spec.replicas", "message":
                       "Invalid value: 0: spec.replicas in body should be greater than or equal to 1"})])
def test_custom_resources_fit_their_schema(server: Client, cron_tabs: str, spec: dict[str, Any],
                                           cause: dict[str, str]) -> None:
    reply = server.apply(cron_tab(group=cron_tabs, **spec))
    assert causes(reply) == [cause]
    assert reply.body["message"] == (f'CronTab.{cron_tabs} "nightly" is invalid: {cause["field"]}: {cause["message"]}')
    assert reply.body["details"]["kind"] == "CronTab"


def test_a_missing_required_field(server: Client, cron_tabs: str) -> None:
    wanted = cron_tab(group=cron_tabs)
    wanted["spec"] = {"replicas": 1}
    assert causes(server.apply(wanted)) == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.cronSpec"}]


def test_a_created_value_of_another_type(server: Client, cron_tabs: str) -> None:
    reply = server.create(cron_tab(group=cron_tabs, replicas="two"))
    assert {"reason": "FieldValueTypeInvalid", "field": "spec.replicas",
            "message": 'Invalid value: "string": spec.replicas in body must be of type integer: "string"'} in causes(reply)


@pytest.mark.parametrize(("spec", "message"), [
    ({"replicas": "two"}, ".spec.replicas: expected numeric (int or float), got string"),
    ({"replicas": {}}, ".spec.replicas: expected numeric (int or float), got map[string]interface {}"),
    ({"image": 1}, ".spec.image: expected string, got &value.valueUnstructured{Value:1}"),
    ({"image": {"a": 1}},
     '.spec.image: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":1}}'),
    ({"hosts": "x"}, ".spec.hosts: expected list, got &{x}"),
    ({"hosts": {"a": 1}}, ".spec.hosts: expected list, got &{map[a:1]}"),
    ({"ports": [{"number": 1}]}, '.spec.ports: element 0: associative list with keys has an element that omits all key '
                                 'fields ["name"] (and doesn\'t have default values for any key fields)'),
    ({"image": 1, "replicas": "x"}, "errors:\n  .spec.image: expected string, got &value.valueUnstructured{Value:1}\n"
                                    "  .spec.replicas: expected numeric (int or float), got string")])
def test_an_applied_value_of_another_type_is_a_server_error(server: Client, cron_tabs: str, spec: dict[str, Any],
                                                            message: str) -> None:
    reply = server.apply(cron_tab(group=cron_tabs, **spec))
    assert (reply.status, reply.body.get("reason")) == (500, None)
    place = f"/nightly; {cron_tabs}/v1, Kind=CronTab"
    assert reply.body["message"] == f"failed to create typed patch object ({place}): {message}"


def test_unknown_fields_of_a_created_custom_resource_are_dropped(server: Client, cron_tabs: str) -> None:
    reply = server.create(cron_tab(group=cron_tabs, surprise=1))
    assert (reply.status, reply.body["spec"]) == (201, {"cronSpec": "* *"})


def test_bad_names(server: Client) -> None:
    cause, = causes(server.create(config_map("Bad_Name")))
    assert cause["field"] == "metadata.name"
    assert "RFC 1123" in cause["message"]


def test_no_name(server: Client) -> None:
    cause, = causes(server.create({**config_map(), "metadata": {}}))
    assert (cause["field"], cause["message"]) == (
        "metadata.name", "Required value: name or generateName is required")


def test_a_job_s_template_is_immutable(server: Client) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]}}
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
                           "spec": {"template": template}}
    assert server.apply(job).status == 201
    assert server.apply(job).status == 200
    changed = copy.deepcopy(job)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    cause, = causes(server.apply(changed))
    assert cause["field"] == "spec.template"
    assert cause["message"].endswith("field is immutable")


def test_kind_and_scope_of_an_established_crd_are_immutable(server: Client, cron_tabs: str) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.{cron_tabs}"
    other = {"kind": "CronTable", "listKind": "CronTableList"}
    for field, spec in {"spec.names.kind": {"names": other}, "spec.scope": {"scope": "Cluster"}}.items():
        cause, = causes(server.call("PATCH", path, {"spec": spec}, MERGE))
        assert (cause["field"], cause["message"].endswith("field is immutable")) == (field, True)


def test_a_deployment_s_selector_is_immutable(server: Client) -> None:
    server.apply(deployment())
    changed = deployment()
    changed["spec"]["selector"] = {"matchLabels": {"app": "web", "more": "1"}}
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "web", "more": "1"}
    cause, = causes(server.apply(changed))
    assert (cause["field"], cause["message"].endswith("field is immutable")) == ("spec.selector", True)


def test_an_immutable_config_map(server: Client) -> None:
    server.apply({**config_map(x="1"), "immutable": True})
    cause, = causes(server.apply({**config_map(x="2"), "immutable": True}))
    assert (cause["field"], cause["message"]) == ("data", "Forbidden: field is immutable when `immutable` is set")


def test_a_secret_s_type_is_immutable(server: Client) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "example.com/a"}
    server.apply(secret)
    cause, = causes(server.apply({**secret, "type": "example.com/b"}))
    assert (cause["field"], cause["message"]) == ("type", 'Invalid value: "example.com/b": field is immutable')


def test_a_service_s_address_is_immutable(server: Client) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
               "spec": {"ports": [{"port": 80}], "selector": {"app": "x"}}}
    server.apply(service)
    reply = server.call("PATCH", server.path(service), {"spec": {"clusterIP": "10.96.0.77", "clusterIPs": None}}, MERGE)
    assert "may not change once set" in reply.body["message"] or reply.status == 422


def test_a_replaced_object_must_be_the_stored_one(server: Client, cron_tabs: str) -> None:
    first = server.create(cron_tab(group=cron_tabs)).body
    unversioned = cron_tab(group=cron_tabs)
    reply = server.call("PUT", server.path(unversioned), unversioned)
    assert causes(reply)[0]["field"] == "metadata.resourceVersion"
    stale = {**first, "metadata": {**first["metadata"], "resourceVersion": "1"}}
    reply = server.call("PUT", server.path(stale), stale)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
