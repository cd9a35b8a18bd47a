# SPDX-License-Identifier: Apache-2.0
"""Requests of a retry after a run that has deleted most of the instance's objects, and has not ended."""

from __future__ import annotations

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, kept
from tests.writes.claims import is_the_same, own, volume
from tests.writes.holders import ROLE
from tests.writes.test_owned_after_a_failure import fail_to_terminate

MANY = 50


def renamed(manifest: Object, name: str) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}}


def test_a_retry_of_terminate_does_not_read_each_object_that_is_gone(api: FakeApi) -> None:
    blue, names = Instance(api.url), [f"c{number}" for number in range(MANY)]
    blue.reconcile([config_map("last"), *map(config_map, names)])
    for name in names:
        api.delete("ConfigMap", "default", name)
    api.requests.clear()
    blue.terminate()
    assert len(api.requests.select("GET", "/configmaps/c")) < MANY / 2


def test_a_kept_object_among_many_that_are_gone_outlives_an_owner_that_owns_it_again(api: FakeApi) -> None:
    blue = Instance(api.url)
    claims = [renamed(kept(volume()), f"v{number}") for number in range(MANY)]
    blue.reconcile([ROLE, volume("kept"), *claims])
    uid = own(api, api.get("ClusterRole", None, "owner"))
    fail_to_terminate(api, blue)
    for one in claims:
        api.delete("PersistentVolumeClaim", "default", one["metadata"]["name"])
    own(api, api.get("ClusterRole", None, "owner"))
    blue.seconds = 60
    blue.terminate()
    assert api.find("ClusterRole", None, "owner") is None
    assert is_the_same(api, uid)
