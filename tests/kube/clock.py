# SPDX-License-Identifier: Apache-2.0
"""Time by a hand, in place of the module `time`."""

from __future__ import annotations


class Clock:
    """`now` is moved by a test."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now
