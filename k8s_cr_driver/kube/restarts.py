# SPDX-License-Identifier: Apache-2.0
"""Refusals of an API server that may have just restarted: it responds before it has read its RBAC."""

from __future__ import annotations

import math
import time

from k8s_cr_driver.errors import ApiError, DriverError, JustRestarted, Said

FORBIDDEN_GRACE = 120.0
"""Seconds for which a server that was away may forbid what it allows: one with many role bindings reads them for minutes
(kubernetes/kubernetes issue 121635)."""

_SIGNS = (502, 503, 504)
_WRITES = ("PATCH", "DELETE")
"""A 403 to another method often is an answer by which the caller goes: what may not be listed is left out."""


class Restarts:
    """When the API server of a cluster may have restarted. For many threads, and all connections of an operation to it."""

    def __init__(self) -> None:
        self._last_sign = -math.inf
        self._forbidden: dict[str, float] = {}
        """Since when each write is forbidden, by method and path."""

    def sign(self) -> None:
        """A request got no response."""
        self._last_sign = time.monotonic()

    def allowed(self, attempt: str) -> None:
        """The server has accepted the request."""
        self._forbidden.pop(attempt, None)

    def judged(self, attempt: str, refused: ApiError) -> DriverError:
        """JustRestarted if a write is refused that may be allowed soon, else `refused`; `attempt`: its method and path.

        For no longer than the grace from the first refusal, also if signs recur.
        """
        if Said.DENIED in refused.said:  # a webhook may say any code
            return refused
        now = time.monotonic()
        if refused.status in _SIGNS:
            self._last_sign = now
        if refused.status != 403 or Said.UNAUTHORIZED not in refused.said or not attempt.startswith(_WRITES):
            return refused
        since = self._forbidden.setdefault(attempt, now)
        if max(now - self._last_sign, now - since) < FORBIDDEN_GRACE:
            return JustRestarted(f"{refused} (the API server may have just restarted, and not have read its RBAC yet)")
        return refused
