# SPDX-License-Identifier: Apache-2.0
"""The annotation k8s-cr-driver/keep: terminate and prune release an object, with all its fields."""

from __future__ import annotations

import pytest

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.ownership.labels import INSTANCE_LABEL, KEEP
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, crontab, crontab_crd, obj, state


def kept(manifest: Object) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {KEEP: "true"}}}


@pytest.mark.parametrize("verb", ["terminate", "change"])
def test_a_kept_object_stays_with_its_fields_and_is_nobodys(api: FakeApi, verb: str) -> None:
    blue = Instance(api.url)
    blue.reconcile([kept(config_map("a", x="1")), config_map("b")])
    blue.reconcile([config_map("b")] if verb == "change" else [])
    blue.terminate()
    live = api.get("ConfigMap", "default", "a")
    assert live["data"] == {"x": "1"}
    assert INSTANCE_LABEL not in (live["metadata"].get("labels") or {})
    assert [key.name for key in state(api)] == ["a"]


@pytest.mark.parametrize(
    "shared, member", [(obj("v1", "Namespace", "home"), config_map("a", "home")), (crontab_crd(), crontab("a"))]
)
def test_the_namespace_or_crd_of_a_kept_object_stays(api: FakeApi, shared: Object, member: Object) -> None:
    blue = Instance(api.url)
    blue.reconcile([shared, kept(member)])
    blue.terminate()
    assert api.find(member["kind"], member["metadata"]["namespace"], "a")
