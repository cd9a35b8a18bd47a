# SPDX-License-Identifier: Apache-2.0
"""
What goes wrong, and how long things take: every chance of a life that is not somebody's will.

Rates are drawn once for each life, and many are zero, so that a life has a few kinds of trouble and not a little of all.
`calm` ends the faults of the network and the servers; then everything that was begun must come to a good end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fake_api import errors
from tests.simulation.admission import Admission
from tests.simulation.entries import Actor
from tests.simulation.scheduler import Process, Scheduler

if TYPE_CHECKING:
    from tests.simulation.servers import Sent

LONGEST_TRAVEL = 1.5
"""Seconds that a request or an answer may be under way."""
LATEST_CRASH = 80
"""Requests after which at the latest a life crashes that crashes once."""
LATEST_COLLECTION = 60.0
"""Seconds by which a controller that deletes objects may be late."""
LONGEST_LAG = 4.0
"""Seconds by which a watch may be late, but for one that has fallen silent."""


class Weather:
    """`features` name the kinds of trouble that this life may have."""

    def __init__(self, scheduler: Scheduler, features: frozenset[str], crashes_at: int | None = None) -> None:
        """`crashes_at`: the request of a worker, counted from 0, with which that crashes; drawn if there are crashes."""
        self._scheduler, self._random, self.features = scheduler, scheduler.random, features
        self._hidden_until = 0.0
        chance = self._random
        self._travel = chance.choice((0.001, 0.005, 0.03))
        self._lag = chance.choice((0.002, 0.05, 0.5))
        self._controller = chance.choice((0.01, 0.2, 2.0))
        self._collector = chance.choice((5.0, 30.0)) if "late collector" in features else self._controller
        self._slow = self._rate("latency", 0.02, 0.1)
        self._lost = self._rate("lost answers", 0.005, 0.03)
        self._error = self._rate("server errors", 0.01, 0.05)
        self._crash = self._rate("crashes", 0.005, 0.03)
        self._silence = self._rate("silent streams", 0.05, 0.3)
        self._not_found = self._rate("streams not found", 0.02, 0.2)
        crashes_once = "crashes" in features and chance.random() < 0.5
        self._crashes_at = crashes_at if crashes_at is not None else chance.randrange(LATEST_CRASH) if crashes_once else -1
        self.admission = Admission(chance, features)
        self.is_calm = False

    def _rate(self, feature: str, low: float, high: float) -> float:
        return self._random.choice((0.0, low, high)) if feature in self.features else 0.0

    def _happens(self, rate: float) -> bool:
        return bool(rate) and not self.is_calm and self._random.random() < rate

    def calm(self) -> None:
        self.is_calm = True
        self.admission.calm()

    def travel(self) -> float:
        """Seconds until a request, or its answer, is there."""
        if self._happens(self._slow):
            return self._random.uniform(0.05, LONGEST_TRAVEL)
        return self._random.expovariate(1 / self._travel)

    def slowness(self) -> float:
        """Of a server's watch cache of one resource: how many times later than others it is."""
        return self._random.choice((1.0, 1.0, 1.0, 20.0))

    def lag(self, slowness: float = 1.0) -> float:
        """Seconds until a server's watch cache has seen a change."""
        if self._happens(self._slow):
            return self._random.uniform(0.05, LONGEST_LAG)
        return min(slowness * self._random.expovariate(1 / self._lag), LONGEST_LAG)

    def controller(self) -> float:
        """Seconds until a controller does what there is to be done."""
        return self._random.expovariate(1 / self._controller)

    def collector(self) -> float:
        """Seconds until one of the controllers that delete objects does so: of garbage, of a Namespace, of a CRD."""
        return min(self._random.expovariate(1 / self._collector), LATEST_COLLECTION)

    def loses_answer(self) -> bool:
        return self._happens(self._lost)

    def crashes(self, process: Process) -> bool:
        """Whether the worker crashes with the request that it is about to send: any one, of those of all workers."""
        self._crashes_at -= 1
        is_that_one = self._crashes_at == -1 and not self.is_calm
        return process.is_alive and (is_that_one or self._happens(self._crash))

    def silence(self) -> float | None:
        """Seconds until a new watch falls silent; None: it does not."""
        return self._random.expovariate(1 / 2.0) if self._happens(self._silence) else None

    def refuse(self, sent: Sent, actor: Actor) -> None:
        """ApiError or PageNotFound in place of an answer; nothing is written."""
        if self._happens(self._error):
            raise self._random.choice(_ERRORS)()
        if "watch" in sent.query and "example.com" in sent.path and self._is_hidden():
            raise errors.PageNotFound

    def _is_hidden(self) -> bool:
        """Whether the resources of CRDs are not found just now, as by a server that has not seen these yet."""
        if self._happens(self._not_found):
            self._hidden_until = self._scheduler.now + self._random.expovariate(1 / 5.0)
        return self._scheduler.now < self._hidden_until


def _too_many() -> errors.ApiError:
    return errors.ApiError(429, "TooManyRequests", "the server has received too many requests", {}, {"Retry-After": "1"})


def _unavailable() -> errors.ApiError:
    return errors.ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request")


def _webhook_down() -> errors.ApiError:
    return errors.internal('failed calling webhook "check.sim.example.com": connection refused')


def _no_leader() -> errors.ApiError:
    return errors.internal("etcdserver: no leader")


_ERRORS = (_too_many, _unavailable, _webhook_down, _no_leader)
