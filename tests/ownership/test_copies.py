# SPDX-License-Identifier: Apache-2.0
"""Copies of members, with their labels and managedFields, are objects of users: a backup restored under another name."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, crontab, crontab_crd, obj


def restored(api: FakeApi, live: Object, namespace: str) -> None:
    """As a backup tool restores it under the name `copy`: with all labels and field managers."""
    metadata = {name: live["metadata"][name] for name in ("labels", "annotations") if name in live["metadata"]}
    api.put({**live, "metadata": {**metadata, "name": "copy", "namespace": namespace}}, manager="restore")
    fields = live["metadata"]["managedFields"]
    api.edit(live["kind"], namespace, "copy", lambda copy: copy["metadata"].update(managedFields=fields))


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
