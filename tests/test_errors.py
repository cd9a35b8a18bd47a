# SPDX-License-Identifier: Apache-2.0
"""Which errors may pass, and how reports read."""

from __future__ import annotations

import pytest

from k8s_cr_driver.engine.report.not_ready import NotReady, Report
from k8s_cr_driver.errors import ApiError, TransportError, passes
from k8s_cr_driver.objects.keys import ObjectKey


@pytest.mark.parametrize("status, expected", [(429, True), (500, True), (503, True), (404, False), (409, False), (422, False)])
def test_which_errors_pass_by_themselves(status: int, expected: bool) -> None:
    assert passes(ApiError("GET /", status, "", "")) is expected


def test_no_answer_passes_and_a_bug_does_not() -> None:
    assert passes(TransportError("reset"))
    assert not passes(ValueError("bug"))


def test_a_report_reads_like_a_sentence() -> None:
    key = ObjectKey("apps", "Deployment", "blue", "web")
    report = Report(key, "Waiting", "ImagePullBackOff", "no such image", "2026-01-01T00:00:00Z", ("Failed: pull",))
    assert str(report) == (
        "Deployment.apps blue/web: Waiting (ImagePullBackOff): no such image [since 2026-01-01T00:00:00Z]; event: Failed: pull"
    )
    assert str(NotReady("1 of 1 objects late:", [report])).splitlines() == ["1 of 1 objects late:", str(report)]
