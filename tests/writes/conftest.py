# SPDX-License-Identifier: Apache-2.0
"""What tests of owners have in common."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fake_api import FakeApi


@pytest.fixture
def collect(api: FakeApi) -> Callable[[], None]:
    """The garbage collector, which begins its work when this is called."""
    works: list[Callable[[], None]] = []
    api.cluster.later = works.append

    def begin() -> None:
        while works:
            works.pop(0)()

    return begin
