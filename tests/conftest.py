# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all unit tests share."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import settings

from k8s_cr_driver.engine.run import operation
from k8s_cr_driver.engine.run.operation import Timing
from k8s_cr_driver.journal import fence
from k8s_cr_driver.kube import auth, backoff, discovery, watch
from k8s_cr_driver.writes import guests
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
def no_known_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of this test may have the port of one before it."""
    monkeypatch.setattr(discovery, "_KNOWN", discovery._Known())


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits that are right for a cluster are long for a test; no test waits for those of five seconds."""
    monkeypatch.setattr(backoff, "FIRST", 0.01)
    monkeypatch.setattr(watch, "IDLE_LIMIT", 5.0)
    monkeypatch.setattr(auth, "REFUSED_GRACE", 5.0)
    monkeypatch.setattr(operation, "TIMING", Timing(failure_grace=5.0, silence=0.2, hold=0.5, count_every=0.05))
    monkeypatch.setattr(fence, "WRITE_WITHIN", 0.3)
    monkeypatch.setattr(fence, "TRAVEL", 0.1)
    monkeypatch.setattr(fence, "IN_FLIGHT", 0.3)
    monkeypatch.setattr(guests, "PATIENCE", 0.2)


@pytest.fixture
def failed_soon(short_limits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that says that it has failed has little time to recover."""
    monkeypatch.setattr(operation, "TIMING", replace(operation.TIMING, failure_grace=0.2))
