"""The requests of a session itself, outside of the engine: discovery, and the CRDs of scalable kinds."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.errors import ApiError, ConnectionFailed
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import CRD
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import session as module
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import FakeApi, faults
from tests.fake_api.faults import Action
from tests.instance import BLUE, crontab, crontab_crd


def session(url: str) -> Session:
    operation = Operation.lasting(30, id="test", instance=BLUE)
    return Session(Endpoint(url), Options(), operation, inventory_namespace="default")


def test_reading_a_crd_is_repeated_while_the_server_is_busy(api: FakeApi) -> None:
    crd = crontab_crd(replicas={"type": "integer"})
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    crd["spec"]["versions"][0]["subresources"] = {"scale": paths}
    api.put(crd)
    api.fail(faults.unavailable(), path=f"/{CRD.group}/v1/customresourcedefinitions/")
    with session(api.url) as opened:
        vdus = opened.with_crds({"cron": resource_for(crontab("one"))})
    assert vdus["cron"].replicas() == ("spec", "replicas")


@pytest.mark.parametrize("fault", [faults.reset_before(), faults.truncated(), faults.unavailable(), faults.lie(b"[]")])
@pytest.mark.parametrize("path", ["^/api$", "^/apis$", "^/apis/apps/v1$"])
def test_discovery_is_repeated_like_every_other_request(api: FakeApi, fault: Action, path: str) -> None:
    api.knobs.aggregated_discovery = False
    api.fail(fault, path=path)
    with session(api.url):
        assert api.faults_pending == 0


def test_a_refused_connection_is_reported_at_once(api: FakeApi) -> None:
    api.close()
    with pytest.raises(ConnectionFailed, match=f"cannot connect to {api.url}"), session(api.url):
        pass


def test_discovery_that_keeps_failing_is_reported_before_the_deadline(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVERY_SECONDS", 0.2)
    api.fail(faults.unavailable(), path="^/api$", times=100)
    with pytest.raises(ApiError, match="GET /api: 503"), session(api.url):
        pass
    assert api.faults_pending
