# SPDX-License-Identifier: Apache-2.0
"""What tests of owners have in common."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from k8s_cr_driver.engine import releases
from tests.fake_api import FakeApi


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays is released again at once, not after seconds."""
    monkeypatch.setattr(releases, "AGAIN", 0.1)


@pytest.fixture
def collect(api: FakeApi) -> Callable[[], None]:
    """The garbage collector, which begins its work when this is called."""
    works: list[Callable[[], None]] = []
    api.cluster.later = works.append

    def begin() -> None:
        while works:
            works.pop(0)()

    return begin
