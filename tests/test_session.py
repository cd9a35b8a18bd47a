"""A session's own requests: those that no engine repeats."""

from __future__ import annotations

from k8s_cr_driver.connection import Endpoint
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.keys import CRD
from k8s_cr_driver.options import Options
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.session import Session
from tests.engine.instance import BLUE, crontab, crontab_crd
from tests.fake_api import FakeApi, faults


def test_a_busy_server_is_asked_again_where_a_kind_has_its_count(api: FakeApi) -> None:
    crd = crontab_crd(replicas={"type": "integer"})
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    crd["spec"]["versions"][0]["subresources"] = {"scale": paths}
    api.put(crd)
    api.fail(faults.unavailable(), path=f"/{CRD.group}/v1/customresourcedefinitions/")
    operation = Operation.lasting(10, id="test", instance=BLUE)
    with Session(Endpoint(api.url), Options(), operation, inventory_namespace="default") as session:
        vdus = session.restored({"cron": resource_for(crontab("one"))})
    assert vdus["cron"].replicas() == ("spec", "replicas")
