# SPDX-License-Identifier: Apache-2.0
"""Objects whose fields were applied in another version of their kind, which the API server cannot convert in an apply."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import is_managed, manager
from tests.engine.test_kinds import UNDECLARED, in_v2, of_two_versions, refuse_applies
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd

V1 = "stable.example.com/v1"


@pytest.mark.parametrize("how", [{"force": True}, {"yields": True}], ids=["force", "rollback"])
def test_a_conflict_after_the_fields_were_moved_is_met_as_any_other(api: FakeApi, how: dict[str, Any]) -> None:
    api.put(of_two_versions())
    Instance(api.url).reconcile([crontab("one")])
    api.edit("CronTab", "default", "one", lambda live: live["spec"].update(cronSpec="9 * * * *"), manager="kubectl-edit")

    refuse_applies(api, always=False)
    Instance(api.url, **how).reconcile([in_v2(crontab("one", schedule="1 * * * *"))])
    live = api.get("CronTab", "default", "one")
    assert live["spec"]["cronSpec"] == "1 * * * *"


def test_an_object_that_is_deleted_while_its_fields_are_moved_is_made_again(api: FakeApi) -> None:
    api.put(of_two_versions())
    Instance(api.url).reconcile([crontab("one")])
    uid = refuse_applies(api, always=False)
    done: list[bool] = []

    def delete_now(request: Request) -> bool:
        if request.content_type.startswith("application/merge-patch") and request.path.endswith("/crontabs/one") and not done:
            done.append(True)
            api.delete("CronTab", "default", "one")
        return False

    api.fail(faults.unavailable(), method="PATCH", when=delete_now)
    Instance(api.url).reconcile([in_v2(crontab("one"))])
    assert done
    assert api.get("CronTab", "default", "one")["metadata"]["uid"] != uid


def test_the_fields_of_all_managers_are_moved(api: FakeApi) -> None:
    """The API server converts the object to the version of each of them."""
    api.put(of_two_versions())
    blue = Instance(api.url)
    blue.reconcile([crontab("one")])
    entry = {"manager": "controller", "operation": "Update", "apiVersion": V1, "fieldsType": "FieldsV1"}
    entry |= {"fieldsV1": {"f:status": {"f:seen": {}}}, "subresource": "status", "time": "2026-01-01T00:00:00Z"}
    api.edit("CronTab", "default", "one", lambda live: live["metadata"]["managedFields"].append(entry))
    uid = refuse_applies(api, always=False)
    blue.reconcile([in_v2(crontab("one"))])
    live = api.get("CronTab", "default", "one")
    assert live["metadata"]["uid"] == uid
    moved = {(one["manager"], one["apiVersion"]) for one in live["metadata"]["managedFields"]}
    assert ("controller", "stable.example.com/v2") in moved


def test_a_rollback_moves_fields_from_a_version_that_is_served_no_more(api: FakeApi) -> None:
    api.put(of_two_versions())
    blue = Instance(api.url)
    blue.reconcile([in_v2(crontab("one"))])
    api.put(crontab_crd())
    unknown = "request to convert CR to an invalid group/version: stable.example.com/v2"

    def is_refused(request: Request) -> bool:
        live = api.find("CronTab", "default", "one")
        is_apply = request.content_type.startswith("application/apply-patch") and request.path.endswith("/crontabs/one")
        return is_apply and live is not None and any(one["apiVersion"] != V1 for one in live["metadata"]["managedFields"])

    api.fail(faults.status(500, "InternalError", unknown), method="PATCH", when=is_refused, times=99)
    Instance(api.url, yields=True).reconcile([crontab("one")])
    assert {one["apiVersion"] for one in api.get("CronTab", "default", "one")["metadata"]["managedFields"]} == {V1}


@pytest.mark.parametrize("wanted", [[config_map("a")], []], ids=["change", "terminate"])
def test_an_adopted_object_is_released_in_another_version(api: FakeApi, wanted: list[Object]) -> None:
    api.put(of_two_versions())
    api.put(crontab("one"), manager="kubectl")
    blue = Instance(api.url, adopt=True)
    adopted = crontab("one")
    adopted["metadata"]["labels"] = {"x": "y"}
    blue.reconcile([adopted, config_map("a")])

    def is_refused(request: Request) -> bool:
        live = api.find("CronTab", "default", "one")
        if live is None or not request.content_type.startswith("application/apply-patch") or not request.path.endswith("/one"):
            return False
        ours = {one["apiVersion"] for one in live["metadata"]["managedFields"] if one["manager"] == manager(BLUE)}
        return any(one not in request.path for one in ours)

    api.fail(UNDECLARED, method="PATCH", when=is_refused, times=500)
    blue.reconcile(wanted)
    assert not is_managed(api.get("CronTab", "default", "one"), BLUE)
