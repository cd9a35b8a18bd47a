# SPDX-License-Identifier: Apache-2.0
"""VNFCs: the children of a VDU's object, or one for each replica."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import pytest

from k8s_cr_driver.errors import Refused
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import vnfcs
from k8s_cr_driver.vnf.vnfcs import Vnfc
from tests.fake_api import FakeApi, controllers, faults
from tests.instance import BLUE, crontab, crontab_crd, obj, scalable


def deployment(name: str, replicas: int, namespace: str = "default") -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return ours(obj("apps/v1", "Deployment", name, namespace, spec=spec))


def ours(manifest: Object) -> Object:
    manifest["metadata"]["labels"] = {**labels(manifest), INSTANCE_LABEL: BLUE}
    return manifest


def collect(api: FakeApi, vdus: Mapping[str, Object | CustomResource]) -> list[Vnfc]:
    objects = {vdu: one if isinstance(one, CustomResource) else resource_for(one) for vdu, one in vdus.items()}
    with Connection(Endpoint(api.url)) as connection:
        client = Client(connection, discover(connection))
        api.requests.clear()
        return vnfcs.listed(objects, vnfcs.members(client, BLUE, objects), 100)


def test_the_pods_of_several_vdus_in_one_list_a_kind(api: FakeApi) -> None:
    controllers.run_workloads(api)
    vdus = {"VDU1": deployment("web", 2), "VDU2": deployment("db", 1)}
    for manifest in vdus.values():
        api.put(manifest)
    api.put(deployment("stranger", 1))
    found = collect(api, vdus)
    assert sorted(one.vdu for one in found) == ["VDU1", "VDU1", "VDU2"]
    assert {one.id for one in found} == {name for name in api.names("Pod") if not name.startswith("stranger")}
    assert {one.kind for one in found} == {"Deployment"}
    assert len(api.requests) == 3


def test_pods_of_another_controller_with_the_labels_of_a_vdu_are_no_vnfcs(api: FakeApi) -> None:
    controllers.run_workloads(api)
    web, twin = deployment("web", 1), deployment("twin", 2)
    twin["metadata"]["labels"] = {}
    for part in ("selector", "template"):
        twin["spec"][part] = copy.deepcopy(web["spec"][part])
    stray = obj("v1", "Pod", "stray", "default", spec={"containers": [{"name": "c", "image": "i"}]})
    stray["metadata"]["labels"] = {"app": "web"}
    for manifest in (web, twin, stray):
        api.put(manifest)
    assert len(api.names("Pod")) == 4
    [one] = collect(api, {"VDU1": web})
    assert one.id.startswith("web-")


def test_pods_are_found_by_match_expressions(api: FakeApi) -> None:
    controllers.run_workloads(api)
    web = deployment("web", 1)
    web["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "site"]}]}
    api.put(web)
    assert len(collect(api, {"VDU1": web})) == 1
    assert api.requests.select("GET", "pods")[0].query["labelSelector"] == "app in (web,site)"


def test_a_bare_pod_is_its_own_vnfc(api: FakeApi) -> None:
    controllers.run_workloads(api)
    pod = ours(obj("v1", "Pod", "alone", "default", spec={"containers": [{"name": "c", "image": "i"}]}))
    api.put(pod)
    assert [one.id for one in collect(api, {"VDU1": pod})] == ["alone"]


def test_a_deleted_object_has_no_vnfcs(api: FakeApi) -> None:
    controllers.run_workloads(api)
    api.put(crontab_crd())
    assert collect(api, {"VDU1": deployment("web", 2), "VDU2": crontab("tab")}) == []


def test_each_namespace_is_listed_separately(api: FakeApi) -> None:
    controllers.run_workloads(api)
    api.put(obj("v1", "Namespace", "blue"))
    vdus = {"VDU1": deployment("web", 1), "VDU2": deployment("web", 1, "blue")}
    for manifest in vdus.values():
        api.put(manifest)
    assert sorted(one.vdu for one in collect(api, vdus)) == ["VDU1", "VDU2"]
    assert len(api.requests) == 6


def test_ended_and_deleted_pods_are_no_vnfcs(api: FakeApi) -> None:
    controllers.run_workloads(api)
    api.put(deployment("web", 3))
    ended, leaving, stays = sorted(api.names("Pod"))
    api.set_status("Pod", "default", ended, {"phase": "Failed"})
    api.edit("Pod", "default", leaving, lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    api.delete("Pod", "default", leaving)
    assert [one.id for one in collect(api, {"VDU1": deployment("web", 3)})] == [stays]


def test_the_newest_comes_first(api: FakeApi) -> None:
    replica_set = {**deployment("web", 3), "kind": "ReplicaSet"}
    owner = api.put(replica_set)
    for number, second in ((1, "05"), (2, "09"), (3, "01")):
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": f"n{number}"}
        api.put(controllers.owned(owner, "v1", "Pod", f"pod-{number}", spec=spec, labels={"app": "web"}))
        stored = api.get("Pod", "default", f"pod-{number}")
        stored["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{second}Z"
        with api.cluster.writing():
            api.cluster.store.put(("", "pods"), stored)
    found = collect(api, {"VDU1": replica_set})
    assert [(one.id, one.metadata["node"]) for one in found] == [("pod-2", "n2"), ("pod-1", "n1"), ("pod-3", "n3")]


def test_what_the_cluster_says_of_a_vnfc_is_recorded_within_limits(api: FakeApi) -> None:
    replica_set = {**deployment("web", 1), "kind": "ReplicaSet"}
    owner = api.put(replica_set)
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n" * 1_000_000}
    api.put(controllers.owned(owner, "v1", "Pod", "pod", spec=spec, labels={"app": "web"}))
    [found] = collect(api, {"VDU1": replica_set})
    assert found.metadata == {"node": "n" * vnfcs.LONGEST}


def test_the_pods_that_the_status_of_a_custom_resource_selects_are_its_vnfcs(api: FakeApi) -> None:
    controllers.run_workloads(api)
    crd, tab, new = scalable(labelSelectorPath=".status.selector"), ours(crontab("tab")), ours(crontab("new"))
    for manifest in (crd, tab, new, deployment("web", 2), deployment("db", 1)):
        api.put(manifest)
    api.set_status("CronTab", "default", "tab", {"selector": "app in (web),!retired"})
    vdus = {"VDU1": CustomResource(tab, crd), "VDU2": CustomResource(new, crd)}
    found = collect(api, vdus)
    assert {one.vdu for one in found} == {"VDU1"}
    assert {one.id for one in found} == {name for name in api.names("Pod") if name.startswith("web")}


def test_selected_pods_of_a_deleted_controller_are_no_vnfcs(api: FakeApi) -> None:
    """Pods of a shard that is scaled in stay a while after the operator has deleted what controls them."""
    for manifest in (crd := scalable(labelSelectorPath=".status.selector"), tab := ours(crontab("tab"))):
        api.put(manifest)
    api.set_status("CronTab", "default", "tab", {"selector": "app=web"})
    for name in ("stays", "going", "gone"):
        owner = api.put({**deployment(name, 0), "kind": "ReplicaSet"})
        if name == "going":
            api.edit("ReplicaSet", "default", name, lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
        if name == "gone":
            owner["metadata"]["uid"] = "an earlier one"
        spec = {"containers": [{"name": "c", "image": "i"}]}
        api.put(controllers.owned(owner, "v1", "Pod", f"{name}-0", spec=spec, labels={"app": "web"}))
    api.delete("ReplicaSet", "default", "going")
    found = collect(api, {"VDU1": CustomResource(tab, crd)})
    assert [one.id for one in found] == ["stays-0"]
    assert len(api.names("Pod")) == 3


def test_an_object_without_children_has_one_stable_vnfc_for_each_replica(api: FakeApi) -> None:
    crd = scalable()
    sized, one = ours(crontab("tab")), ours(crontab("one"))
    sized["spec"]["size"] = 2
    for manifest in (crd, sized, one):
        api.put(manifest)
    vdus = {"VDU1": CustomResource(sized, crd), "VDU2": CustomResource(one)}
    found = collect(api, vdus)
    assert [(one.id, one.vdu) for one in found] == [("tab-1", "VDU1"), ("tab-0", "VDU1"), ("one-0", "VDU2")]
    assert len(api.requests) == 1


def test_vnfcs_are_sorted_by_the_numbers_in_their_names(api: FakeApi) -> None:
    crd, tab = scalable(), ours(crontab("tab"))
    tab["spec"]["size"] = 12
    for manifest in (crd, tab):
        api.put(manifest)
    found = collect(api, {"VDU1": CustomResource(tab, crd)})
    assert [one.id for one in found] == [f"tab-{index}" for index in range(11, -1, -1)]


def test_vnfcs_of_objects_with_one_name_have_ids_of_their_own(api: FakeApi) -> None:
    controllers.run_workloads(api)
    api.put(obj("v1", "Namespace", "blue"))
    objects = (deployment("web", 2), deployment("web", 1, "blue"))
    vdus = {f"VDU{number}": {**one, "kind": "StatefulSet"} for number, one in enumerate(objects, 1)}
    for manifest in vdus.values():
        api.put(manifest)
    found = collect(api, vdus)
    assert sorted(one.id for one in found) == ["VDU1.web-0", "VDU1.web-1", "VDU2.web-0"]
    assert sorted(one.name for one in found) == ["web-0", "web-0", "web-1"]


def test_a_kind_of_children_that_the_cluster_does_not_know_is_refused(api: FakeApi) -> None:
    cluster = obj("cluster.x-k8s.io/v1beta2", "MachineDeployment", "workers", "default", spec={"replicas": 1})
    with pytest.raises(Refused, match=r"does not know Machine.cluster.x-k8s.io, whose objects are the VNFCs"):
        collect(api, {"VDU1": cluster})


def test_a_forbidden_list_is_refused(api: FakeApi) -> None:
    api.fail(faults.status(403, "Forbidden", "no"), path="pods")
    with pytest.raises(Refused, match=r"The VNFCs cannot be listed: .*pods: 403 Forbidden: no"):
        collect(api, {"VDU1": deployment("web", 1)})


def test_a_count_is_read_from_the_live_object_if_there_is_one() -> None:
    web = resource_for(deployment("web", 2))
    assert (replicas.count(web), replicas.count(web, deployment("web", 7))) == (2, 7)
    assert replicas.count(resource_for(crontab("one"))) == 1


def test_bare_pods_with_the_same_labels_are_one_vnfc_each(api: FakeApi) -> None:
    pods = {name: obj("v1", "Pod", name, "default", spec={"containers": [{"name": "c", "image": "i"}]}) for name in "ab"}
    for pod in pods.values():
        pod["metadata"]["labels"] = {"app": "x", INSTANCE_LABEL: BLUE}
        api.put({**pod, "status": {"phase": "Running"}})
    found = collect(api, pods)
    assert sorted((one.vdu, one.id) for one in found) == [("a", "a"), ("b", "b")]


def cluster_api_kinds(api: FakeApi, *kinds: str) -> None:
    for kind in kinds:
        crd = crontab_crd()
        crd["metadata"]["name"] = f"{kind.lower()}s.cluster.x-k8s.io"
        names = {"plural": f"{kind.lower()}s", "singular": kind.lower(), "kind": kind}
        crd["spec"].update(group="cluster.x-k8s.io", names=names)
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = PRESERVING
        api.put(crd)


PRESERVING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_a_machine_that_has_failed_is_a_vnfc(api: FakeApi) -> None:
    """It is to be healed; a Pod that has failed is replaced by its controller, or has ended for good."""
    cluster_api_kinds(api, "MachineSet", "Machine")
    workers = api.put(ours(obj("cluster.x-k8s.io/v1", "MachineSet", "workers", "default", spec={"replicas": 1})))
    labels = {"cluster.x-k8s.io/set-name": "workers"}
    api.put(
        controllers.owned(workers, "cluster.x-k8s.io/v1", "Machine", "w-1", labels=labels, status={"phase": "Failed"})
    )
    assert [one.id for one in collect(api, {"Workers": workers})] == ["w-1"]


def test_each_replica_of_a_machine_pool_without_machines_is_a_vnfc(api: FakeApi) -> None:
    cluster_api_kinds(api, "MachinePool", "Machine")
    pool = api.put(ours(obj("cluster.x-k8s.io/v1", "MachinePool", "pool", "default", spec={"replicas": 2})))
    assert [one.id for one in collect(api, {"Workers": pool})] == ["pool-1", "pool-0"]
    labels = {"cluster.x-k8s.io/pool-name": "pool"}
    for name in ("vm-a", "vm-b"):
        api.put(controllers.owned(pool, "cluster.x-k8s.io/v1", "Machine", name, labels=labels))
    assert {one.id for one in collect(api, {"Workers": pool})} == {"vm-a", "vm-b"}


def test_children_of_one_second_are_sorted_by_the_numbers_in_their_names() -> None:
    born = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    pods = [obj("v1", "Pod", f"web-{number}", "default") for number in (9, 11, 2)]
    children = [{**pod, "metadata": {**pod["metadata"], **born}} for pod in pods]
    vdus = {"VDU1": resource_for(deployment("web", 3))}
    found = vnfcs.listed(vdus, vnfcs.Members({}, {"VDU1": children}), 100)
    assert [one.name for one in found] == ["web-11", "web-9", "web-2"]


@pytest.mark.parametrize("members", ["replicas", "children"])
def test_what_others_write_to_the_cluster_is_no_vnfc_without_end(members: str) -> None:
    """A count of 2,000,000,000 takes no memory there, but would here."""
    web = {**crontab("web"), "spec": {"size": 2_000_000_000}}
    vdu = CustomResource(web, scalable())
    pods = [obj("v1", "Pod", f"web-{number}", "default") for number in range(101)]
    there = vnfcs.Members({vdu.key: web}, {"Web": pods} if members == "children" else {})
    with pytest.raises(Refused, match=r"VNFCs of this instance, which may have 100; .*\[k8s_cr\] max_vnfcs"):
        vnfcs.listed({"Web": vdu}, there, 100)
