# SPDX-License-Identifier: Apache-2.0
"""How long the driver waits for what, in one value that is read where a wait begins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """In seconds, but for the share."""

    first_backoff: float = 0.1
    """After the first failure of a request; twice as long after each further one."""
    trusted: float = 1.0
    """For which a confirmed token of the fence is trusted before it is read again."""
    travel: float = 1.0
    """For the way of a write that no webhook holds, and for etcd."""
    in_flight: float = 14.0
    """After the token was trusted for a write until which that may take effect: its timeouts, see `connection`, and the way."""
    forbidden: float = 120.0
    """For which a server that was away may forbid what it allows, as it has not read its RBAC yet: one with many role bindings
    reads them for minutes (kubernetes/kubernetes issue 121635)."""
    guests_fail: float = 15.0
    """For which a list of what is in a Namespace, or of a CRD, fails at least until it counts as one that cannot be listed."""
    failure_grace: float = 30.0
    """For which an object must stay failed before the run gives up: many failures are transient."""
    silence: float = 30.0
    """Without an event, after which a status older than our change counts, for kinds without observedGeneration."""
    warned: float = 300.0
    """Without a repetition, at least, after which a Warning event no longer says that a controller fails."""
    hold: float = 30.0
    """For which an error that may pass is no response to go by, because a refusal may follow."""
    count_every: float = 1.0
    """Between two counts of what controllers create again."""
    count_share: float = 0.1
    """Of a long wait for that, up to `backoff.LAST`."""


TIMING = Timing()
