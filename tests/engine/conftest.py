"""Time limits that are right for a cluster are long for a test: here they are short."""

import pytest

from k8s_cr_driver import login, watch
from k8s_cr_driver.engine import apply, nodes, renew


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(watch, "FIRST_BACKOFF", 0.01)
    monkeypatch.setattr(watch, "IDLE_LIMIT", 0.5)
    monkeypatch.setattr(login, "REFUSED_GRACE", 0.2)
    monkeypatch.setattr(apply, "FAILURE_GRACE", 0.2)
    monkeypatch.setattr(apply, "SILENCE", 0.2)
    monkeypatch.setattr(renew, "LOOK_EVERY", 0.05)
