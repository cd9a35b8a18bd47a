# SPDX-License-Identifier: Apache-2.0
"""Exponential backoff: the time between two tries of a request, and between two openings of a watch."""

from __future__ import annotations

from k8s_cr_driver.kube import timing

LAST = 5.0


def delay(failures: int, error: BaseException | None = None, last: float = LAST) -> float:
    """Seconds, at most `last`, until the next try after so many failures in a row. The Retry-After of `error`, if any, wins."""
    retry_after = getattr(error, "retry_after", None)
    return float(retry_after) if retry_after else min(timing.TIMING.first_backoff * 2.0 ** min(failures - 1, 10), last)
