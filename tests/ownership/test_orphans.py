"""The volume claims of a StatefulSet go with the instance, and only with it."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import Instance, config_map, obj, state


def stateful_set(name: str, **spec: Any) -> Object:
    marks = {"app": name}
    template = {"metadata": {"labels": marks}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    own = {"replicas": 1, "selector": {"matchLabels": marks}, "template": template, "volumeClaimTemplates": claims}
    return obj("apps/v1", "StatefulSet", name, "default", spec={**own, **spec})


def claim(name: str) -> Object:
    """As the controller of a StatefulSet makes it, or a user."""
    return obj("v1", "PersistentVolumeClaim", name, "default", spec={"accessModes": ["ReadWriteOnce"]})


@pytest.fixture(autouse=True)
def workloads(api: FakeApi) -> None:
    controllers.run_workloads(api)


def test_they_go_when_the_instance_goes_and_other_claims_stay(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    for name in ("data-db-0", "data-db-1", "data-db-x", "data-db", "logs-db-0"):
        api.put(claim(name))
    instance.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db", "data-db-x", "logs-db-0"]
    assert api.names("StatefulSet", "default") == []


def test_they_stay_when_a_change_of_package_drops_the_stateful_set(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db"), config_map("a")])
    api.put(claim("data-db-0"))
    instance.reconcile([config_map("a")])
    assert (api.names("StatefulSet", "default"), api.names("PersistentVolumeClaim", "default")) == ([], ["data-db-0"])


def test_they_stay_when_the_package_says_so(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"})])
    api.put(claim("data-db-0"))
    instance.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


def test_one_that_is_written_by_others_meanwhile_goes_as_well(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    api.put(claim("data-db-0"))
    api.fail(faults.conflict(), method="PATCH", path="persistentvolumeclaims/data-db-0")
    instance.terminate()
    assert state(api) == {}


def test_a_retry_finds_them_when_the_stateful_set_is_gone(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    api.put(claim("data-db-0"))
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="persistentvolumeclaims/data-db-0")
    with pytest.raises(Exception, match="data-db-0"):
        instance.terminate()
    instance.terminate()
    assert state(api) == {}
