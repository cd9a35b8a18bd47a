# SPDX-License-Identifier: Apache-2.0
"""What a heal deletes of Cluster API's machines, what it refuses to, and how many VNFCs it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from k8s_cr_driver.capi import KubeadmControlPlane, MachineDeployment
from k8s_cr_driver.capi.contract import CONTROL_PLANE_GROUP, GROUP
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf.heal import Healing
from tests.fake_api import FakeApi, controllers
from tests.instance import BLUE, crontab, crontab_crd, obj, scalable
from tests.lcm.web import RUNNING

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeUnhealthy"}]}
FAILED = {"phase": "Failed", "failureReason": "CreateError"}


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    for group, kind in ((GROUP, "Machine"), (GROUP, "MachineSet"), (GROUP, "MachineDeployment"),
                        (CONTROL_PLANE_GROUP, "KubeadmControlPlane")):  # fmt: skip
        crd = crontab_crd()
        crd["metadata"]["name"] = f"{kind.lower()}s.{group}"
        crd["spec"]["group"] = group
        crd["spec"]["names"] = {"plural": f"{kind.lower()}s", "singular": kind.lower(), "kind": kind}
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
        api.put(crd)
    return api


def put(api: FakeApi, group: str, kind: str, name: str, replicas: int) -> Object:
    manifest = obj(f"{group}/v1", kind, name, "default", spec={"replicas": replicas})
    manifest["metadata"]["labels"] = {INSTANCE_LABEL: BLUE}
    return api.put(manifest)


def machine(api: FakeApi, owner: Object, name: str, labels: Object, status: Object = READY) -> None:
    api.put(controllers.owned(owner, f"{GROUP}/v1", "Machine", name, labels=labels, status=status))


def control_plane(api: FakeApi, count: int, **statuses: Object) -> CustomResource:
    """Of `count` Machines, named blue_0, blue_1, ... in `statuses`, which says what is not ready of them."""
    live = put(api, CONTROL_PLANE_GROUP, "KubeadmControlPlane", "blue", count)
    for number in range(count):
        labels = {"cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/control-plane-name": "blue"}
        machine(api, live, f"blue-{number}", labels, statuses.get(f"blue_{number}", READY))
    return KubeadmControlPlane(live)


@contextmanager
def healing(api: FakeApi, **touched: CustomResource) -> Iterator[Healing]:
    with Connection(Endpoint(api.url)) as connection:
        yield Healing(Client(connection, discover(connection)), BLUE, touched, lambda _: True)


def names(lives: list[Object]) -> list[str]:
    return [live["metadata"]["name"] for live in lives]


def test_the_machines_of_a_deployment_are_those_of_its_sets(api: FakeApi) -> None:
    workers, others = (put(api, GROUP, "MachineDeployment", name, 1) for name in ("workers", "others"))
    labels = {"cluster.x-k8s.io/deployment-name": "workers"}
    for deployment in (workers, others):
        name = deployment["metadata"]["name"]
        machines = api.put(controllers.owned(deployment, f"{GROUP}/v1", "MachineSet", name, labels=labels))
        machine(api, machines, f"{name}-1", labels)
    with healing(api, Workers=MachineDeployment(workers)) as heal:
        chosen = {"Workers": {"workers-1", "others-1"}}
        [(selector, to_delete)] = heal.replacement(chosen, everything=False, recreate=False).to_delete
    assert (selector, names(list(to_delete))) == ("cluster.x-k8s.io/deployment-name=workers", ["workers-1"])


def test_of_a_control_plane_a_minority_can_be_replaced(api: FakeApi) -> None:
    with healing(api, ControlPlane=control_plane(api, 3)) as heal:
        replacement = heal.replacement({"ControlPlane": {"blue-1"}}, everything=False, recreate=False)
        assert [names(list(to_delete)) for _, to_delete in replacement.to_delete] == [["blue-1"]]
        [unfinished] = replacement.unfinished()
        assert unfinished.message == "VDU ControlPlane has 2 of 3 VNFCs"


def test_of_a_control_plane_no_majority_can_be_chosen(api: FakeApi) -> None:
    chosen = {"ControlPlane": {"blue-0", "blue-1"}}
    with (
        healing(api, ControlPlane=control_plane(api, 3)) as heal,
        pytest.raises(InvalidRequest, match=r"at most 1 may .* as etcd needs a majority of them\. 2 are chosen; choose f"),
    ):
        heal.replacement(chosen, everything=False, recreate=False)


def test_a_heal_of_everything_leaves_a_control_plane_as_it_is(api: FakeApi) -> None:
    with healing(api, ControlPlane=control_plane(api, 1)) as heal:
        replacement = heal.replacement({"ControlPlane": {"blue-0"}}, everything=True, recreate=False)
        assert (list(replacement.to_delete), replacement.unfinished()) == ([], [])


def test_an_unready_machine_of_a_control_plane_uses_up_what_may_be_unavailable(api: FakeApi) -> None:
    """With one of three etcd members lost, a heal of a healthy one would end the quorum."""
    with (
        healing(api, ControlPlane=control_plane(api, 3, blue_2=UNREADY)) as heal,
        pytest.raises(InvalidRequest, match="1 are chosen, and these are not ready: blue-2; choose fewer"),
    ):
        heal.replacement({"ControlPlane": {"blue-1"}}, everything=False, recreate=False)


@pytest.mark.parametrize("condition", ["NodeHealthy", "EtcdMemberHealthy"])
@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_machine_whose_node_or_member_of_etcd_is_not_healthy_is_lost(api: FakeApi, condition: str, status: str) -> None:
    """As in v1beta1, where such a Machine is Ready."""
    sick = {"conditions": [*READY["conditions"], {"type": condition, "status": status, "reason": "Sick"}]}
    plane = control_plane(api, 3, blue_2=sick)
    with healing(api, ControlPlane=plane) as heal, pytest.raises(InvalidRequest, match=r"these are not ready: blue-2"):
        heal.replacement({"ControlPlane": {"blue-1"}}, everything=False, recreate=False)


def test_a_worker_whose_node_is_under_pressure_holds_up_no_heal_of_another_one() -> None:
    pressed = {"conditions": [*READY["conditions"], {"type": "NodeHealthy", "status": "False", "reason": "DiskPressure"}]}
    live = obj("cluster.x-k8s.io/v1beta1", "Machine", "blue-2", "default", spec={}, status=pressed)
    assert resource_for(live).health(live).settled


@pytest.mark.parametrize("chosen", ["blue-0", "blue-1"])
def test_no_choice_helps_a_control_plane_that_has_lost_its_majority(api: FakeApi, chosen: str) -> None:
    with (
        healing(api, ControlPlane=control_plane(api, 3, blue_1=UNREADY, blue_2=UNREADY)) as heal,
        pytest.raises(InvalidRequest, match="these are not ready: blue-1, blue-2; more of them must be ready before any is"),
    ):
        heal.replacement({"ControlPlane": {chosen}}, everything=False, recreate=False)


@pytest.mark.parametrize("status", [UNREADY, FAILED])
def test_the_unready_machine_of_a_control_plane_is_replaced(api: FakeApi, status: Object) -> None:
    with healing(api, ControlPlane=control_plane(api, 3, blue_2=status)) as heal:
        replacement = heal.replacement({"ControlPlane": {"blue-2"}}, everything=False, recreate=False)
        assert [names(list(to_delete)) for _, to_delete in replacement.to_delete] == [["blue-2"]]


@pytest.mark.parametrize(("machines", "going"), [(5, 2), (7, 3)])
def test_machines_that_are_being_deleted_are_lost_to_etcd_too(api: FakeApi, machines: int, going: int) -> None:
    plane = control_plane(api, machines)
    for number in range(going):
        name = f"blue-{machines - 1 - number}"
        api.edit("Machine", "default", name, lambda live: live["metadata"].update(finalizers=["machine.cluster.x-k8s.io"]))
        api.delete("Machine", "default", name)
    with healing(api, ControlPlane=plane) as heal, pytest.raises(InvalidRequest, match=f"{going} are missing or being deleted"):
        heal.replacement({"ControlPlane": {"blue-0"}}, everything=False, recreate=False)


SELECTING = scalable(labelSelectorPath=".status.selector")


def put_tab(api: FakeApi, size: int, pods: int) -> None:
    """A CronTab of so many replicas, whose status selects so many ready Pods; what was there of it is deleted."""
    for name in api.names("Pod", "default"):
        api.delete("Pod", "default", name)
    if api.find("CronTab", "default", "tab"):
        api.delete("CronTab", "default", "tab")
    manifest = crontab("tab")
    manifest["metadata"]["labels"], manifest["spec"]["size"] = {INSTANCE_LABEL: BLUE}, size
    owner = api.put(manifest)
    api.set_status("CronTab", "default", "tab", {"selector": "app=tab"})
    for number in range(pods):
        put_pod(api, owner, f"tab-{number}")


def put_pod(api: FakeApi, owner: Object, name: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    api.put(controllers.owned(owner, "v1", "Pod", name, spec=spec, labels={"app": "tab"}, status=RUNNING))


def resize(api: FakeApi, size: int, pods: int) -> None:
    """Another count of the CronTab, and of its Pods."""
    api.edit("CronTab", "default", "tab", lambda live: live["spec"].update(size=size))
    owner = api.get("CronTab", "default", "tab")
    names = api.names("Pod", "default")
    for name in names[pods:]:
        api.delete("Pod", "default", name)
    for number in range(len(names), pods):
        put_pod(api, owner, f"tab-{number}")


@pytest.fixture
def tab(api: FakeApi) -> CustomResource:
    """A kind with two Pods for each replica."""
    api.put(SELECTING)
    put_tab(api, size=2, pods=4)
    return CustomResource(api.get("CronTab", "default", "tab"), SELECTING)


def resized(size: int, pods: int) -> Callable[[FakeApi], None]:
    return lambda api: resize(api, size, pods)


def without(api: FakeApi) -> None:
    api.delete("CronTab", "default", "tab")


def lost(api: FakeApi) -> None:
    api.delete("Pod", "default", "tab-3")


def healed_and_lost(api: FakeApi) -> None:
    """The manifest, applied again, undoes what others have changed."""
    api.edit("CronTab", "default", "tab", lambda live: live["spec"].update(schedule="1 * * * *"))
    lost(api)


def surge(api: FakeApi) -> None:
    put_pod(api, api.get("CronTab", "default", "tab"), "tab-4")
    api.set_status("Pod", "default", "tab-4", {"phase": "Pending"})


@pytest.mark.parametrize(
    ("before", "meanwhile", "awaited"),
    [
        pytest.param(without, lambda api: put_tab(api, size=2, pods=4), [], id="made again"),
        pytest.param(resized(1, 2), resized(2, 4), [], id="the count had drifted down"),
        pytest.param(resized(3, 6), resized(2, 4), [], id="the count had drifted up"),
        pytest.param(None, resized(1, 2), [], id="an autoscaler takes a replica"),
        pytest.param(None, resized(3, 6), [], id="an autoscaler adds a replica"),
        pytest.param(None, resized(3, 1), ["VDU Web has 1 of 4 VNFCs"], id="at least one for each replica"),
        pytest.param(None, lost, ["VDU Web has 3 of 4 VNFCs"], id="as many as before"),
        pytest.param(None, surge, ["VDU Web has 4 of 5 VNFCs"], id="each that is found"),
        pytest.param(None, healed_and_lost, ["VDU Web has 3 of 4 VNFCs"], id="the heal changed the owner"),
    ],
)
def test_which_selected_pods_a_heal_waits_for(
    api: FakeApi,
    tab: CustomResource,
    before: Callable[[FakeApi], None] | None,
    meanwhile: Callable[[FakeApi], None],
    awaited: list[str],
) -> None:
    """Of two replicas with two Pods each, of which the VNFC to be healed is no more."""
    if before:
        before(api)
    with healing(api, Web=tab) as heal:
        replacement = heal.replacement({"Web": {"none"}}, everything=False, recreate=False)
        meanwhile(api)
        assert [report.message for report in replacement.unfinished()] == awaited
