# SPDX-License-Identifier: Apache-2.0
"""How long a run waits for what: one value, which its operation carries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """All in seconds, but for the share."""

    failure_grace: float = 30.0
    """For which an object must stay failed before the run gives up: many failures are transient."""
    silence: float = 30.0
    """Without an event, after which a status older than our change counts, for kinds without observedGeneration."""
    hold: float = 30.0
    """For which an error that may pass is no response to go by, because a refusal may follow."""
    count_every: float = 1.0
    """Between two counts of what controllers create again."""
    count_share: float = 0.1
    """Of a long wait for that, up to `backoff.LAST`."""


TIMING = Timing()
