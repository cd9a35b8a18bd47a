# SPDX-License-Identifier: Apache-2.0
"""A Cluster is Available when all of its workers are, and workers are pruned when the set is ready: one of both goes first."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from tests.capi import clusters
from tests.capi.clusters import CLUSTERS, DEPLOYMENTS, GROUP
from tests.fake_api import FakeApi, faults
from tests.instance import Instance, obj

BLUE = obj(f"{GROUP}/v1", "Cluster", "blue", "default", spec={"controlPlaneRef": {}})
BLUE["metadata"]["annotations"] = {"k8s-cr-driver/unreachable": "true"}


def workers(name: str, cluster: str = "blue") -> Object:
    return obj(f"{GROUP}/v1", "MachineDeployment", name, "default", spec={"clusterName": cluster, "replicas": 1})


def status_of(live: Object, **conditions: bool) -> Object:
    common = {"reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    several = [{"type": name, "status": str(is_true), **common} for name, is_true in conditions.items()]
    return {"observedGeneration": live["metadata"]["generation"], "conditions": several}


class Controllers:
    """They report of each MachineDeployment whether it is Available, and of the Cluster whether all are."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api
        self._sick: set[str] = set()
        self._closed: set[str] = set()
        for kind in (CLUSTERS, DEPLOYMENTS):
            api.put(clusters.crd(kind, status={}))
            api.react(kind.kind, self._report)

    def sicken(self, *names: str) -> None:
        self._sick.update(names)
        self._report({})

    def close(self, *conditions: str) -> None:
        """Other conditions of the Cluster that are False."""
        self._closed.update(conditions)
        self._report({})

    def _report(self, _: Object) -> None:
        groups = self._api.objects("MachineDeployment", "default")
        for live in [*groups, *self._api.objects("Cluster", "default")]:
            name = live["metadata"]["name"]
            is_cluster = live["kind"] == "Cluster"
            status = self._of_cluster(live, groups) if is_cluster else status_of(live, Available=name not in self._sick)
            if live.get("status") != status:
                self._api.set_status(live["kind"], "default", name, status)

    def _of_cluster(self, live: Object, groups: list[Object]) -> Object:
        """Available sums up the others, of which WorkersAvailable sums up all groups."""
        are_workers = self._sick.isdisjoint(one["metadata"]["name"] for one in groups)
        others = {name: name not in self._closed for name in ("InfrastructureReady", "ControlPlaneAvailable")}
        return status_of(live, Available=are_workers and not self._closed, WorkersAvailable=are_workers, **others)


@pytest.fixture
def controllers(api: FakeApi) -> Controllers:
    return Controllers(api)


@pytest.fixture
def instance(api: FakeApi, controllers: Controllers) -> Instance:
    """Of the Cluster `blue` with `web` and `batch`."""
    made = Instance(api.url)
    made.reconcile([BLUE, workers("web"), workers("batch")])
    return made


def test_workers_that_keep_the_cluster_from_being_available_are_pruned_before_it_is(
    api: FakeApi, instance: Instance, controllers: Controllers
) -> None:
    controllers.sicken("batch")
    instance.reconcile([BLUE, workers("web")])
    assert api.names("MachineDeployment") == ["web"]


def test_workers_stay_until_the_others_are_ready(api: FakeApi, instance: Instance, controllers: Controllers) -> None:
    controllers.sicken("web", "batch")
    instance.seconds = 1
    with pytest.raises(NotReady):
        instance.reconcile([BLUE, workers("web")])
    assert api.names("MachineDeployment") == ["batch", "web"]


def test_workers_that_are_ready_stay_until_the_cluster_is(api: FakeApi, instance: Instance, controllers: Controllers) -> None:
    api.put(workers("of-others"))
    controllers.sicken("of-others")
    instance.seconds = 1
    with pytest.raises(NotReady):
        instance.reconcile([BLUE, workers("web")])
    assert "batch" in api.names("MachineDeployment")


@pytest.mark.parametrize("cause", ["InfrastructureReady", "ControlPlaneAvailable"])
def test_workers_stay_while_something_else_keeps_the_cluster_from_being_available(
    api: FakeApi, instance: Instance, controllers: Controllers, cause: str
) -> None:
    controllers.sicken("batch")
    controllers.close(cause)
    instance.seconds = 1
    with pytest.raises(NotReady):
        instance.reconcile([BLUE])
    assert api.names("MachineDeployment") == ["batch", "web"]


def test_workers_stay_until_the_change_of_the_cluster_is_accepted(
    api: FakeApi, instance: Instance, controllers: Controllers
) -> None:
    controllers.sicken("batch")
    api.fail(faults.webhook_down(), method="PATCH", path="/clusters/", times=100)
    instance.seconds = 1
    with pytest.raises(NotReady):
        instance.reconcile([{**BLUE, "spec": {**BLUE["spec"], "paused": False}}])
    assert api.names("MachineDeployment") == ["batch", "web"]
