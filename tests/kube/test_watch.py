# SPDX-License-Identifier: Apache-2.0
"""A watch reports everything once and in order, whatever happens to the connections that it runs over."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator

import pytest

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube import connection, lists, restarts, watch
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.watch import Broken, Change, InitialEvents, Message, Reflector, Relist
from k8s_cr_driver.kube.watch_events import ends_initial_events, object_of
from k8s_cr_driver.objects.keys import GroupKind
from tests.fake_api import FakeApi, faults
from tests.fake_api.recording import Request
from tests.instance import config_map
from tests.times import REAL, change_times

CONFIG_MAPS = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"list", "watch"}))


class Listener:
    """The streams of a test and what they reported."""

    def __init__(self, url: str) -> None:
        self.connection = Connection(Endpoint(url))
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.streams: list[Reflector] = []

    def open(self, namespace: str = "", selector: str = "", resource: Resource = CONFIG_MAPS, **options: object) -> Reflector:
        stream = Reflector(self.connection, resource, namespace, selector, self.inbox.put, **options)  # type: ignore[arg-type]
        self.streams.append(stream)
        stream.start(lambda: None)
        return stream

    def next(self) -> str:
        """The next message, in a word."""
        message = self.inbox.get(timeout=10)
        if isinstance(message, Relist):
            return "all: " + " ".join(sorted(key.name for key in message.objects))
        if isinstance(message, Change):
            return ("gone: " if message.deleted else "now: ") + message.live["metadata"]["name"]
        return f"broken: {message.error.status}" if isinstance(message, Broken) else "unserved"


@pytest.fixture
def listener(api: FakeApi) -> Iterator[Listener]:
    one = Listener(api.url)
    with one.connection:
        yield one
        for stream in one.streams:
            stream.stop()


@pytest.mark.parametrize("initial_events", [True, False])
def test_first_all_objects_and_then_each_change(api: FakeApi, listener: Listener, initial_events: bool) -> None:
    api.knobs.send_initial_events = initial_events
    api.put(config_map("a"))
    api.put(config_map("b"))
    listener.open()
    assert listener.next() == "all: a b"
    api.put(config_map("c"))
    api.put(config_map("a", x="2"))
    api.delete("ConfigMap", "default", "b")
    assert [listener.next() for _ in range(3)] == ["now: c", "now: a", "gone: b"]
    assert len(api.requests.select(watch=False)) == (0 if initial_events else 1)


def test_a_server_without_initial_events_is_asked_for_them_once_by_all_streams(api: FakeApi, listener: Listener) -> None:
    api.knobs.send_initial_events = False
    known = InitialEvents()
    for namespace in ("", "default", "kube-system"):
        listener.open(namespace, initial_events=known)
    assert [listener.next() for _ in range(3)] == ["all: "] * 3
    assert api.wait_for_streams(3)
    assert len(api.requests.select(when=lambda request: request.status == 422)) == 1
    assert len(api.requests) == 1 + 2 * 3


def test_a_server_that_ignores_the_wish_for_initial_events_is_listed(
    api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "INITIAL_LIMIT", 0.2)
    monkeypatch.setattr(watch, "IDLE_LIMIT", 300.0)  # as it is: longer than an operation
    api.knobs.ignore_initial_events = True
    api.put(config_map("a"))
    listener.open()
    assert listener.next() == "all: a"
    api.put(config_map("b"))
    assert listener.next() == "now: b"


def test_the_limit_of_initial_events_does_not_hold_for_what_follows(listener: Listener) -> None:
    stream = listener.open()
    assert listener.next() == "all: "
    assert stream._response.connection.sock.gettimeout() == watch.IDLE_LIMIT  # type: ignore[union-attr]


def test_a_server_that_hangs_does_not_keep_the_watches_of_others_from_opening(
    api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "TRIAL_LIMIT", 0.2)
    api.fail(faults.hang(), times=1)
    known = InitialEvents()
    listener.open("kube-system", initial_events=known)
    listener.open("default", initial_events=known)
    assert listener.next() == "all: "


def test_a_list_of_many_pages_is_one_snapshot(api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "PAGE", 3)
    api.knobs.send_initial_events = False
    for number in range(8):
        api.put(config_map(f"m{number}"))
    listener.open()
    assert listener.next() == "all: " + " ".join(f"m{number}" for number in range(8))
    assert len(api.requests.select(watch=False)) == 3


def test_only_what_the_selector_and_the_namespace_choose(api: FakeApi, listener: Listener) -> None:
    marked = config_map("marked")
    marked["metadata"]["labels"] = {"mark": "1"}
    api.put(marked)
    api.put(config_map("plain"))
    api.put({**marked, "metadata": {**marked["metadata"], "namespace": "kube-system"}})
    listener.open("default", "mark=1")
    assert listener.next() == "all: marked"
    api.edit("ConfigMap", "default", "marked", lambda live: live["metadata"].update(labels={}))
    assert listener.next() == "gone: marked"


@pytest.mark.parametrize("fault", [faults.stream_end(), faults.stream_reset(), faults.stream_cut(), faults.blank_line()])
def test_an_interruption_loses_nothing_and_reports_nothing_twice(
    api: FakeApi, listener: Listener, fault: faults.StreamFault
) -> None:
    api.put(config_map("a"))
    listener.open()
    assert listener.next() == "all: a"
    api.put(config_map("b"))
    assert listener.next() == "now: b"
    assert api.break_streams(fault) == 1
    api.put(config_map("c"))
    api.delete("ConfigMap", "default", "a")
    assert [listener.next(), listener.next()] == ["now: c", "gone: a"]
    again = api.requests.select(watch=True)[1:]
    assert all("resourceVersion" in request.query for request in again)


def test_an_interrupted_beginning_begins_again(api: FakeApi, listener: Listener) -> None:
    api.put(config_map("a"))
    api.put(config_map("b"))
    api.fail(faults.stream_end(after=1))
    api.fail(faults.stream_cut(after=1))
    listener.open()
    assert listener.next() == "all: a b"
    assert api.faults_pending == 0


@pytest.mark.parametrize("initial_events", [True, False])
def test_when_the_past_is_forgotten_a_new_list_reports_also_what_was_deleted(
    api: FakeApi, listener: Listener, initial_events: bool
) -> None:
    api.knobs.send_initial_events = initial_events
    api.put(config_map("a"))
    api.put(config_map("b"))
    listener.open()
    assert listener.next() == "all: a b"
    assert api.wait_for_streams(1)
    api.fail(faults.stream_error(), path="configmaps")
    with api.cluster.store.changed:
        api.break_streams(faults.stream_end())
        api.delete("ConfigMap", "default", "b")
    assert listener.next() == "all: a"


def test_a_bookmark_moves_the_place_to_resume_from(api: FakeApi, listener: Listener) -> None:
    listener.open(selector="mark=1")
    assert listener.next() == "all: "
    api.put(config_map("unseen"))
    api.bookmark("ConfigMap")
    marked = config_map("seen")
    marked["metadata"]["labels"] = {"mark": "1"}
    last = api.get("ConfigMap", "default", "unseen")["metadata"]["resourceVersion"]
    api.break_streams(faults.stream_end(after=2))
    api.put(marked)
    assert listener.next() == "now: seen"
    assert api.requests[len(api.requests) - 1].query["resourceVersion"] == last


def test_a_half_open_stream_is_given_up_after_its_idle_limit(
    api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "IDLE_LIMIT", 0.2)
    listener.open()
    assert listener.next() == "all: "
    api.break_streams(faults.half_open())
    api.put(config_map("a"))
    assert listener.next() == "now: a"


def test_a_server_that_does_not_even_begin_to_answer_is_asked_again(
    api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_TIMEOUT", 0.2)
    api.fail(faults.hang())
    listener.open()
    assert listener.next() == "all: "


class Clock:
    """Time for `watch`, by a hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_what_was_allowed_until_the_stream_broke_may_be_forbidden_for_a_moment(
    api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(restarts, "time", clock)
    change_times(monkeypatch, forbidden=REAL.forbidden)
    listener.open()
    assert listener.next() == "all: "
    clock.now += 3600
    api.fail(faults.forbidden("watch"))
    api.break_streams(faults.stream_end())
    api.put(config_map("a"))
    assert listener.next() == "now: a"


def test_a_server_that_was_away_for_long_may_forbid_for_a_moment_what_it_had_allowed(
    api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(restarts, "time", clock)
    monkeypatch.setattr(watch, "time", clock)
    change_times(monkeypatch, forbidden=REAL.forbidden)
    listener.open()
    assert listener.next() == "all: "
    came_back = clock.now + 2 * REAL.forbidden

    def is_away(_: Request) -> bool:
        clock.now += 10
        return clock.now < came_back

    api.fail(faults.status(503, "ServiceUnavailable"), when=is_away, times=100)
    api.fail(faults.forbidden("watch"), when=lambda _: clock.now >= came_back, times=2)
    api.break_streams(faults.stream_end())
    api.put(config_map("a"))
    assert listener.next() == "now: a"


@pytest.mark.parametrize("away", [faults.unavailable(), faults.reset_before()], ids=["503", "connection lost"])
def test_a_server_that_was_away_before_the_first_watch_may_forbid_it_for_a_moment(
    api: FakeApi, listener: Listener, away: faults.Action
) -> None:
    api.fail(away)
    api.fail(faults.forbidden("watch"), when=lambda _: len(api.requests) > 1, times=2)
    api.put(config_map("a"))
    listener.open()
    assert listener.next() == "all: a"


def test_what_stays_forbidden_ends_the_stream_after_a_while(
    api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(restarts, "time", clock)
    change_times(monkeypatch, forbidden=REAL.forbidden)
    listener.open()
    assert listener.next() == "all: "

    def passes(_: Request) -> bool:
        clock.now += REAL.forbidden / 3
        return True

    api.fail(faults.forbidden("watch"), when=passes, times=100)
    api.break_streams(faults.stream_end())
    message = listener.inbox.get(timeout=10)
    assert isinstance(message, Broken)


def test_a_kind_that_is_served_no_more_is_reported_and_listed_when_it_is_served_again(api: FakeApi, listener: Listener) -> None:
    api.put(config_map("a"))
    listener.open()
    assert listener.next() == "all: a"
    resource = ("", "configmaps")
    kinds = api.cluster.served(resource)
    api.cluster.serve(resource, [])
    assert listener.next() == "unserved"
    api.cluster.serve(resource, kinds)
    while (event := listener.next()) == "unserved":
        pass
    assert event == "all: a"


def test_a_404_of_a_kind_that_discovery_lists_is_no_empty_list(api: FakeApi, listener: Listener) -> None:
    api.put(config_map("a"))
    api.fail(faults.not_found(), when=lambda request: request.watch, times=2)
    listener.open()
    assert listener.next() == "all: a"


@pytest.mark.parametrize("status, reason", [(403, "Forbidden"), (405, "MethodNotAllowed")])
def test_what_the_server_will_never_allow_ends_the_stream(
    api: FakeApi, listener: Listener, status: int, reason: str
) -> None:
    api.fail(faults.status(status, reason), times=100)
    listener.open()
    message = listener.inbox.get(timeout=10)
    assert isinstance(message, Broken)
    assert isinstance(message.error, ApiError)
    assert message.error.status == status
    assert len(api.requests) == 1


PASSING = [
    *(faults.unavailable(), faults.internal(), faults.too_many(), faults.gone()),
    *(faults.reset_before(), faults.truncated()),
]


@pytest.mark.parametrize("initial_events", [True, False])
@pytest.mark.parametrize("fault", PASSING)
def test_an_error_that_passes_delays_the_beginning(
    api: FakeApi, listener: Listener, fault: faults.Action, initial_events: bool
) -> None:
    api.knobs.send_initial_events = initial_events
    api.put(config_map("a"))
    api.fail(fault, times=2, when=lambda request: not request.watch or initial_events)
    listener.open()
    assert listener.next() == "all: a"


def test_an_end_at_once_is_not_answered_by_a_storm(api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    change_times(monkeypatch, first_backoff=60)
    listener.open()
    assert listener.next() == "all: "
    api.break_streams(faults.stream_end())
    assert api.wait_for_streams(0)
    listener.streams[0].stop()
    listener.streams[0]._thread.join(10)
    assert len(api.requests) == 1


def test_stop_ends_the_thread_in_the_middle_of_a_read_and_closes_the_connection(api: FakeApi, listener: Listener) -> None:
    stream = listener.open()
    assert listener.next() == "all: "
    stream.stop()
    stream._thread.join(10)
    assert not stream._thread.is_alive()
    assert api.wait_for_streams(0)
    assert listener.inbox.empty()


def test_stop_ends_a_stream_that_waits_to_try_again(api: FakeApi, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    change_times(monkeypatch, first_backoff=60)
    answered = threading.Event()
    api.fail(faults.unavailable(), when=lambda request: answered.set() or True, times=100)  # type: ignore[func-returns-value]
    stream = listener.open()
    assert answered.wait(10)
    stream.stop()
    stream._thread.join(10)
    assert not stream._thread.is_alive()


def test_a_watch_with_a_malformed_event_is_opened_again() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    metadata = b'{"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}'
    bodies = [
        b'{"type": "ADDED", "object": {"metadata": "nonsense"}}\n',
        b'{"type": "BOOKMARK", "object": {"metadata": %b}}\n' % metadata,
    ]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for body in bodies:
                client = server.accept()[0]
                client.recv(65536)
                client.sendall(head + body)
                client.close()

        threading.Thread(target=serve, daemon=True).start()
        heard: queue.SimpleQueue[watch.Message] = queue.SimpleQueue()
        with Connection(Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}")) as connection:
            resource = Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"list", "watch"}))
            stream = watch.Reflector(connection, resource, "", "a=b", heard.put)
            stream.start(lambda: None)
            assert heard.get(timeout=10) == watch.Relist(stream, {})
            stream.stop()


@pytest.mark.parametrize("code", [float("inf"), "x", None, [], 500])
def test_an_error_without_a_code_is_one_that_may_pass(code: object) -> None:
    event = {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "m"}}
    with pytest.raises(ApiError) as raised:
        object_of(CONFIG_MAPS, event)
    assert raised.value.status == 500


def test_a_bookmark_of_another_form_ends_no_initial_events() -> None:
    marks = [["k8s.io/initial-events-end", "true"]]
    assert not ends_initial_events({"metadata": {"annotations": marks}})
