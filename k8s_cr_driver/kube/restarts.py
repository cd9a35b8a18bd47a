# SPDX-License-Identifier: Apache-2.0
"""Refusals of an API server that may have just restarted: it responds before it has read its RBAC."""

from __future__ import annotations

import math
import time

from k8s_cr_driver.errors import ApiError, DriverError, JustRestarted, Said

FORBIDDEN_GRACE = 120.0
"""Seconds after the last sign of a restart for which a 403 of the authorizer is no refusal: a server with many role bindings
reads them for minutes (kubernetes/kubernetes issue 121635)."""

_SIGNS = (502, 503, 504)
_AGGREGATED = b"service unavailable"
"""What the API server says for another one that is down, whose API it aggregates (kube-aggregator, handler_proxy.go)."""


class Restarts:
    """When the API server of a cluster may have restarted. For many threads, and all connections of an operation to it."""

    def __init__(self) -> None:
        self._last_sign = -math.inf

    def sign(self) -> None:
        """A request got no response, or a watch has broken."""
        self._last_sign = time.monotonic()

    def judged(self, refused: ApiError, body: bytes) -> DriverError:
        """JustRestarted if the refusal may pass for this reason, else `refused`. `body`: that of the response."""
        if Said.DENIED in refused.said:  # a webhook may say any code
            return refused
        if refused.status in _SIGNS and body.strip() != _AGGREGATED:
            self.sign()
        is_of_authorizer = refused.status == 403 and Said.UNAUTHORIZED in refused.said
        if is_of_authorizer and time.monotonic() - self._last_sign < FORBIDDEN_GRACE:
            return JustRestarted(f"{refused} (the API server may have just restarted, and not have read its RBAC yet)")
        return refused
