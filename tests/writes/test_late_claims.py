# SPDX-License-Identifier: Apache-2.0
"""Claims that are looked for when their StatefulSet is gone."""

from __future__ import annotations

import json
import urllib.request

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from tests.fake_api import FakeApi, controllers, defaults
from tests.instance import Instance, claim, config_map, labelled, state, stateful_set, wait_for
from tests.writes.claims import HELD, is_going

RETENTION = "spec", "persistentVolumeClaimRetentionPolicy"


def apply_as_user(api: FakeApi, manifest: object) -> None:
    """As `kubectl apply --server-side` does it."""
    path = f"{api.url}/apis/apps/v1/namespaces/default/statefulsets/db?fieldManager=kubectl&force=true"
    headers = {"Content-Type": "application/apply-patch+yaml"}
    urllib.request.urlopen(urllib.request.Request(path, json.dumps(manifest).encode(), headers, method="PATCH")).close()


def test_a_claim_of_a_user_outlives_a_set_that_others_create_again_and_that_has_no_status_yet(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set before it names the controller, which has not made the claim."""
    filled = [((*RETENTION, one), "Retain") for one in ("whenDeleted", "whenScaled")]
    monkeypatch.setitem(defaults._DEFAULTS, "StatefulSet", [(("spec", "replicas"), 1), *filled])
    blue, last = Instance(api.url), config_map("last")
    last["metadata"]["finalizers"] = HELD
    controllers.run_workloads(api)
    with monkeypatch.context() as past:
        past.setattr(defaults, "now", lambda: "2020-01-01T00:00:00Z")
        blue.reconcile([stateful_set("db"), last])
    api.put(claim("data-db-7", app="db"), manager="kubectl-client-side-apply")
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "ConfigMap", "last") and api.find("StatefulSet", "default", "db") is None)
    blue.wait_until_reported("db", "deleted")
    api.cluster.reactions.clear()  # the controllers are late
    blue.heard.clear()
    apply_as_user(api, labelled(stateful_set("db"), **{INSTANCE_LABEL: blue.id}))
    blue.wait_until_reported("db", "deleted")
    api.release("ConfigMap", "default", "last", HELD)
    run.result(60)
    assert "data-db-7" in api.names("PersistentVolumeClaim", "default")


def test_a_claim_of_the_first_second_of_an_instance_goes_though_a_list_did_not_say_who_has_made_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of a server that lags has no status of the set yet, which names its controller. The watch has it."""
    monkeypatch.setattr(defaults, "now", lambda: "2026-01-01T00:00:00Z")
    controllers.run_workloads(api)
    blue, database = Instance(api.url), stateful_set("db")
    database["metadata"]["finalizers"] = HELD
    blue.reconcile([database])
    api.edit("StatefulSet", "default", "db", without_status_manager)
    run = blue.start([])
    wait_for(api, lambda: is_going(api, "StatefulSet", "db"))
    seen = api.get("StatefulSet", "default", "db")["status"]
    api.set_status("StatefulSet", "default", "db", {**seen, "collisionCount": 0}, manager=controllers.MANAGER)
    api.release("StatefulSet", "default", "db", HELD)
    run.result(60)
    assert state(api) == {}


def without_status_manager(live: Object) -> None:
    metadata = live["metadata"]
    metadata["managedFields"] = [one for one in metadata["managedFields"] if one.get("subresource") != "status"]
