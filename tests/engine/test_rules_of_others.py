# SPDX-License-Identifier: Apache-2.0
"""What an object of another instance, or of another kind, has in annotations says nothing of this one."""

from __future__ import annotations

import json

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.registry import health_of_made, resource_for
from tests.fake_api import FakeApi
from tests.instance import GREEN, Instance, annotated, config_map, obj

PREFIX = "k8s-cr-driver/"
RULES = {
    "ready-when": "cel: has(self.metadata.labels.never)",
    "failed-when": "cel: true",
    "package-rules": json.dumps({"current": "false"}),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_that_an_instance_has_for_a_namespace_are_none_of_another_that_shares_it(api: FakeApi, name: str) -> None:
    shared = obj("v1", "Namespace", "shared")
    ruled = {**shared, "metadata": {**shared["metadata"], "annotations": {PREFIX + name: RULES[name]}}}
    blue = Instance(api.url)
    run = blue.start([ruled, config_map("a", "shared")])
    blue.wait_until_reported("shared", "Failed" if name == "failed-when" else "Waiting")
    Instance(api.url, GREEN).reconcile([shared, config_map("b", "shared")])
    assert api.get("Namespace", "", "shared")["metadata"]["annotations"][PREFIX + name] == RULES[name]
    blue.end()
    with pytest.raises(NotReady, match="Namespace shared"):
        run.result(30)


def test_rules_of_a_package_that_has_kept_the_object_are_none_of_the_next(api: FakeApi) -> None:
    kept = annotated(config_map("a"), {PREFIX + "package-rules": json.dumps({"current": "false"})})
    api.put(kept)
    Instance(api.url, adopt=True).reconcile([config_map("a")])


@pytest.mark.parametrize("name", ["ready-when", "failed-when", "package-rules"])
def test_rules_that_a_controller_copies_to_what_it_makes_are_not_about_that(name: str) -> None:
    """As the controllers of Deployments and MachineDeployments do with all annotations."""
    made: Object = {
        **obj("apps/v1", "ReplicaSet", "web-1", "default", spec={"replicas": 1}),
        "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1},
    }
    made["metadata"] |= {"generation": 1, "annotations": {PREFIX + name: RULES[name], "other": "stays"}}
    assert not resource_for(made).health(made).settled
    assert health_of_made(made).settled and made["metadata"]["annotations"].keys() == {PREFIX + name, "other"}
