# SPDX-License-Identifier: Apache-2.0
"""The trial of a creation: what is the live object's does not count, whatever else refuses the creation does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from k8s_cr_driver.errors import DriverError, Refused
from k8s_cr_driver.objects.keys import Object
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.recording import Request
from tests.instance import Instance, config_map, crontab, crontab_crd, labelled, obj
from tests.writes.test_replacement import (
    CHANGED,
    CRONTAB,
    NEVER_CHANGES,
    PRIORITY,
    annotated,
    creation_of,
    forbidden,
    invalid,
    is_trial,
    refuse,
    uid_of,
    update_of,
)

OF_POD = ("FieldValueForbidden", "spec", "Forbidden: pod updates may not change fields other than `spec.tolerations`")
OF_ADDRESS = ("FieldValueInvalid", "spec.clusterIPs[0]", 'Invalid value: ["x"]: may not change once set')
USED = ("FieldValueInvalid", "spec.ports[0].nodePort", "Invalid value: 30001: provided port is already allocated")


def pod(cpu: str, image: str = "i", **spec: Any) -> Object:
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return obj("v1", "Pod", "one", "default", spec={"containers": [container], **spec})


def exceed(api: FakeApi, requested: str, used: str, limited: str, *, cpu: str) -> None:
    """What a quota says of a Pod that requests so much."""

    def requests(request: Request) -> bool:
        return is_trial(request) and request.body["spec"]["containers"][0]["resources"]["requests"]["cpu"] == cpu

    words = f"exceeded quota: q, requested: {requested}, used: {used}, limited: {limited}"
    api.fail(forbidden(f'pods "one" is forbidden: {words}'), when=requests, times=99)


def replaces(api: FakeApi, first: Object, newer: Object, refusal: tuple[str, str, str], *others: Object) -> bool:
    """Whether the object is replaced; an error leaves it as it is."""
    blue, before = Instance(api.url), uid_of(api, first)
    refuse(api, first, invalid(refusal))
    try:
        blue.reconcile([*others, newer])
    except DriverError:
        assert uid_of(api, first) == before
        return False
    return uid_of(api, first) != before


@pytest.mark.parametrize("cpu", ["500m", "2"])
def test_a_quota_that_is_used_up_prevents_no_replacement(api: FakeApi, cpu: str) -> None:
    """The deletion makes room."""
    controllers.run_workloads(api)
    Instance(api.url).reconcile([pod("1")])
    exceed(api, f"requests.cpu={cpu}", "requests.cpu=4", "requests.cpu=4", cpu=cpu)
    assert replaces(api, pod("1"), pod(cpu, "j"), OF_POD)


def service(port: int = 80, node_port: int = 30001, **spec: Any) -> Object:
    ports = [{"port": port, "nodePort": node_port}]
    return annotated(obj("v1", "Service", "one", "default", spec={"type": "NodePort", "ports": ports, **spec}))


def use_ports(api: FakeApi, *ports: int) -> None:
    """They are allocated before anything else is looked at."""

    def names_one(request: Request) -> bool:
        return is_trial(request) and any(one.get("nodePort") in ports for one in request.body["spec"]["ports"])

    api.fail(invalid(USED), when=names_one, times=99)


def test_a_service_keeps_its_port_and_gets_another_address(api: FakeApi) -> None:
    first = service(clusterIP="10.0.0.1")
    Instance(api.url).reconcile([first])
    use_ports(api, 30001)
    assert replaces(api, first, service(clusterIP="10.0.0.2"), OF_ADDRESS)


def test_a_service_is_not_replaced_for_a_port_that_another_has(api: FakeApi) -> None:
    first = service(clusterIP="10.0.0.1")
    Instance(api.url).reconcile([first])
    use_ports(api, 30001, 30002)
    assert not replaces(api, first, service(clusterIP="10.0.0.2", node_port=30002), OF_ADDRESS)


@pytest.mark.parametrize(
    "refusal",
    [
        forbidden('admission webhook "w" denied the request: class b is not for you'),
        invalid(("FieldValueInvalid", "spec.ports[0].port", "Invalid value: 70000: must be between 1 and 65535, inclusive")),
    ],
)
def test_what_is_looked_at_after_the_ports_counts_too(api: FakeApi, refusal: faults.Answer) -> None:
    first = service(clusterIP="10.0.0.1")
    Instance(api.url).reconcile([first])
    use_ports(api, 30001)
    api.fail(refusal, when=creation_of(api, first), times=99)
    assert not replaces(api, first, service(clusterIP="10.0.0.2"), OF_ADDRESS)


def test_a_class_that_becomes_the_default_beside_another_is_not_replaced(api: FakeApi) -> None:
    Instance(api.url).reconcile([PRIORITY])
    second = forbidden("PriorityClass usual is already marked as default. Only one default can exist")
    api.fail(second, when=lambda one: is_trial(one) and "globalDefault" in one.body, times=99)
    newer = annotated({**PRIORITY, "value": 20, "globalDefault": True})
    assert not replaces(api, PRIORITY, newer, ("FieldValueForbidden", "value", "Forbidden: may not be changed in an update."))


def test_a_trial_that_meets_a_conflict_is_repeated(api: FakeApi) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), CRONTAB])
    before = uid_of(api, CRONTAB)
    fault = ("FieldValueNotSupported", "spec.zone", 'Unsupported value: "x": supported values: "a"')
    refuse(api, CRONTAB, invalid(NEVER_CHANGES, fault))
    api.fail(faults.conflict("q", "resourcequotas"), when=is_trial)
    api.fail(invalid(fault), when=is_trial, times=99)
    with pytest.raises(Refused, match="Unsupported value"):
        blue.reconcile([crontab_crd(), CHANGED])
    assert uid_of(api, CRONTAB) == before


def test_a_policy_by_name_counts_for_that_name(api: FakeApi) -> None:
    """Of a singleton, or of addresses that a webhook knows by the name of who has them."""
    Instance(api.url).reconcile([crontab_crd(), CRONTAB])
    denied = forbidden('"x" is forbidden: ValidatingAdmissionPolicy denied request: no such name')
    api.fail(denied, when=lambda one: is_trial(one) and one.body["metadata"]["name"] != "one", times=99)
    assert replaces(api, CRONTAB, CHANGED, NEVER_CHANGES, crontab_crd())
    api.fail(denied, when=creation_of(api, CRONTAB), times=99)
    newer = annotated(crontab("one", schedule="2 * * * *"))
    assert not replaces(api, CRONTAB, newer, NEVER_CHANGES, crontab_crd())


def test_a_service_is_not_replaced_for_an_address_that_another_has(api: FakeApi) -> None:
    first = service(clusterIP="10.0.0.1", clusterIPs=["10.0.0.1", "fd00::1"])
    Instance(api.url).reconcile([first])
    fault = ("FieldValueForbidden", "spec.clusterIPs", "Forbidden: may not be used")
    api.fail(invalid(fault), when=lambda one: is_trial(one) and "clusterIPs" in one.body["spec"], times=99)
    assert not replaces(api, first, service(clusterIP="10.0.0.1", clusterIPs=["10.0.0.1", "fd00::99"]), OF_ADDRESS)


@pytest.mark.parametrize(
    ("newer", "forbidden_field"),
    [
        (service(type="ClusterIP", clusterIP="None"), "nodePort"),
        (service(type="NodePort", clusterIP="10.0.0.2", healthCheckNodePort=30009), "healthCheckNodePort"),
        (service(type="LoadBalancer", clusterIP="10.0.0.2", healthCheckNodePort=30009), "healthCheckNodePort"),
        (service(type="ExternalName", clusterIP="10.0.0.1"), "clusterIP"),
    ],
    ids=["node port", "health check port", "health check port of all nodes", "address"],
)
def test_what_the_new_type_of_a_service_forbids_is_tried(api: FakeApi, newer: Object, forbidden_field: str) -> None:
    """The API server drops it from an update, and says nothing of it there; a creation is refused."""
    first = service(clusterIP="10.0.0.1", healthCheckNodePort=30009)
    Instance(api.url).reconcile([first])
    fault = ("FieldValueForbidden", f"spec.{forbidden_field}", "Forbidden: may not be used with this type")
    names_it = lambda one: f'"{forbidden_field}"' in json.dumps(one.body["spec"])  # noqa: E731
    api.fail(invalid(fault), when=lambda one: is_trial(one) and names_it(one), times=99)
    assert not replaces(api, first, newer, OF_ADDRESS)


def test_another_fault_of_the_update_counts_for_what_the_trial_leaves_out(api: FakeApi) -> None:
    first = service(clusterIP="10.0.0.1")
    Instance(api.url).reconcile([first])
    newer = service(clusterIP="10.0.0.2")
    newer["spec"]["ports"].append({"name": "b", "port": 81, "nodePort": 30001})
    before = uid_of(api, first)
    refuse(api, first, invalid(OF_ADDRESS, ("FieldValueDuplicate", "spec.ports[1].nodePort", "Duplicate value: 30001")))
    with pytest.raises(Refused, match="Duplicate value"):
        Instance(api.url, seconds=5).reconcile([newer])
    assert uid_of(api, first) == before


def test_a_quota_that_counts_late_is_waited_for(api: FakeApi) -> None:
    """Its controller counts a deletion some time later."""
    Instance(api.url).reconcile([crontab_crd(), CRONTAB])
    words = "exceeded quota: q, requested: count/crontabs=1, used: count/crontabs=1, limited: count/crontabs=1"
    gone = lambda one: one.method == "PATCH" and api.find("CronTab", "default", "one") is None  # noqa: E731
    api.fail(forbidden(words), when=lambda one: one.path.endswith("/crontabs/one") and gone(one), times=2)
    assert replaces(api, CRONTAB, CHANGED, NEVER_CHANGES, crontab_crd())


@pytest.mark.parametrize("code", [403, 406, 422])
def test_a_freeze_of_all_changes_deletes_nothing(api: FakeApi, code: int) -> None:
    """A webhook that denies each update says nothing of a field, and a Pod is replaced without an annotation."""
    controllers.run_workloads(api)
    blue = Instance(api.url)
    blue.reconcile([pod("1")])
    before = uid_of(api, pod("1"))
    words = "updates to running Pods are forbidden, they are immutable"
    denied = forbidden(f'admission webhook "w" denied the request: {words}', code)
    api.fail(denied, method="PATCH", when=update_of(api, pod("1")), times=99)
    with pytest.raises(Refused) as refused:
        blue.reconcile([labelled(pod("1"), tier="web"), config_map("a")])
    assert "Annotate" not in str(refused.value)
    assert uid_of(api, pod("1")) == before


def test_an_error_of_a_trial_has_no_value_of_the_live_object(api: FakeApi) -> None:
    def secret(value: str) -> Object:
        return annotated(obj("v1", "Secret", "one", "default", immutable=True, stringData={"door": value}))

    blue = Instance(api.url)
    blue.reconcile([secret("canary-of-live")])
    denied = forbidden('admission webhook "w" denied the request: canary-of-live stays until Monday')
    api.fail(denied, when=is_trial, times=99)
    with pytest.raises(DriverError, match="stays until Monday") as refused:
        blue.reconcile([secret("new-one")])
    assert "canary" not in str(refused.value)
