# SPDX-License-Identifier: Apache-2.0
"""Phases of a plan: what is done on servers, one after the other, and what of each at the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from k8s_cr_driver.node_clusters import work

Step = TypeVar("Step")


@dataclass(frozen=True)
class Phase(Generic[Step]):
    """Steps that do not depend on each other; `in_turn` those that must not run at the same time all the same."""

    name: str
    steps: tuple[Step, ...]
    in_turn: bool = False

    def run(self, act: Callable[[Step], None], progress: Callable[[str], None]) -> int:
        """Acts on each step; how many there were. Raises what `act` raises."""
        progress(f"{self.name}: {len(self.steps)} {'step' if len(self.steps) == 1 else 'steps'}")
        if self.in_turn:
            for step in self.steps:
                act(step)
        else:
            work.on_all(self.steps, act)
        return len(self.steps)
