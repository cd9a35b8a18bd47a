# SPDX-License-Identifier: Apache-2.0
"""The judge of the audit log: a write of the driver to an object that is no instance's is found, and no other."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from functional_tests.audit import CONTROLLER_OF_CLAIMS, DRIVER, judge, strangers
from k8s_cr_driver.journal.inventory import INVENTORY_LABEL
from k8s_cr_driver.journal.stored_form import InventoryContent, form
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, manager
from k8s_cr_driver.vnf import scale_in

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
TACKER = "system:serviceaccount:kube-system:tacker"
RECORDED = {
    "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
    "requestURI": "/api/v1/namespaces/guest-house/configmaps/furniture", "verb": "delete",
    "user": {"username": TACKER}, "userAgent": "k8s-cr-driver",
    "objectRef": {"resource": "configmaps", "namespace": "guest-house", "name": "furniture", "apiVersion": "v1"},
    "responseStatus": {"metadata": {}, "status": "Success", "code": 200},
    "responseObject": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                       "details": {"name": "furniture", "kind": "configmaps", "uid": "42f4db2b"}},
    "requestReceivedTimestamp": "2026-11-22T16:20:09.043732Z",
}  # fmt: skip
"""A deletion, as the API server has logged it, without what does not matter."""


def event(verb: str, kind: str, name: str, uid: str, *, by: str = "", code: int = 200, **more: Any) -> dict[str, Any]:
    """Of the driver for the instance `by`; `more` are fields of metadata, and `agent` and `user`."""
    agent, user = more.pop("agent", DRIVER), more.pop("user", TACKER)
    query = f"?fieldManager={manager(by)}&force=false" if by else ""
    metadata = {"name": name, "namespace": "default", "uid": uid, **more}
    return {
        **RECORDED,
        "verb": verb,
        "requestURI": f"/api/v1/namespaces/default/{kind.lower()}s/{name}{query}",
        "user": {"username": user},
        "userAgent": agent,
        "objectRef": {"resource": f"{kind.lower()}s", "namespace": "default", "name": name, "apiVersion": "v1"},
        "responseStatus": {"code": code},
        "responseObject": {"apiVersion": "v1", "kind": kind, "metadata": metadata},
    }


def created(kind: str, name: str, uid: str, **more: Any) -> dict[str, Any]:
    return event("patch", kind, name, uid, by=A, code=201, **more)


def by_user(kind: str, name: str, uid: str, **more: Any) -> dict[str, Any]:
    return event("create", kind, name, uid, code=201, agent="kubectl", user="somebody", **more)


def inventory(content: InventoryContent) -> dict[str, Any]:
    """The last write of the instance's inventory."""
    stored = form(content)
    written = event("patch", "ConfigMap", manager(A), "inventory", labels={INVENTORY_LABEL: A}, resourceVersion="1")
    written["responseObject"] |= {name: stored[name] for name in ("data", "binaryData")}
    written["responseObject"]["metadata"]["annotations"] = stored["annotations"]
    return written


def wrong(*events: dict[str, Any]) -> list[str]:
    return [text for _, text in judge(events)]


def test_the_deletion_of_a_strangers_object_is_found_and_named() -> None:
    assert wrong(RECORDED) == [
        f"delete of configmaps guest-house/furniture by k8s-cr-driver ({TACKER}) at 2026-11-22T16:20:09.043732Z: "
        "it is no instance's"
    ]


@pytest.mark.parametrize("verb", ["delete", "patch", "update"])
def test_no_write_to_what_a_user_has_created_is_right(verb: str) -> None:
    assert len(wrong(by_user("ConfigMap", "theirs", "1"), event(verb, "ConfigMap", "theirs", "1"))) == 1


def test_a_patch_that_labels_a_strangers_object_does_not_make_it_the_instances() -> None:
    taken = event("patch", "PersistentVolumeClaim", "data-db-7", "1", by=A, labels={INSTANCE_LABEL: A})
    deleted = event("delete", "PersistentVolumeClaim", "data-db-7", "1")
    theirs = by_user("PersistentVolumeClaim", "data-db-7", "1")
    assert len(wrong(created("StatefulSet", "db", "2"), theirs, taken, deleted)) == 2


def test_an_instance_writes_and_deletes_what_it_has_created() -> None:
    events = [created("ConfigMap", "ours", "1"), event("patch", "ConfigMap", "ours", "1", by=A)]
    assert wrong(*events, event("delete", "ConfigMap", "ours", "1")) == []


def test_an_object_of_that_name_with_another_uid_is_a_strangers() -> None:
    assert len(wrong(created("ConfigMap", "ours", "1"), event("delete", "ConfigMap", "ours", "2"))) == 1


def test_a_write_to_another_instances_object_is_found_unless_both_share_it() -> None:
    assert len(wrong(created("ConfigMap", "one", "1"), event("patch", "ConfigMap", "one", "1", by=B))) == 1
    assert wrong(created("Namespace", "one", "1"), event("patch", "Namespace", "one", "1", by=B)) == []


def test_what_a_user_has_created_again_with_the_label_is_the_instances() -> None:
    again = by_user("ConfigMap", "ours", "2", labels={INSTANCE_LABEL: A})
    assert wrong(created("ConfigMap", "ours", "1"), again, event("delete", "ConfigMap", "ours", "2")) == []
    assert len(wrong(again, event("delete", "ConfigMap", "ours", "2"))) == 1


