# SPDX-License-Identifier: Apache-2.0
"""Terminate of a workload cluster: what a cloud would keep of it is named, or deleted first."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.capi.cluster import UNREACHABLE
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.vnf.cloud_resources import of_service, of_volume
from tests.capi.clusters import CLUSTERS, crd, put_kubeconfig
from tests.fake_api import FakeApi, faults
from tests.instance import config_map, obj
from tests.lcm.instance import Instance
from tests.lcm.web import deployment

DELETE = {"delete-cloud-resources": True}
SECRET = "/api/v1/namespaces/default/secrets/blue-kubeconfig"


def service(type_: str = "LoadBalancer", name: str = "web") -> Object:
    return obj("v1", "Service", name, "shop", spec={"type": type_, "ports": [{"port": 80}]})


def claim() -> Object:
    made = obj("v1", "PersistentVolumeClaim", "data", "shop", spec={})
    made["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    return made


def is_going(live: Object) -> bool:
    return "deletionTimestamp" in live["metadata"] and bool(live["metadata"].get("finalizers"))


def let_go(api: FakeApi, live: Object) -> None:
    """As the controller does that has finished its work."""
    metadata = live["metadata"]
    with contextlib.suppress(LookupError):  # it is gone then
        api.edit(live["kind"], metadata["namespace"], metadata["name"], lambda stored: stored["metadata"].pop("finalizers"))


def volume(uid: str = "uid", policy: str = "Delete", **source: Any) -> Object:
    reference = {"namespace": "shop", "name": "data", "uid": uid}
    source = source or {"csi": {"driver": "cinder.csi.openstack.org"}}
    spec = {"persistentVolumeReclaimPolicy": policy, "claimRef": reference} | source
    return obj("v1", "PersistentVolume", "pvc-1", spec=spec)


@pytest.fixture
def workload() -> Iterator[FakeApi]:
    with FakeApi() as server:
        server.put(obj("v1", "Namespace", "shop", ""))
        server.put(service())
        server.put(service("ClusterIP", "inner"))
        server.put(claim())
        server.put(volume(server.get("PersistentVolumeClaim", "shop", "data")["metadata"]["uid"]))

        def reclaim(live: Object) -> None:
            if is_going(live):
                server.delete("PersistentVolume", "", "pvc-1")
                let_go(server, live)

        server.react("PersistentVolumeClaim", reclaim)
        yield server
        assert not server.crashes


@pytest.fixture
def blue(cluster: FakeApi, workload: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Instance:
    """An instance with a Cluster whose kubeconfig opens `workload`."""
    cluster.put(crd(CLUSTERS, status={}))

    def available(live: Object) -> None:
        if "status" not in live and "deletionTimestamp" not in live["metadata"]:
            put_kubeconfig(cluster, live, workload.url)
            cluster.set_status("Cluster", "default", "blue", {"conditions": [{"type": "Available", "status": "True"}]})

    cluster.react("Cluster", available)
    one = Instance(cluster, tmp_path, [deployment(1), obj("cluster.x-k8s.io/v1", "Cluster", "blue", "default", spec={})])
    one.instantiate()
    for server in (cluster, workload):
        server.requests.clear()
    caplog.set_level(logging.INFO)
    return one


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    return [line for line in lines if "stay in the cloud" in line or "are not known" in line]


def is_terminated(cluster: FakeApi) -> bool:
    return cluster.names("Cluster") == [] and cluster.names("Deployment") == []


def test_what_would_stay_is_named_in_one_warning_and_left(
    cluster: FakeApi, workload: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    blue.terminate()
    [line] = warnings(caplog)
    assert "in default/blue Service shop/web, PersistentVolume pvc-1 (claim shop/data)" in line
    assert "delete-cloud-resources: true" in line and "inner" not in line
    assert [one.method for one in workload.requests] == ["GET", "GET"] and is_terminated(cluster)


def shown(blue: Instance) -> Any:
    """What Tacker shows of a terminated instance."""
    return blue.inst.metadata if blue.inst.obj_attr_is_set("metadata") else {}


def test_what_stays_is_shown_after_the_terminate_until_the_next_instantiate(
    cluster: FakeApi, workload: FakeApi, blue: Instance
) -> None:
    blue.inst.metadata = {"of": "the user"}
    vims = blue.inst.vimConnectionInfo
    blue.terminate()
    names = ["default/blue: Service shop/web", "default/blue: PersistentVolume pvc-1 (claim shop/data)"]
    assert shown(blue) == {"of": "the user", "k8s_cr": {"left-in-cloud": names}}
    metadata = shown(blue)
    blue.inst = type(blue.inst)(id=blue.inst.id, vimConnectionInfo=vims, metadata=metadata)
    blue.instantiate()
    assert shown(blue) == {"of": "the user"}


def test_nothing_is_shown_of_what_was_deleted(blue: Instance) -> None:
    blue.terminate(**DELETE)
    assert shown(blue) == {}


def test_a_terminate_that_fails_names_it_in_its_error(cluster: FakeApi, blue: Instance) -> None:
    cluster.edit("Cluster", "default", "blue", lambda live: live["metadata"].update(finalizers=["example.com/machines"]))
    with pytest.raises(sol_ex.SolException) as raised:
        blue.terminate(**{"wait-timeout": 3})
    assert "these may stay in the cloud: default/blue: Service shop/web; default/blue: Pers" in str(raised.value.detail)


def test_what_is_shown_has_bounds(workload: FakeApi, blue: Instance) -> None:
    for number in range(150):
        workload.put(service(name=f"web-{number}"))
    blue.terminate()
    lines = shown(blue)["k8s_cr"]["left-in-cloud"]
    assert len(lines) == 100 and lines[-1] == "and 53 more"


def test_with_the_flag_it_is_deleted_before_the_cluster(
    cluster: FakeApi, workload: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    there: list[list[str]] = []

    def going(live: Object) -> None:
        if is_going(live):
            there.append(workload.names("Service") + workload.names("PersistentVolume"))
            let_go(cluster, live)

    cluster.edit("Cluster", "default", "blue", lambda live: live["metadata"].update(finalizers=["example.com/machines"]))
    cluster.react("Cluster", going)
    blue.terminate(**DELETE)
    assert there and there[0] == ["inner"]
    assert workload.names("PersistentVolumeClaim") == [] and warnings(caplog) == [] and is_terminated(cluster)


def test_what_does_not_go_is_awaited_for_a_part_of_the_time_and_named(
    cluster: FakeApi, workload: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    workload.edit("Service", "shop", "web", lambda live: live["metadata"].update(finalizers=["example.com/lb"]))
    began = time.monotonic()
    blue.terminate(**DELETE, **{"wait-timeout": 8})
    assert time.monotonic() - began < 6
    [line] = warnings(caplog)
    assert "in default/blue Service shop/web; they were not gone in time" in line and is_terminated(cluster)


def test_a_service_that_was_made_again_is_not_deleted_a_second_time(workload: FakeApi, blue: Instance) -> None:
    def again(live: Object) -> None:
        if is_going(live):
            let_go(workload, live)
            workload.put(service())

    workload.edit("Service", "shop", "web", lambda live: live["metadata"].update(finalizers=["example.com/lb"]))
    workload.react("Service", again)
    blue.terminate(**DELETE, **{"wait-timeout": 8})
    assert len(workload.requests.select("DELETE", "/api/v1/namespaces/shop/services/web")) == 1


@pytest.mark.parametrize("params", [{}, DELETE])
@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_cluster_that_does_not_open_ends_no_terminate(
    cluster: FakeApi, blue: Instance, params: dict[str, Any], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fail(faults.status(status, "Failed"), method="GET", path=SECRET, times=99)
    blue.terminate(**params)
    assert is_terminated(cluster) and len(cluster.requests.select("GET", SECRET)) <= 2
    assert len(warnings(caplog)) == bool(params) and "default/blue: the kubeconfig in" in caplog.text


@pytest.mark.parametrize("status", [401, 403, 500])
def test_what_the_workload_cluster_says_is_not_repeated(
    cluster: FakeApi, workload: FakeApi, blue: Instance, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    workload.fail(faults.status(status, "Failed", "words-of-the-server"), path="services", times=99)
    blue.terminate(**DELETE)
    assert is_terminated(cluster) and "words-of-the-server" not in caplog.text


def test_a_silent_cluster_holds_a_terminate_for_seconds(
    cluster: FakeApi, workload: FakeApi, blue: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("k8s_cr_driver.vnf.cloud_resources.OPEN_WITHIN", 0.5)
    workload.fail(faults.hang(), path="services", times=99)
    began = time.monotonic()
    blue.terminate(**DELETE)
    assert time.monotonic() - began < 8 and is_terminated(cluster)


def test_the_kubeconfig_leads_only_where_the_conductor_may_connect(
    cluster: FakeApi, workload: FakeApi, blue: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    put_kubeconfig(cluster, cluster.get("Cluster", "default", "blue"), workload.url.replace("127.0.0.1", "127.0.0.2"))
    blue.terminate(**DELETE)
    assert is_terminated(cluster) and len(workload.requests) == 0
    assert "127.0.0.2" in "".join(warnings(caplog))


def test_a_cluster_that_cannot_be_reached_is_not_tried(cluster: FakeApi, blue: Instance) -> None:
    cluster.edit("Cluster", "default", "blue", lambda live: live["metadata"].update(annotations={UNREACHABLE: "true"}))
    blue.terminate(**DELETE)
    assert len(cluster.requests.select("GET", SECRET)) == 0


def test_an_instance_without_a_cluster_costs_no_request(cluster: FakeApi, tmp_path: Path) -> None:
    numbers = []
    for number, params in enumerate(({}, DELETE)):
        one = Instance(cluster, tmp_path / str(number), [deployment(1), config_map("a")])
        one.instantiate()
        cluster.requests.clear()
        one.terminate(**params)
        others = [one for one in cluster.requests if "/configmaps/k8s-cr-driver-" not in one.path]  # a slow run reads it again
        numbers.append({(one.method, one.path) for one in others})
    assert numbers[0] == numbers[1] and not [path for _, path in numbers[0] if "secrets" in path]


@pytest.mark.parametrize(
    ("live", "is_found"),
    [
        (volume(), True),
        (volume(policy="Retain"), False),
        (volume(hostPath={"path": "/data"}), False),
        (volume(csi={"driver": "a"}, claimRef={"name": "data", "uid": "1"}), False),
        (volume(csi={"driver": "a"}, claimRef={"namespace": "shop", "name": "a/b", "uid": "1"}), False),
        ({"metadata": None, "spec": []}, False),
    ],
)
def test_a_volume_that_goes_with_its_claim(live: Object, is_found: bool) -> None:
    assert bool(of_volume(live)) is is_found


@pytest.mark.parametrize("live", [{}, {"spec": {"type": "LoadBalancer"}}, {"spec": {"type": "LoadBalancer"}, "metadata": []}])
def test_a_service_without_a_name_is_none(live: Object) -> None:
    assert of_service(live) is None


def test_a_volume_whose_driver_has_become_a_csi_driver() -> None:
    live = volume(cinder={"volumeID": "1"})
    assert of_volume(live) is None
    live["metadata"]["annotations"] = {"pv.kubernetes.io/migrated-to": "cinder.csi.openstack.org"}
    assert of_volume(live) is not None
