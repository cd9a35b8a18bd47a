# SPDX-License-Identifier: Apache-2.0
"""Webhooks of a package that do not respond: a rollback gets rid of them, and errors name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.dependencies import DEPENDS_ON, graph
from k8s_cr_driver.objects.keys import Object, key_of
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, config_map, obj
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.web import deployment

NAME = "guard.example.org"
GUARD = ("ValidatingWebhookConfiguration", None, "guard")


def guard(*resources: str, **more: Any) -> Object:
    """A webhook for these resources of the core group."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": list(resources)}
    client = {"service": {"name": "guard", "namespace": "default"}}
    webhook = {"name": NAME, "clientConfig": client, "rules": [rule], "sideEffects": "None", **more}
    return obj("admissionregistration.k8s.io/v1", GUARD[0], "guard", webhooks=[webhook])


def stopped_object() -> Object:
    """A ConfigMap that is written once the webhook is there."""
    made = config_map("b")
    made["metadata"]["annotations"] = {DEPENDS_ON: "admissionregistration.k8s.io/ValidatingWebhookConfiguration/guard"}
    return made


def answers_nothing(cluster: FakeApi, *names: str) -> None:
    """The backend of the webhook never comes: writes of these ConfigMaps fail as long as there is the configuration."""

    def is_stopped(request: Request) -> bool:
        is_write = request.method in ("PATCH", "POST") and request.path.rpartition("/")[2] in names
        return is_write and cluster.find(*GUARD) is not None

    cluster.fail(faults.webhook_down(NAME), when=is_stopped, times=10_000)


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    blue = Instance(cluster, tmp_path / "old", [deployment(1), config_map("a", x="1")])
    blue.instantiate()
    return blue


@pytest.mark.parametrize("stopped", ["a", f"k8s-cr-driver-{BLUE}"], ids=["an object", "the inventory"])
def test_a_rollback_deletes_the_webhook_that_the_failed_change_has_brought_first(
    cluster: FakeApi, blue: Instance, tmp_path: Path, stopped: str
) -> None:
    never = [guard("configmaps", failurePolicy="Fail"), config_map("a", x="2")]
    answers_nothing(cluster, "b")
    with pytest.raises(sol_ex.SolException):
        blue.change(make_vnfd(tmp_path / "new", [deployment(1), *never, stopped_object()]), **{"wait-timeout": 2})
    assert cluster.find(*GUARD) is not None
    answers_nothing(cluster, stopped)
    blue.roll_back_change()
    assert cluster.find(*GUARD) is None
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"x": "1"}
    assert cluster.find("ConfigMap", "default", "b") is None


def test_the_failure_of_a_webhook_that_does_not_respond_names_its_configuration_and_the_remedy(
    cluster: FakeApi, blue: Instance, tmp_path: Path
) -> None:
    answers_nothing(cluster, "b")
    new = [deployment(1), guard("configmaps"), config_map("a", x="guard"), stopped_object()]
    with pytest.raises(sol_ex.SolException) as raised:
        blue.change(make_vnfd(tmp_path / "new", new), **{"wait-timeout": 2})
    error = str(raised.value.detail)
    assert f'failed calling webhook "{NAME}"' in error
    assert "ValidatingWebhookConfiguration.admissionregistration.k8s.io guard has this webhook" in error
    assert "see that Pods of Service default/guard are ready, or delete that configuration" in error


def test_a_rollback_without_webhooks_costs_no_list_of_them(cluster: FakeApi, blue: Instance, tmp_path: Path) -> None:
    stored = blue.inst.obj_clone()
    blue.change(make_vnfd(tmp_path / "new", [deployment(1), config_map("a", x="2")]))
    blue.inst = stored
    cluster.requests.clear()
    blue.roll_back_change()
    assert cluster.requests.select(path="admissionregistration.k8s.io/.+/.") == []


SERVER = {**deployment(1), "metadata": {"name": "server", "namespace": "default"}}
SERVICE = obj("v1", "Service", "guard", "default", spec={"selector": {"app": "web"}, "ports": [{"port": 443}]})


@pytest.mark.parametrize(
    ("webhook", "waits"),
    [
        (guard("*"), {"guard", "server"}),
        (guard("configmaps"), {"guard", "server"}),
        (guard("pods"), {"guard"}),
        (guard("*", failurePolicy="Ignore"), {"guard"}),
        (guard("*", objectSelector={"matchLabels": {"a": "b"}}), {"guard"}),
        (guard("*", namespaceSelector={"matchLabels": {"a": "b"}}), {"guard"}),
    ],
)
def test_a_webhook_that_stops_the_inventory_is_brought_after_its_backend_is_ready(webhook: Object, waits: set[str]) -> None:
    needs = graph([webhook, SERVER, SERVICE])
    assert {key.name for key in needs[key_of(webhook)]} == waits


@pytest.mark.parametrize(
    "text",
    [
        'failed calling webhook "validate.example.org": failed to call webhook',
        'admission webhook "validate.example.org" denied the request: no',
        "CronTab.validate.example.org default/one: spec.validate.rate is wrong",
    ],
)
def test_names_of_webhooks_kinds_and_fields_stay_readable(text: str) -> None:
    secret = obj("v1", "Secret", "s", "default", stringData={"a": "validate"})
    assert SentValues([secret]).removed_from(text) == text
    assert "validate" not in SentValues([secret]).removed_from("the password validate is wrong")
