# SPDX-License-Identifier: Apache-2.0
"""Objects whose health was judged by hand, from what their controllers write, before any rule had seen them.

`public_reports` are of the public reports of users whose tools were wrong; `judged_before` are of many API groups, and the
rules were not tuned on each of them: the bars are on all together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.resources.health import Health, State, assess
from tests.resources.health import figures
from tests.resources.health.objects import Json

DATA = Path(__file__).parent / "data"
REPORTS = [json.loads(line) for line in (DATA / "public_reports.jsonl").read_text().splitlines()]
NOT_READY = {(State.WAITING, False), (State.WAITING, True), (State.FAILED, True)}
FITS = {"ready": {(State.READY, False)}, "trouble": {(State.WAITING, True)}, "not-ready": NOT_READY}


@pytest.mark.parametrize("report", REPORTS, ids=lambda one: f"{one['case']}: {one['note']}")
def test_object_of_a_public_report(report: dict[str, Any]) -> None:
    health = assess(report["object"], figures.crd_of(report))
    assert (health.state, health.trouble) in FITS[report["expected"]]


def test_bars_on_objects_that_were_judged_before() -> None:
    cases = figures.cases(DATA / "judged_before.jsonl")
    found = figures.figures(cases)
    assert len(cases) == 137 and len({case.live["apiVersion"].partition("/")[0] for case in cases}) == 76
    assert found.agreement >= 0.92 and found.exact >= 0.73 and found.false_ready <= 0.045


def claim(status: Json) -> Health:
    spec = {"resources": {"requests": {"storage": "20Gi"}}, "volumeName": "v"}
    live = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    return assess({**live, "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}, **status}}, None)


def resizing(status: str) -> Json:
    return {"allocatedResourceStatuses": {"storage": status}}


@pytest.mark.parametrize(
    ("status", "state", "trouble"),
    [
        pytest.param({}, State.WAITING, False, id="not-begun"),
        pytest.param({"capacity": {"storage": "20480Mi"}}, State.READY, False, id="grown"),
        pytest.param({"capacity": {"storage": "1Ti"}}, State.READY, False, id="more-than-asked-for"),
        pytest.param({"capacity": {"storage": "many"}}, State.READY, False, id="no-amount"),
        pytest.param(resizing("ControllerResizeInProgress"), State.WAITING, False, id="volume-grows"),
        pytest.param(resizing("ControllerResizeInfeasible"), State.WAITING, True, id="volume-cannot-grow"),
        pytest.param(resizing("NodeResizePending"), State.READY, False, id="file-system-of-the-next-Pod"),
        pytest.param(resizing("NodeResizeInfeasible"), State.WAITING, True, id="file-system-cannot-grow"),
        pytest.param(
            {"conditions": [{"type": "FileSystemResizePending", "status": "True"}]}, State.READY, False, id="next-start"
        ),
        pytest.param({"conditions": [{"type": "NodeResizeError", "status": "True"}]}, State.WAITING, True, id="error"),
        pytest.param(
            {"capacity": {"storage": "20Gi"}, "modifyVolumeStatus": {"status": "Infeasible"}}, State.WAITING, True, id="class"
        ),
        pytest.param(
            {"capacity": {"storage": "20Gi"}, "modifyVolumeStatus": {"status": "InProgress"}},
            State.WAITING,
            False,
            id="to-class",
        ),
    ],
)
def test_bound_claim_is_ready_when_it_has_what_it_was_changed_to(status: Json, state: State, trouble: bool) -> None:
    health = claim(status)
    assert (health.state, health.trouble) == (state, trouble)
