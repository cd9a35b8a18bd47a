# SPDX-License-Identifier: Apache-2.0
"""Refusals of an API server that may have just restarted: it responds before it has read its RBAC."""

from __future__ import annotations

import math
import time

from k8s_cr_driver.errors import ApiError, DriverError, JustRestarted, Said
from k8s_cr_driver.kube import timing

_SIGNS = (502, 503, 504)


class Restarts:
    """When the API server of a cluster may have restarted. For many threads, and all connections of an operation to it."""

    def __init__(self) -> None:
        self._last_sign = -math.inf
        self._forbidden: dict[str, float] = {}
        """Since when each request is forbidden, by method and path."""

    def sign(self) -> None:
        """A request got no response, or a watch has ended."""
        self._last_sign = time.monotonic()

    def allowed(self, attempt: str) -> None:
        """The server has accepted the request."""
        self._forbidden.pop(attempt, None)

    def judged(self, attempt: str, refused: ApiError) -> DriverError:
        """JustRestarted if a request is refused that may be allowed soon, else `refused`; `attempt`: its method and path.

        For no longer than the grace from the first refusal, also if signs recur.
        """
        is_denied = Said.DENIED in refused.said  # by a webhook, which may say any code
        if refused.status in _SIGNS and not is_denied:
            self.sign()
        elif refused.status == 403 and Said.UNAUTHORIZED in refused.said and not is_denied:
            now = time.monotonic()
            since = self._forbidden.setdefault(attempt, now)
            if max(now - self._last_sign, now - since) < timing.TIMING.forbidden:
                return JustRestarted(f"{refused} (the API server may have just restarted, and not have read its RBAC yet)")
        elif refused.status != 429:  # flow control comes before the authorizer, all others after it
            self.allowed(attempt)
        return refused