def test_what_an_object_of_the_instance_owns_is_the_instances() -> None:
    events = [
        created("Deployment", "web", "1"),
        by_user("ReplicaSet", "web-1", "2", ownerReferences=[{"uid": "1"}]),
        by_user("Pod", "web-1-a", "3", ownerReferences=[{"uid": "2"}]),
    ]
    annotated = event("patch", "Pod", "web-1-a", "3")
    annotated["requestURI"] += f"?fieldManager={scale_in.MANAGER}&force=true"
    assert wrong(*events, annotated, event("delete", "Pod", "web-1-a", "3")) == []
    assert len(wrong(*events[1:], event("delete", "Pod", "web-1-a", "3"))) == 1


def test_an_owner_may_be_named_after_the_creation_but_not_by_the_driver() -> None:
    """Cluster API's topology controller creates sets of machines before these are the Cluster's."""
    made = [created("Cluster", "green", "1"), by_user("MachineSet", "green-web", "2")]
    owned = {"ownerReferences": [{"uid": "1"}]}
    by_controller = event("patch", "MachineSet", "green-web", "2", agent="manager", **owned)
    assert wrong(*made, by_controller, event("delete", "MachineSet", "green-web", "2")) == []
    by_driver = event("patch", "MachineSet", "green-web", "2", **owned)
    assert len(wrong(*made, by_driver, event("delete", "MachineSet", "green-web", "2"))) == 2


def test_a_claim_that_the_controller_made_for_a_statefulset_of_the_instance_is_deleted() -> None:
    made = event("create", "PersistentVolumeClaim", "data-db-0", "2", code=201, agent="kcm", user=CONTROLLER_OF_CLAIMS)
    deletion = event("delete", "PersistentVolumeClaim", "data-db-0", "2")
    assert wrong(created("StatefulSet", "db", "1"), made, deletion) == []
    assert len(wrong(created("StatefulSet", "other", "1"), made, deletion)) == 1


def test_what_is_adopted_is_written_and_not_deleted() -> None:
    adopting = inventory(InventoryContent(adopted=frozenset({ObjectKey("", "ConfigMap", "default", "theirs")})))
    events = [by_user("ConfigMap", "theirs", "1"), adopting, event("patch", "ConfigMap", "theirs", "1", by=A)]
    assert wrong(*events) == []
    assert len(wrong(*events, event("delete", "ConfigMap", "theirs", "1"))) == 1
    assert len(wrong(*events, inventory(InventoryContent()), events[-1])) == 1


def test_what_the_driver_has_created_for_no_instance_is_its_own() -> None:
    assert wrong(event("create", "ConfigMap", "own", "1", code=201), event("delete", "ConfigMap", "own", "1")) == []


def test_deleting_a_collection_is_never_right() -> None:
    assert len(wrong(created("ConfigMap", "ours", "1"), event("deletecollection", "ConfigMap", "", ""))) == 1


@pytest.mark.parametrize("change", [{"responseStatus": {"code": 409}}, {"requestURI": "/api?dryRun=All"}])
def test_a_request_that_has_written_nothing_is_right(change: dict[str, Any]) -> None:
    assert wrong({**RECORDED, **change}) == []


def test_only_whole_lines_of_this_run_are_reported(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f'{json.dumps(RECORDED)}\n{{"kind": "Ev')
    assert len(strangers(log, "2026-11-22T16:20:09+00:00")) == 1
    assert strangers(log, "2026-11-22T16:20:10+00:00") == []


CRASH = datetime(2026, 11, 22, 16, 20, tzinfo=timezone.utc)
AT_THE_CRASH, BEFORE = "2026-11-22T16:19:58Z", "2026-11-22T16:19:00Z"


@pytest.mark.parametrize("born, found", [(AT_THE_CRASH, 0), (BEFORE, 2)])
def test_a_write_stands_for_a_creation_that_a_crash_has_lost(born: str, found: int) -> None:
    pod = event("delete", "Pod", "web-1", "2", ownerReferences=[{"uid": "1"}], creationTimestamp=born)
    updated = event("patch", "Deployment", "web", "1", by=A, creationTimestamp=born)
    events = [created("ConfigMap", "ours", "9"), updated, pod]
    assert len(list(judge(events, [CRASH]))) == found


def test_a_crash_does_not_make_a_strangers_object_the_instances() -> None:
    theirs = event("patch", "ConfigMap", "theirs", "1", agent="kubectl", user="somebody", creationTimestamp=AT_THE_CRASH)
    ours = created("ConfigMap", "ours", "2")
    assert len(list(judge([ours, theirs, event("delete", "ConfigMap", "theirs", "1")], [CRASH]))) == 1


@pytest.mark.parametrize(("name", "code", "found"), [("a", 504, 0), ("a", 409, 1), ("b", 504, 1)])
def test_a_write_that_was_cut_off_may_have_created_its_object(name: str, code: int, found: int) -> None:
    """As that of a process that was killed."""
    cut_off = {**event("patch", "ConfigMap", name, "", by=A, code=code), "responseObject": {"kind": "Status"}}
    events = [created("ConfigMap", "ours", "9"), cut_off, event("delete", "ConfigMap", "a", "1")]
    assert len(list(judge(events))) == found


def test_a_write_that_was_cut_off_does_not_make_a_strangers_object_the_instances() -> None:
    cut_off = event("patch", "ConfigMap", "a", "", by=A, code=504)
    theirs = by_user("ConfigMap", "a", "1")
    events = [created("ConfigMap", "ours", "9"), theirs, cut_off, event("delete", "ConfigMap", "a", "1")]
    assert len(list(judge(events))) == 1
