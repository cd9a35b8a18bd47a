# SPDX-License-Identifier: Apache-2.0
"""A 404 that is not of the object itself, as of a load balancer without an API server, does not count as its deletion."""

from __future__ import annotations

import pytest

from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, state
from tests.ownership.test_unlabeled import replaced

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
