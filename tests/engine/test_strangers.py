# SPDX-License-Identifier: Apache-2.0
"""Objects of others with the label of an instance fail no operation, and little of them is kept."""

from __future__ import annotations

import json

import pytest

from k8s_cr_driver.engine.watch import informers, strangers
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from tests.fake_api import FakeApi
from tests.instance import BLUE, Instance, config_map


def of_a_stranger(name: str, **data: str) -> Object:
    found = config_map(name, **data)
    found["metadata"]["labels"] = {INSTANCE_LABEL: BLUE, "app": "x" * 1000}
    found["metadata"]["annotations"] = {"a": "x" * 1000}
    return found


@pytest.mark.parametrize("watched", [True, False])
def test_labels_of_strangers_fail_no_operation(api: FakeApi, monkeypatch: pytest.MonkeyPatch, watched: bool) -> None:
    monkeypatch.setattr(informers, "OBJECTS", 5)
    monkeypatch.setattr(strangers, "STRANGERS", 3, raising=False)
    if not watched:
        api.knobs.send_initial_events = False
    for number in range(10):
        api.put(of_a_stranger(f"stranger-{number}"))
    blue = Instance(api.url)
    blue.reconcile([config_map("a"), config_map("b")])
    api.put(of_a_stranger("late"))
    blue.reconcile([config_map("b")])
    assert {"a", "b"} & set(api.names("ConfigMap")) == {"b"}
    blue.reconcile([])
    assert {name for name in api.names("ConfigMap") if not name.startswith("k8s-cr-driver-")} == {
        *(f"stranger-{number}" for number in range(10)), "late"
    }  # fmt: skip


def test_only_the_identity_of_a_stranger_is_kept(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([config_map("a", text="y" * 1000)])
    api.put(of_a_stranger("b", text="y" * 1000))
    with Connection(Endpoint(api.url)) as connection:
        inventory = Inventory(connection, "default", BLUE)
        inventory.content = inventory.read() or inventory.content
        keep = strangers.Strangers(inventory).kept
        assert keep(api.get("ConfigMap", "default", "a")) == api.get("ConfigMap", "default", "a")
        kept = keep(api.get("ConfigMap", "default", "b")) or {}
    assert kept["metadata"]["name"] == "b" and kept["metadata"]["labels"] == {INSTANCE_LABEL: BLUE}
    assert not {"x" * 1000, "y" * 1000} & set(json.dumps(kept).split('"'))
