# SPDX-License-Identifier: Apache-2.0
"""A package that pauses its Cluster gets that: what belongs to the Cluster is done when it is applied."""

from __future__ import annotations

import pytest

from k8s_cr_driver.capi.contract import GROUP
from k8s_cr_driver.engine.report.not_ready import NotReady
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.registry import resource_for
from tests.capi.clusters import CLUSTERS, CONTROL_PLANES, DEPLOYMENTS, MACHINES, crd
from tests.capi.test_causes import DEV_MACHINES, INFRASTRUCTURE, plain, reference
from tests.fake_api import FakeApi
from tests.instance import Instance, obj

DEV_CLUSTERS = DEV_MACHINES._replace(kind="DevCluster")
TEMPLATES = DEV_MACHINES._replace(kind="DevMachineTemplate")


def paused_by_package() -> list[Object]:
    """A paused Cluster with all that belongs to one."""
    objects = plain()
    objects[0]["spec"] |= {"paused": True, "infrastructureRef": reference(DEV_CLUSTERS, "blue")}
    return [*objects, obj(f"{INFRASTRUCTURE}/v1", "DevCluster", "blue", "default", spec={})]


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    for kind in (CLUSTERS, CONTROL_PLANES, DEPLOYMENTS, MACHINES, DEV_CLUSTERS):
        api.put(crd(kind, status={}))
    return api


def report_pause(live: Object) -> Object:
    """As the controllers of Cluster API 1.9 and later do; earlier ones report nothing."""
    condition = {"type": "Paused", "status": "True", "message": "Cluster spec.paused is set to true"}
    return {**live, "status": {"conditions": [condition]}}


@pytest.mark.parametrize("reported", [True, False])
def test_what_belongs_to_a_cluster_that_the_package_pauses_is_applied_and_not_waited_for(
    api: FakeApi, reported: bool
) -> None:
    def pause(live: Object) -> None:
        status = report_pause(live)["status"]
        if live.get("status") != status:
            api.set_status(live["kind"], "default", live["metadata"]["name"], status)

    for kind in ("Cluster", "KubeadmControlPlane", "MachineDeployment") if reported else ():
        api.react(kind, pause)
    objects = paused_by_package()
    assert len(Instance(api.url).reconcile(objects)) == len(objects)


def test_what_belongs_to_another_cluster_is_waited_for(api: FakeApi) -> None:
    other = obj(f"{GROUP}/v1", "MachineDeployment", "green-workers", "default", spec={"replicas": 0, "clusterName": "green"})
    with pytest.raises(NotReady) as error:
        Instance(api.url, seconds=2).reconcile([*paused_by_package(), other])
    assert [report.key.name for report in error.value.reports] == ["green-workers"]


@pytest.mark.parametrize("is_paused", [True, False])
def test_machines_of_a_cluster_that_the_package_pauses_keep_their_template(is_paused: bool) -> None:
    def workers(template: str) -> Object:
        spec = {"clusterName": "blue", "template": {"spec": {"infrastructureRef": reference(TEMPLATES, template)}}}
        return obj(f"{GROUP}/v1", "MachineDeployment", "blue-workers", "default", spec=spec)

    cluster = paused_by_package()[0]
    cluster["spec"]["paused"] = is_paused
    why = resource_for(workers("new")).changes().error(workers("former"), [cluster, workers("new")])
    assert ("end the pause in this change" in why) is is_paused
