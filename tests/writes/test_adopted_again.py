# SPDX-License-Identifier: Apache-2.0
"""An adopted object that is deleted, and that a worker creates again which dies before it records that."""

from __future__ import annotations

from tests.fake_api import FakeApi, faults
from tests.instance import Instance, config_map, wait_for


def test_what_was_made_again_in_place_of_an_adopted_object_is_deleted_though_the_inventory_was_lost(api: FakeApi) -> None:
    """Tacker's record has the uid of the object that was adopted; the worker that has created it again has died."""
    blue, desired = Instance(api.url, adopt=True), [config_map("a"), config_map("b")]
    api.put(config_map("a"), manager="user")
    blue.reconcile(desired)
    blue.record()
    api.delete("ConfigMap", "default", "a")
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{blue.id}")
    api.delete("ConfigMap", "default", "b")
    api.fail(faults.unavailable(), method="PATCH", path="/configmaps/b$", times=10**6)
    run = blue.start(desired, prune=False)
    wait_for(api, lambda: api.find("ConfigMap", "default", "a") is not None)
    api.fail(faults.unavailable(), method="PATCH", path=f"/configmaps/k8s-cr-driver-{blue.id}$", times=10**6)
    blue.stop.set()
    run.exception(10)
    api.clear_faults()
    blue.stop.clear()
    blue.reconcile(desired, prune=False)
    blue.terminate()
    assert api.find("ConfigMap", "default", "a") is None
