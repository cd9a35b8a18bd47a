# SPDX-License-Identifier: Apache-2.0
"""The times of the driver as tests have them: what is right for a cluster is long for a test."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_cr_driver.kube import timing
from k8s_cr_driver.kube.timing import Timing

REAL = timing.TIMING
SHORT = Timing(
    first_backoff=0.01, trusted=0.3, travel=0.1, in_flight=0.3, guests_fail=0.2,
    forbidden=3.0, failure_grace=5.0, silence=0.2, hold=0.5, count_every=0.05,
)  # fmt: skip


def set_times(monkeypatch: pytest.MonkeyPatch, times: Timing = SHORT) -> None:
    """All of them."""
    monkeypatch.setattr(timing, "TIMING", times)


def change_times(monkeypatch: pytest.MonkeyPatch, **times: float) -> None:
    """Some of them."""
    set_times(monkeypatch, replace(timing.TIMING, **times))
