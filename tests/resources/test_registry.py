# SPDX-License-Identifier: Apache-2.0
"""Which class knows a kind, with one of another project as it would be installed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_cr_driver.capi import Cluster
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import GroupKind
from k8s_cr_driver.resources import builtin, registry
from k8s_cr_driver.resources.base import ANY, CustomResource
from k8s_cr_driver.resources.hooks import Orphans
from k8s_cr_driver.writes.orphans import may_leave
from tests.fake_api import FakeApi
from tests.instance import Instance, crontab, crontab_crd, obj


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project is installed: its module and its entry points are on the path."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "example"))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Entry points are read once; each test begins anew."""
    registry.classes.cache_clear()
    yield
    registry.classes.cache_clear()


def test_built_in_kinds_have_their_classes_and_any_other_the_common_one() -> None:
    assert type(registry.resource_for(obj("apps/v1", "Deployment", "a", "b"))) is builtin.Deployment
    assert type(registry.resource_for(obj("v1", "Pod", "a", "b"))) is builtin.Pod
    assert type(registry.resource_for(obj("stable.example.com/v1", "CronTab", "a", "b"))) is CustomResource


def test_the_version_of_a_kind_does_not_matter_but_its_group_does() -> None:
    assert type(registry.resource_for(obj("apps/v1beta1", "Deployment", "a"))) is builtin.Deployment
    assert type(registry.resource_for(obj("other.example.com/v1", "Deployment", "a"))) is CustomResource


def test_cluster_api_comes_by_entry_point() -> None:
    assert registry.classes()[GroupKind("cluster.x-k8s.io", "Cluster")] is Cluster


def test_a_class_of_another_project_decides_when_its_kind_is_ready(api: FakeApi, example: None) -> None:
    crd = crontab_crd(runs={"type": "integer"})
    blue = Instance(api.url)
    run = blue.start([crd, crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    assert [message for key, _, message in blue.heard if key.name == "one"][-1] == "has not run yet"
    api.set_status("CronTab", "default", "one", {"runs": 1})
    run.result(10)


def test_a_class_says_what_its_objects_leave_by_its_method_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shelf(CustomResource):
        group, kind = "example.com", ANY

        def orphans(self) -> Orphans | None:
            return Orphans(GroupKind("", "Secret"), "v1", "default", re.compile("."))

    monkeypatch.setitem(registry.classes(), GroupKind("example.com", ANY), Shelf)
    assert may_leave(GroupKind("example.com", "Box"))
    assert not may_leave(GroupKind("example.org", "Box"))


def test_an_entry_point_that_cannot_be_loaded_is_logged_and_harms_no_other(
    example: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        classes = registry.classes()
    assert classes[GroupKind("stable.example.com", "CronTab")].__module__ == "example_kind"
    assert classes[GroupKind("apps", "Deployment")] is builtin.Deployment
    assert "Entry point broken of k8s_cr_driver.resources cannot be loaded" in caplog.text


def test_the_count_of_a_custom_resource_is_where_its_crd_says() -> None:
    crd = crontab_crd()
    assert CustomResource(crontab("one"), crd).replicas() is None
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    crd["spec"]["versions"][0]["subresources"] = {"scale": paths}
    assert CustomResource(crontab("one"), crd).replicas() == ("spec", "size")
    assert CustomResource({**crontab("one"), "apiVersion": "stable.example.com/v2"}, crd).replicas() is None


@pytest.mark.usefixtures("example")
def test_an_object_that_is_being_deleted_is_not_ready_whatever_its_class_says(api: FakeApi) -> None:
    api.put(crontab_crd(runs={"type": "integer"}))
    api.react("CronTab", lambda live: "status" in live or api.set_status("CronTab", "default", "a", {"runs": 1}))
    held = crontab("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    Instance(api.url).reconcile([held])
    api.delete("CronTab", "default", "a")
    with pytest.raises(NotReady, match=r"CronTab.stable.example.com default/a: Waiting \(Terminating\)"):
        Instance(api.url, seconds=2).reconcile([held])
