# SPDX-License-Identifier: Apache-2.0
"""A 404 that is not of the object itself, as of a load balancer without an API server, does not count as its deletion."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.engine.run.takeover import InTreeDriver, take_over
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP, is_managed
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from k8s_cr_driver.writes.context import WriteContext
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, obj, replaced, state

INVENTORY = f"configmaps/k8s-cr-driver-{BLUE}$"
FAULTS = pytest.mark.parametrize("fault", [faults.not_found(), faults.page_not_found()], ids=["status", "text"])


@FAULTS
@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "configmaps/a$"), ("DELETE", "crontabs/one$"), ("GET", INVENTORY), ("DELETE", INVENTORY)]
)
def test_terminate_repeats_a_request_of_an_object_after_a_404_of_the_path(
    api: FakeApi, method: str, path: str, fault: faults.Answer
) -> None:
    blue = Instance(api.url)
    blue.reconcile([crontab_crd(), crontab("one"), config_map("a")])
    api.fail(fault, method=method, path=path)
    blue.terminate()
    assert api.faults_pending == 0
    assert state(api) == {}


@FAULTS
@pytest.mark.parametrize("how", ["kept", "adopted", "unlabeled"])
def test_terminate_repeats_a_write_to_an_object_after_a_404_of_the_path(api: FakeApi, how: str, fault: faults.Answer) -> None:
    blue, one = Instance(api.url, adopt=True), config_map("a")
    if how == "adopted":
        api.put(one)
    one["metadata"]["annotations"] = {KEEP: "true"} if how == "kept" else {}
    blue.reconcile([one])
    if how == "unlabeled":
        replaced(api, "ConfigMap", "default", "a")
    api.fail(fault, method="PATCH", path="configmaps/a$")
    blue.terminate()
    assert api.faults_pending == 0
    assert INSTANCE_LABEL not in str(api.objects("ConfigMap"))


@FAULTS
@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize("manifest", [config_map("a"), obj("v1", "Namespace", "a")], ids=lambda one: one["kind"])
def test_a_takeover_skips_no_object_because_of_a_404_of_the_path(
    api: FakeApi, manifest: Object, method: str, fault: faults.Answer
) -> None:
    manifest["metadata"]["labels"] = {INSTANCE_LABEL: BLUE}
    api.put(manifest, manager="OpenAPI-Generator")
    api.fail(fault, method=method, path="(configmaps|namespaces)/a$")
    with Connection(Endpoint(api.url)) as connection:
        context = WriteContext(Client(connection, discover(connection)), Inventory(connection, "default", BLUE))
        kinds = [GroupKind("", "ConfigMap"), NAMESPACE]
        operation = Operation("test", BLUE, 60)
        take_over(operation, context, InTreeDriver("another driver", "OpenAPI-Generator", kinds, "default"))
    assert api.faults_pending == 0
    assert is_managed(api.get(manifest["kind"], manifest["metadata"].get("namespace"), "a"), BLUE)


def test_a_kind_of_a_lost_inventory_is_not_forgotten_because_of_a_404_of_the_path(api: FakeApi) -> None:
    Instance(api.url).reconcile([config_map("a")])
    api.delete("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
    operation = Operation("test", BLUE, 60)
    with Session(Endpoint(api.url), Options(), operation, inventory_namespace="default") as session:
        api.fail(faults.page_not_found(), method="GET", path="configmaps$", when=lambda request: not request.watch)
        session.recover_inventory([config_map("a")])
        session.reconcile([], prune=Prune())
    assert state(api) == {}


@FAULTS
@pytest.mark.parametrize("begin", ["DELETE", "PATCH"])
def test_terminate_outlasts_a_load_balancer_that_responds_404_to_everything(
    api: FakeApi, begin: str, fault: faults.Answer
) -> None:
    blue = Instance(api.url, seconds=20)
    blue.reconcile([config_map("a"), config_map("b")])
    replaced(api, "ConfigMap", "default", "b")
    begun: list[Request] = []

    def is_down(request: Request) -> bool:
        if request.method == begin and "/configmaps/" in request.path and INVENTORY[:-1] not in request.path:
            begun.append(request)
        return bool(begun)

    api.fail(fault, when=is_down, times=8)
    blue.terminate()
    assert api.faults_pending == 0
    assert state(api) == {}
