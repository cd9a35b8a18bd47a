"""The volume claims of a StatefulSet go with the instance, and only with it."""

from __future__ import annotations

import pytest

from tests.fake_api import FakeApi, controllers, faults
from tests.instance import Instance, claim, config_map, state, stateful_set


@pytest.fixture(autouse=True)
def workloads(api: FakeApi) -> None:
    controllers.run_workloads(api)


def test_terminate_deletes_volume_claims_of_its_stateful_sets(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    for name in ("data-db-0", "data-db-1", "data-db-x", "data-db", "logs-db-0"):
        api.put(claim(name))
    instance.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db", "data-db-x", "logs-db-0"]
    assert api.names("StatefulSet", "default") == []


def test_a_change_of_package_keeps_volume_claims(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db"), config_map("a")])
    api.put(claim("data-db-0"))
    instance.reconcile([config_map("a")])
    assert (api.names("StatefulSet", "default"), api.names("PersistentVolumeClaim", "default")) == ([], ["data-db-0"])


def test_terminate_keeps_volume_claims_with_when_deleted_retain(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"})])
    api.put(claim("data-db-0"))
    instance.terminate()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]


def test_terminate_deletes_a_volume_claim_despite_a_conflict(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    api.put(claim("data-db-0"))
    api.fail(faults.conflict(), method="PATCH", path="persistentvolumeclaims/data-db-0")
    instance.terminate()
    assert state(api) == {}


def test_a_retry_finds_volume_claims_when_the_stateful_set_is_gone(api: FakeApi) -> None:
    instance = Instance(api.url)
    instance.reconcile([stateful_set("db")])
    api.put(claim("data-db-0"))
    api.fail(faults.status(403, "Forbidden", "no"), method="DELETE", path="persistentvolumeclaims/data-db-0")
    with pytest.raises(Exception, match="data-db-0"):
        instance.terminate()
    instance.terminate()
    assert state(api) == {}
