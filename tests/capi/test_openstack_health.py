# SPDX-License-Identifier: Apache-2.0
"""The health of the kinds of CAPO and of the OpenStack Resource Controller, from statuses as their controllers write them."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_cr_driver.objects.keys import Object, ObjectKey
from k8s_cr_driver.resources.health import State
from k8s_cr_driver.resources.registry import resource_for
from tests.capi.clusters import crd
from tests.capi.openstack import CAPO, capo, condition
from tests.instance import obj

SPEC = {"flavor": "m1.large", "image": {"imageRef": {"name": "ubuntu"}}}
DONE = {"imageID": "7", "flavorID": "8", "ports": [{}]}


def true(*types: str) -> list[Object]:
    return [{"type": name, "status": "True"} for name in types]


def false(reason: str, message: str = "", *types: str, severity: str = "Error") -> list[Object]:
    return [condition(name, reason, message, severity) for name in types or ("Ready", "InstanceReady")]


@pytest.mark.parametrize(
    ("kind", "status", "state", "reason"),
    [
        ("OpenStackCluster", {"ready": False}, State.WAITING, "NotReady"),
        (
            "OpenStackCluster",
            {"ready": False, "conditions": false("OpenStackError", "failed to reconcile network: Quota exceeded", "Ready")},
            State.WAITING, "OpenStackError",
        ),
        (
            "OpenStackCluster",
            {"ready": False, "conditions": true("NetworkReady") + false("APIEndpointConfigFailed", "no", "APIEndpointReady")},
            State.WAITING, "APIEndpointConfigFailed",
        ),
        (
            "OpenStackCluster",
            {"ready": True, "initialization": {"provisioned": True}, "failureDomains": {"nova": {"controlPlane": True}},
             "conditions": true("Ready", "NetworkReady", "RouterReady", "SecurityGroupsReady", "APIEndpointReady")},
            State.READY, "Ready",
        ),
        (
            "OpenStackMachine",
            {"ready": False, "conditions": false("WaitingForClusterInfrastructure", severity="Info")},
            State.WAITING, "WaitingForClusterInfrastructure",
        ),
        (
            "OpenStackMachine",
            {"ready": False, "conditions": false("InstanceNotReady", "Instance is building", "Ready", severity="Info")},
            State.WAITING, "InstanceNotReady",
        ),
        (
            "OpenStackMachine",
            {"ready": False, "conditions": true("InstanceReady")
             + false("FloatingIPError", "Quota exceeded", "Ready", "APIServerIngressReadyCondition")},
            State.WAITING, "FloatingIPError",
        ),
        (
            "OpenStackMachine",
            {"ready": True, "initialization": {"provisioned": True}, "instanceID": "42",
             "conditions": true("Ready", "InstanceReady", "APIServerIngressReadyCondition")},
            State.READY, "Ready",
        ),
        ("OpenStackServer", {"ready": False, "resolved": {"ports": [{}]}}, State.WAITING, "NotResolved"),
        ("OpenStackServer", {"ready": False, "resolved": DONE}, State.WAITING, "NotReady"),
        ("OpenStackServer", {"ready": False, "resolved": DONE, "instanceID": "42", "instanceState": "BUILD"},
         State.WAITING, "NotReady"),
        ("OpenStackServer", {"ready": False, "resolved": {}, "conditions": false("DependencyFailed", "Image default/u failed")},
         State.WAITING, "DependencyFailed"),
        ("OpenStackServer", {"ready": True, "instanceID": "42", "instanceState": "ACTIVE", "conditions": false(
            "InstanceNotFound", "The server was unexpectedly deleted")}, State.WAITING, "InstanceNotFound"),
        ("OpenStackServer", {"ready": True, "resolved": DONE, "instanceID": "42", "instanceState": "ACTIVE",
                             "conditions": true("Ready", "InstanceReady")}, State.READY, "Ready"),
        ("OpenStackFloatingIPPool", {"claimedIPs": [], "availableIPs": [],
                                     "conditions": true("OpenstackFloatingIPPoolReadyCondition")},
         State.READY, "OpenstackFloatingIPPoolReadyCondition"),
        ("OpenStackFloatingIPPool", {"claimedIPs": [], "availableIPs": [], "conditions": false(
            "OpenStackError", "Failed to create floating IP: Quota exceeded", "OpenstackFloatingIPPoolReadyCondition")},
         State.WAITING, "OpenStackError"),
    ],
)  # fmt: skip
def test_a_status_of_capo_is_judged_as_it_is_meant(kind: str, status: Any, state: State, reason: str) -> None:
    live = capo(kind, SPEC, status)
    health = resource_for(live).health(live)
    assert (health.state, health.reason) == (state, reason)
    assert health.trouble is any(one.get("severity") == "Error" for one in status.get("conditions", []))


@pytest.mark.parametrize("status", [None, {"capacity": {"cpu": "2"}, "nodeInfo": {"operatingSystem": "linux"}}])
def test_a_machine_template_is_ready_when_stored(status: Any) -> None:
    definition = crd(resource_for(capo("OpenStackMachineTemplate", {})).key.group_kind, status={})
    schema: Object = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"template": {"type": "object"}}},
        "status": {"type": "object", "properties": {name: {"type": "object"} for name in ("capacity", "nodeInfo")}},
    }}  # fmt: skip
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    live = capo("OpenStackMachineTemplate", {"template": {"spec": {"flavor": "m1.large"}}}, status)
    assert resource_for(live, definition).health(live).state is State.READY


def of_orc(available: tuple[str, str, str], progressing: tuple[str, str, str], generation: int = 2) -> Object:
    said = [dict(zip(("status", "reason", "message"), one, strict=True)) for one in (available, progressing)]
    types = ("Available", "Progressing")
    conditions = [{"type": name, "observedGeneration": 2, **one} for name, one in zip(types, said, strict=True)]
    made = obj("openstack.k-orc.cloud/v1alpha1", "Image", "ubuntu", "default", spec={}, status={"conditions": conditions})
    made["metadata"]["generation"] = generation
    return made


WORDS = "Waiting for OpenStack resource to be active"
AVAILABLE = ("True", "Success", "OpenStack resource is available")
DONE_BY_ORC = ("False", "Success", "OpenStack resource is up to date")


@pytest.mark.parametrize(
    ("live", "state", "reason", "trouble"),
    [
        (of_orc(("False", "Progressing", WORDS), ("True", "Progressing", WORDS)), State.WAITING, "Progressing", False),
        (of_orc(("False", "TransientError", "401"), ("True", "TransientError", "401")), State.WAITING, "TransientError", True),
        (of_orc(("Unknown", "TransientError", "x"), ("True", "TransientError", "x")), State.WAITING, "TransientError", True),
        (of_orc(("False", "InvalidConfiguration", "bad"), ("False", "InvalidConfiguration", "bad")),
         State.FAILED, "InvalidConfiguration", True),
        (of_orc(("False", "UnrecoverableError", "gone"), ("False", "UnrecoverableError", "gone")),
         State.FAILED, "UnrecoverableError", True),
        (of_orc(AVAILABLE, ("True", "TransientError", "503")), State.WAITING, "TransientError", True),
        (of_orc(AVAILABLE, DONE_BY_ORC), State.READY, "Success", False),
        (of_orc(AVAILABLE, DONE_BY_ORC, generation=3), State.WAITING, "SpecNotObserved", False),
    ],
)  # fmt: skip
def test_a_status_of_orc_is_judged_by_the_general_rules(live: Object, state: State, reason: str, trouble: bool) -> None:
    health = resource_for(live).health(live)
    assert (health.state, health.reason, health.trouble) == (state, reason, trouble)


def test_a_server_is_explained_by_the_image_that_it_refers_to_and_a_machine_by_its_server() -> None:
    server, machine = capo("OpenStackServer", SPEC), capo("OpenStackMachine", SPEC)
    image = ObjectKey("openstack.k-orc.cloud", "Image", "default", "ubuntu")
    assert list(resource_for(server).causes(server).objects) == [image]
    assert list(resource_for(machine).causes(machine).objects) == [ObjectKey(CAPO, "OpenStackServer", "default", "blue")]
