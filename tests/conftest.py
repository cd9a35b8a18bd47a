"""Fixtures that all unit tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.fake_api import FakeApi

settings.register_profile("any machine", deadline=None)  # a busy one takes longer over an example than hypothesis allows
settings.load_profile("any machine")


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
