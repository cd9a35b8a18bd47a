# SPDX-License-Identifier: Apache-2.0
"""Copies of members, with their labels and managedFields, are objects of users: a backup restored under another name."""

from __future__ import annotations

import pytest

from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, crontab, crontab_crd, obj, restored


@pytest.mark.parametrize("namespace", ["restore", "default"])
@pytest.mark.parametrize("verb", ["terminate", "change"])
@pytest.mark.parametrize("labeled", [True, False], ids=["labeled", "unlabeled"])
def test_a_restored_copy_of_a_member_stays(
    api: FakeApi, caplog: pytest.LogCaptureFixture, namespace: str, verb: str, labeled: bool
) -> None:
    api.put(obj("v1", "Namespace", "restore"))
    blue = Instance(api.url)
    blue.reconcile([config_map("a")])
    live = api.get("ConfigMap", "default", "a")
    restored(api, live if labeled else {**live, "metadata": {**live["metadata"], "labels": {}}}, namespace)
    blue.reconcile([config_map("a", b="2")] if verb == "change" else [])
    assert "copy" in api.names("ConfigMap", namespace)
    assert not labeled or f"ConfigMap {namespace}/copy stays: it has the instance's label" in caplog.text


def test_a_restored_copy_of_a_custom_resource_keeps_its_crd(api: FakeApi) -> None:
    api.put(obj("v1", "Namespace", "restore"))
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("ours")])
    restored(api, api.get("CronTab", "default", "ours"), "restore")
    blue.terminate()
    assert api.names("CronTab") == ["copy"]
