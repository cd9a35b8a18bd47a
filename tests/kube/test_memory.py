# SPDX-License-Identifier: Apache-2.0
"""Pages of lists take their memory before they are decoded, from what their operation and their process have."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable

import pytest

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.kube import lists, memory
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.lists import pages
from k8s_cr_driver.kube.memory import Memory, NoMemory, cost
from k8s_cr_driver.kube.watch import Reflector, Relist
from tests.credentials.web import wait_until
from tests.fake_api import FakeApi
from tests.instance import config_map
from tests.kube.test_watch import CONFIG_MAPS

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


@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: connection.request("GET", f"{MAPS}/a"),
        lambda connection: connection.get_if_changed("/api", "application/json", ""),
    ],
    ids=["an object", "discovery"],
)
def test_no_other_response_is_decoded_either(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Connection], object]
) -> None:
    monkeypatch.setattr(memory, "WITHIN", 0.0)
    monkeypatch.setattr(memory, "SMALL", 10)
    api.put(config_map("a"))
    process = Memory(100_000)
    with Connection(Endpoint(api.url), memory=Memory(500_000, process)) as connection:
        assert ask(connection)
        assert process.left == 100_000, "it is given back"
        monkeypatch.setattr("k8s_cr_driver.kube.connection.decoded", lambda _: pytest.fail("it is decoded"))
        with process.taken(99_990, 0.0), pytest.raises(TransportError, match="other responses have the memory"):
            ask(connection)
        assert connection.memory.left == 500_000


def test_an_event_of_a_watch_waits_for_memory(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "WITHIN", 0.0)
    monkeypatch.setattr(memory, "SMALL", 10)
    seen: queue.SimpleQueue[object] = queue.SimpleQueue()
    api.put(config_map("a"))
    with Connection(Endpoint(api.url), memory=Memory(100_000)) as connection:
        with connection.memory.taken(99_990, 0.0):
            watch = Reflector(connection, CONFIG_MAPS, "", "", seen.put)
            watch.start(lambda: None)
            wait_until(lambda: "memory of this conductor" in str(watch.failure))
            assert seen.empty()
        relist = seen.get(timeout=30)
        watch.stop()
        assert isinstance(relist, Relist) and [key.name for key in relist.objects] == ["a"]
        wait_until(lambda: connection.memory.left == 100_000)


def test_a_small_response_waits_for_nothing(api: FakeApi) -> None:
    api.put(config_map("a"))
    with Connection(Endpoint(api.url), memory=Memory(10)) as connection, connection.memory.taken(10, 0.0):
        assert connection.request("GET", f"{MAPS}/a")


def test_more_than_there_is_takes_all() -> None:
    whole = Memory(10)
    with whole.taken(100, 0.0):
        assert whole.left == 0
        with pytest.raises(NoMemory), whole.taken(1, time.monotonic()):
            pass
    assert whole.left == 10
