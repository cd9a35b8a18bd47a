# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all unit tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import times
from tests.fake_api import FakeApi

# A busy machine takes longer over an example than hypothesis allows. "quick" takes the same examples at each run: what
# fails is a fault of the change. `--hypothesis-profile=thorough` looks for new ones; each that it finds becomes a test.
settings.register_profile("quick", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2500)
settings.load_profile("quick")


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A fresh fake API server over plain HTTP; a fault inside of it fails the test."""
    with FakeApi() as server:
        yield server
        assert not server.crashes, "\n".join(server.crashes)


@pytest.fixture
def tls_api() -> Iterator[FakeApi]:
    """The same over TLS, with a certificate authority of its own."""
    with FakeApi(tls=True) as server:
        yield server
        assert not server.crashes, "\n".join(server.crashes)


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    times.set_times(monkeypatch)


@pytest.fixture
def failed_soon(short_limits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that says that it has failed has little time to recover."""
    times.change_times(monkeypatch, failure_grace=0.2)
