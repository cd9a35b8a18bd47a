# SPDX-License-Identifier: Apache-2.0
"""Webhooks of a package that do not respond: a rollback gets rid of them, and errors name them."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.dependencies import DEPENDS_ON, graph
from k8s_cr_driver.objects.keys import Object, key_of
from k8s_cr_driver.objects.marks import KEEP
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, config_map, crontab, crontab_crd, obj
from tests.lcm.instance import Instance, instantiated
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
    return instantiated(cluster, tmp_path / "old", [deployment(1), config_map("a", x="1")])


@pytest.mark.parametrize("stopped", ["a", f"k8s-cr-driver-{BLUE}"], ids=["an object", "the inventory"])
def test_a_rollback_deletes_the_webhook_that_the_failed_change_has_brought_first(
    cluster: FakeApi, blue: Instance, stopped: str
) -> None:
    never = [guard("configmaps", failurePolicy="Fail"), config_map("a", x="2")]
    answers_nothing(cluster, "b")
    with pytest.raises(sol_ex.SolException):
        blue.change(blue.package([deployment(1), *never, stopped_object()]), **{"wait-timeout": 5})
    assert cluster.find(*GUARD) is not None
    answers_nothing(cluster, stopped)
    blue.roll_back_change()
    assert cluster.find(*GUARD) is None
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"x": "1"}
    assert cluster.find("ConfigMap", "default", "b") is None


def test_the_failure_of_a_webhook_that_does_not_respond_names_its_configuration_and_the_remedy(
    cluster: FakeApi, blue: Instance
) -> None:
    answers_nothing(cluster, "b")
    new = [deployment(1), guard("configmaps"), config_map("a", x="guard"), stopped_object()]
    with pytest.raises(sol_ex.SolException) as raised:
        blue.change(blue.package(new), **{"wait-timeout": 5})
    error = str(raised.value.detail)
    assert f'failed calling webhook "{NAME}"' in error
    assert "ValidatingWebhookConfiguration.admissionregistration.k8s.io guard has this webhook" in error
    assert "see that Pods of Service default/guard are ready, or delete that configuration" in error


INVENTORY = f"k8s-cr-driver-{BLUE}"
POLICY = obj("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "rule", spec={"validations": []})
DENIED = [faults.denied("no"), faults.status(422, "Invalid", "ValidatingAdmissionPolicy 'rule' denied request: no")]
SECOND = 1.0


def stops_the_inventory(cluster: FakeApi, kind: str, name: str, answer: faults.Answer, *, lag: float = 0.0) -> None:
    """Writes of it get this answer as long as the object is there, and a while longer, as API servers notice it late."""
    gone = [0.0]

    def is_stopped(request: Request) -> bool:
        if request.method != "PATCH" or request.path.rpartition("/")[2] != INVENTORY:
            return False
        if cluster.find(kind, None, name) is None:
            gone[0] = gone[0] or time.monotonic()
        return not gone[0] or time.monotonic() < gone[0] + lag

    cluster.fail(answer, when=is_stopped, times=10_000)


@pytest.mark.parametrize("lag", [0.0, SECOND])
@pytest.mark.parametrize(
    ("brought", "answer"),
    [(guard("*"), faults.webhook_down(NAME)), (guard("*"), DENIED[0]), (POLICY, DENIED[1])],
    ids=["down", "webhook", "policy"],
)
def test_a_terminate_deletes_what_of_the_instance_stops_even_the_inventory(
    cluster: FakeApi, tmp_path: Path, brought: Object, answer: faults.Answer, lag: float
) -> None:
    one = instantiated(cluster, tmp_path, [deployment(1), config_map("a"), brought])
    stops_the_inventory(cluster, brought["kind"], brought["metadata"]["name"], answer, lag=lag)
    one.terminate(**{"wait-timeout": 10})
    assert cluster.names("Deployment") == cluster.names("ConfigMap") == cluster.names(brought["kind"]) == []


def test_the_rollback_of_an_instantiate_deletes_it_too(cluster: FakeApi, tmp_path: Path) -> None:
    one = Instance(cluster, tmp_path, [deployment(1), config_map("a"), guard("*"), stopped_object()])
    answers_nothing(cluster, "b")
    with pytest.raises(sol_ex.SolException):
        one.instantiate(**{"wait-timeout": 2})
    assert cluster.find(*GUARD) is not None
    stops_the_inventory(cluster, *GUARD[::2], faults.webhook_down(NAME))
    one.roll_back_instantiate()
    assert cluster.names("Deployment") == cluster.names("ConfigMap") == cluster.names(GUARD[0]) == []


def test_the_rollback_of_a_change_deletes_a_policy_that_denies_the_inventory(cluster: FakeApi, blue: Instance) -> None:
    answers_nothing(cluster, "b")
    with pytest.raises(sol_ex.SolException):
        blue.change(blue.package([deployment(1), guard("*"), POLICY, stopped_object()]), **{"wait-timeout": 2})
    stops_the_inventory(cluster, "ValidatingAdmissionPolicy", "rule", DENIED[1], lag=SECOND)
    blue.roll_back_change()
    assert cluster.find(*GUARD) is None and cluster.names("ValidatingAdmissionPolicy") == []
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"x": "1"}


@pytest.mark.parametrize("mark", [KEEP, ""])
def test_what_stays_or_is_of_others_is_not_deleted_for_it(cluster: FakeApi, tmp_path: Path, mark: str) -> None:
    theirs = guard("*")
    theirs["metadata"]["annotations"] = {KEEP: "true"} if mark else {}
    one = instantiated(cluster, tmp_path, [deployment(1), *([theirs] if mark else [])])
    if not mark:
        cluster.put(theirs)
    stops_the_inventory(cluster, *GUARD[::2], faults.denied("no", name=NAME))
    with pytest.raises(sol_ex.SolException) as raised:
        one.terminate(**{"wait-timeout": 3})
    assert cluster.find(*GUARD) is not None and cluster.names("Deployment") == ["web"]
    assert "exempt it from the webhook or policy" in str(raised.value.detail)


def protected_package(**metadata: Any) -> list[Object]:
    """A custom resource, and a webhook that is asked when it is deleted."""
    configuration = guard()
    rule = {"apiGroups": ["stable.example.com"], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["crontabs"]}
    configuration["webhooks"][0]["rules"] = [rule]
    configuration["metadata"].update(metadata)
    service = obj("v1", "Service", "guard", "default", spec={"selector": {"app": "web"}, "ports": [{"port": 443}]})
    protected = crontab("one")
    protected["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    return [deployment(1), crontab_crd(), protected, service, configuration]


def is_deletion(request: Request) -> bool:
    return request.method == "DELETE" and request.path.endswith("crontabs/one")


def test_a_terminate_deletes_a_webhook_of_its_own_that_never_responds(
    cluster: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = instantiated(cluster, tmp_path, protected_package())

    def is_stopped(request: Request) -> bool:
        return is_deletion(request) and cluster.find(*GUARD) is not None

    cluster.fail(faults.webhook_down(NAME), when=is_stopped, times=10_000)
    one.terminate(**{"wait-timeout": 10})
    assert cluster.names("CustomResourceDefinition") == cluster.names(GUARD[0]) == cluster.names("Deployment") == []
    assert any("guard is deleted before CronTab" in record.getMessage() for record in caplog.records)


def test_one_that_responds_again_goes_after_what_it_protects(cluster: FakeApi, tmp_path: Path) -> None:
    one = instantiated(cluster, tmp_path, protected_package())
    cluster.fail(faults.webhook_down(NAME), when=is_deletion, times=2)
    cluster.requests.clear()
    one.terminate(**{"wait-timeout": 40})
    deleted = [request.path.rpartition("/")[2] for request in cluster.requests.select("DELETE")]
    assert deleted.index("one") < deleted.index("guard")


def test_one_that_is_kept_is_not_deleted_for_it(cluster: FakeApi, tmp_path: Path) -> None:
    one = instantiated(cluster, tmp_path, protected_package(annotations={KEEP: "true"}))
    cluster.fail(faults.webhook_down(NAME), when=is_deletion, times=10_000)
    with pytest.raises(sol_ex.SolException, match="guard has this webhook"):
        one.terminate(**{"wait-timeout": 4})
    assert cluster.find(*GUARD) is not None


def test_a_heal_deletes_no_webhook(cluster: FakeApi, tmp_path: Path) -> None:
    one = instantiated(cluster, tmp_path, [deployment(1), guard("*")])
    stops_the_inventory(cluster, *GUARD[::2], faults.denied("no", name=NAME))
    with pytest.raises(sol_ex.SolException):
        one.heal(**{"wait-timeout": 3})
    assert cluster.find(*GUARD) is not None


def test_a_terminate_that_nothing_stops_lists_no_webhooks_before_its_claim(cluster: FakeApi, tmp_path: Path) -> None:
    one = instantiated(cluster, tmp_path, [deployment(1), guard("pods")])
    cluster.requests.clear()
    one.terminate()
    before = list(itertools.takewhile(lambda request: request.method != "PATCH", cluster.requests))
    assert not [request.path for request in before if "webhookconfigurations" in request.path]


def test_a_rollback_without_webhooks_costs_no_list_of_them(cluster: FakeApi, blue: Instance) -> None:
    stored = blue.inst.obj_clone()
    blue.change(blue.package([deployment(1), config_map("a", x="2")]))
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
