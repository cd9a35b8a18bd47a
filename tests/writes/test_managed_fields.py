# SPDX-License-Identifier: Apache-2.0
"""What one manager has written becomes what another has applied."""

from __future__ import annotations

from typing import Any

from k8s_cr_driver.objects.fields import ListEntry
from k8s_cr_driver.objects.managed_fields import managers_of, of_version, succeeded

WEB = {"f:spec": {"f:replicas": {}, "f:template": {"f:image": {}}}}


def entry(manager: str, fields: dict[str, Any], operation: str = "Update", **rest: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsV1": fields, **rest}


def test_without_entries_of_the_former_manager_nothing_is_transferred() -> None:
    others = [entry("kubectl", WEB), entry("old", WEB, "Apply"), entry("old", WEB, subresource="status")]
    assert succeeded(others, "old", "new") is None
    assert succeeded([], "old", "new") is None


def test_updates_become_an_apply_and_others_keep_theirs() -> None:
    others = [entry("kubectl", {"f:data": {}}), entry("old", {"f:status": {}}, subresource="status")]
    assert succeeded([entry("old", WEB, time="then"), *others], "old", "new") == [
        entry("new", WEB, "Apply", time="then"),
        *others,
    ]


def test_what_was_scaled_is_joined_with_what_was_created_and_applied() -> None:
    found = [
        entry("new", {"f:spec": {"f:paused": {}}}, "Apply"),
        entry("old", {"f:spec": {"f:template": {"f:image": {}}}}),
        entry("old", {"f:spec": {"f:replicas": {}}}, subresource="scale"),
    ]
    assert succeeded(found, "old", "new") == [
        entry("new", {"f:spec": {"f:paused": {}, "f:replicas": {}, "f:template": {"f:image": {}}}}, "Apply")
    ]


def test_only_a_scale_becomes_an_apply_of_the_object_itself() -> None:
    scale = {"f:spec": {"f:replicas": {}}}
    assert succeeded([entry("old", scale, subresource="scale")], "old", "new") == [entry("new", scale, "Apply")]


def test_a_field_that_is_owned_itself_stays_so_beside_its_children() -> None:
    found = [entry("new", {"f:data": {}}, "Apply"), entry("old", {"f:data": {"f:x": {}}})]
    assert succeeded(found, "old", "new") == [entry("new", {"f:data": {".": {}, "f:x": {}}}, "Apply")]


def test_fields_of_another_version_are_given_up() -> None:
    found = [entry("new", WEB, "Apply"), {**entry("old", {"f:spec": {"f:gone": {}}}), "apiVersion": "apps/v1beta1"}]
    assert succeeded(found, "old", "new") == [entry("new", WEB, "Apply")]


def test_the_managers_of_a_field_are_found_also_in_an_entry_of_a_list() -> None:
    workers = {"f:spec": {"f:workers": {'k:{"name":"md-0"}': {"f:replicas": {}}, 'k:{"name":"md-1"}': {".": {}}}}}
    live = {"metadata": {"managedFields": [entry("one", WEB), entry("two", workers), {"manager": "three"}]}}
    assert managers_of(live, ("spec", "replicas")) == ["one"]
    assert managers_of(live, ("spec", "workers", ListEntry("md-0"), "replicas")) == ["two"]
    assert managers_of(live, ("spec", "workers", ListEntry("md-1"), "replicas")) == []


def test_what_was_applied_in_several_versions_is_moved_to_one() -> None:
    ours = [
        {"manager": "m", "operation": "Apply", "apiVersion": version, "fieldsV1": {"f:spec": {name: {}}}}
        for version, name in (("g/v1", "f:a"), ("g/v2", "f:b"))
    ]
    other = {"manager": "m", "operation": "Update", "apiVersion": "g/v1", "fieldsV1": {"f:status": {}}}
    assert of_version([*ours, other], "g/v2") == [
        {"manager": "m", "operation": "Apply", "apiVersion": "g/v2", "fieldsV1": {"f:spec": {"f:a": {}, "f:b": {}}}},
        {**other, "apiVersion": "g/v2"},
    ]
