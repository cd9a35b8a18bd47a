# SPDX-License-Identifier: Apache-2.0
"""Pages of lists take their memory before they are decoded, from what their operation and their process have."""

from __future__ import annotations

import time

import pytest

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube import lists
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.lists import pages
from k8s_cr_driver.kube.memory import Memory, NoMemory, cost
from tests.fake_api import FakeApi
from tests.instance import config_map

MAPS = "/api/v1/namespaces/default/configmaps"


def test_many_small_values_cost_more_than_their_bytes() -> None:
    assert cost(b"[" + b"1," * 1000 + b"1]") > 100_000
    assert cost(b'"' + b"x" * 1000 + b'"') < 1100


def test_a_page_has_its_memory_until_the_next_one_is_read(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE", 1)
    for name in ("a", "b"):
        api.put(config_map(name))
    with Connection(Endpoint(api.url)) as connection:
        whole = connection.memory.left
        left = [connection.memory.left for _ in pages(connection, MAPS)]
        assert len(left) == 2 and max(left) < whole and connection.memory.left == whole


def test_a_page_is_not_decoded_while_others_have_the_memory(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MEMORY_WITHIN", 0.0)
    monkeypatch.setattr("k8s_cr_driver.kube.connection.decoded", lambda _: pytest.fail("it is decoded"))
    process = Memory(1000)
    with Connection(Endpoint(api.url), memory=Memory(5000, process)) as connection, process.taken(900, 0.0):
        with pytest.raises(TransportError, match="other lists have the memory of this conductor"):
            next(pages(connection, MAPS))
        assert (connection.memory.left, process.left) == (5000, 100)


def test_more_than_there_is_takes_all() -> None:
    memory = Memory(10)
    with memory.taken(100, 0.0):
        assert memory.left == 0
        with pytest.raises(NoMemory), memory.taken(1, time.monotonic()):
            pass
    assert memory.left == 10
