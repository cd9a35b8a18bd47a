# SPDX-License-Identifier: Apache-2.0
"""Annotations that prefer VNFCs in a scale in: written only where they matter, and gone however the scale in ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import Conflict, Forbidden, Superseded
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import scale_in
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.scale_in import Choice
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import FakeApi, controllers, faults
from tests.fake_api.faults import Answer
from tests.fake_api.recording import Request
from tests.instance import BLUE, GREEN, Instance, crontab, deployment, scalable, stateful_set, status
from tests.times import change_times


def web(count: int, kind: str = "Deployment") -> Object:
    if kind == "StatefulSet":
        return stateful_set("web", replicas=count, volumeClaimTemplates=[])
    made = deployment()
    made["metadata"]["namespace"] = "default"
    return {**made, "spec": {**made["spec"], "replicas": count}}


@pytest.fixture(params=["Deployment"])
def session(api: FakeApi, request: pytest.FixtureRequest) -> Iterator[Session]:
    """Of an instance with a VDU `Web` of four Pods."""
    controllers.run_workloads(api)
    Instance(api.url).reconcile([web(4, request.param)])
    with opened(api, BLUE) as made:
        api.requests.clear()
        yield made


def vdu(count: int, kind: str = "Deployment") -> dict[str, CustomResource]:
    return {"Web": resource_for(web(count, kind))}


def pods(api: FakeApi) -> list[str]:
    return api.names("Pod", "default")


def annotated(api: FakeApi) -> list[str]:
    return [one["metadata"]["name"] for one in api.objects("Pod") if "pod-deletion-cost" in str(one["metadata"])]


def is_real(request: Request) -> bool:
    return "dryRun" not in request.query


@pytest.mark.parametrize("by_nfvo", [True, False])
def test_a_scale_in_that_fails_leaves_no_annotations(api: FakeApi, session: Session, by_nfvo: bool) -> None:
    api.fail(faults.field_conflict(), method="PATCH", path="deployments/web", when=is_real)
    with pytest.raises(Conflict):
        session.scale(vdu(2), Choice({"Web": pods(api)[:2]}, by_nfvo=by_nfvo))
    assert api.requests.select("PATCH", "/pods/")
    assert annotated(api) == []


def test_a_scale_in_that_may_annotate_only_one_of_two_leaves_none_annotated(api: FakeApi, session: Session) -> None:
    api.fail(faults.status(403, "Forbidden"), method="PATCH", path=f"/pods/{pods(api)[1]}$")
    with pytest.raises(Forbidden, match="cannot be annotated"):
        session.scale(vdu(2), Choice({"Web": pods(api)[:2]}, by_nfvo=True))
    assert annotated(api) == []


def test_a_scale_in_that_has_lost_the_instance_writes_nothing_more(
    api: FakeApi, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_times(monkeypatch, trusted=-1)  # a token that is trusted is not asked for

    def lose(request: Request) -> bool:
        """Not before the Pods are annotated."""
        if not is_real(request):
            return False
        live = api.get("ConfigMap", "default", f"k8s-cr-driver-{BLUE}")
        live["metadata"]["annotations"]["k8s-cr-driver/token"] = "another"
        api.put(live)
        return True

    api.fail(faults.unavailable(), method="PATCH", path="deployments/web", when=lose)
    with pytest.raises(Superseded):
        session.scale(vdu(2), Choice({"Web": pods(api)[:2]}))
    assert annotated(api) == pods(api)[:2]
    assert api.get("Deployment", "default", "web")["spec"]["replicas"] == 4


def test_a_scale_in_that_was_retried_elsewhere_annotates_nothing(
    api: FakeApi, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session._operation, "is_current", lambda: False)
    with pytest.raises(Superseded):
        session.scale(vdu(2), Choice({"Web": pods(api)[:2]}))
    assert not [one for one in api.requests.writes if is_real(one)]


@pytest.mark.parametrize("fault", [None, faults.status(422, "Invalid"), faults.unavailable()])
def test_annotations_of_a_scale_in_that_was_killed_are_removed_when_the_vnfcs_are_read_next(
    api: FakeApi, session: Session, caplog: pytest.LogCaptureFixture, fault: Answer | None
) -> None:
    session._choose(vdu(2), vdu(2), Choice({"Web": pods(api)[:2]}))
    assert annotated(api) == pods(api)[:2]
    if fault:
        api.fail(fault, method="PATCH", path="/pods/", times=2)
        assert len(session.vnfcs(vdu(4))) == 4
        assert "is still annotated for removal by a scale in" in caplog.text
    session.vnfcs(vdu(4))
    assert annotated(api) == []


@pytest.mark.parametrize(
    ("session", "kind", "count", "choice"),
    [
        ("Deployment", "Deployment", 2, Choice({})),
        ("Deployment", "Deployment", 2, Choice({"Web": []}, by_nfvo=True)),
        ("Deployment", "Deployment", 0, Choice({"Web": ["web-a"]}, by_nfvo=True)),
        ("StatefulSet", "StatefulSet", 2, Choice({"Web": ["web-0"]})),
    ],
    indirect=["session"],
)
def test_a_scale_in_asks_nothing_and_tries_nothing_where_nobody_is_to_be_preferred(
    api: FakeApi, session: Session, kind: str, count: int, choice: Choice
) -> None:
    session.scale(vdu(count, kind), choice)
    assert len(pods(api)) == count
    assert not [one for one in api.requests if not is_real(one) or "/pods" in one.path]
    assert not api.requests.select("GET", "/(deployments|statefulsets|replicasets)$", watch=False)


def test_who_reads_the_vnfcs_of_a_selector_withdraws_no_choice_of_another_instance(api: FakeApi) -> None:
    """The selector in the status of a custom resource finds the Pods of an instance that is about to scale in."""
    controllers.run_workloads(api)
    Instance(api.url, GREEN).reconcile([web(4)])
    definition = scalable(labelSelectorPath=".status.selector")
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    api.put(definition)
    finds_all = {**status(), "selector": "app=web", "size": 1}
    api.react("CronTab", lambda live: live.get("status") or api.set_status("CronTab", "default", "c", finds_all))
    resource = {**crontab("c"), "spec": {"size": 1}}
    Instance(api.url).reconcile([resource])
    chosen = pods(api)[0]
    with opened(api, GREEN) as green:
        scale_in.request(green._client, GREEN, vdu(3), Choice({"Web": {chosen}}), lambda _: True)
    with opened(api, BLUE) as blue:
        assert blue.vnfcs(blue.stored_vdus({"Cron": resource_for(resource, definition)}))
    assert annotated(api) == [chosen]


def opened(api: FakeApi, instance: str) -> Session:
    operation = Operation("test", instance, 60)
    return Session(Endpoint(api.url), Options(), operation, inventory_namespace="default")
