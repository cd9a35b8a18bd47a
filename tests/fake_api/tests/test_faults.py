# SPDX-License-Identifier: Apache-2.0
"""Faults that tests inject, seen from the client's side of the socket."""

import ssl
import threading

import pytest
import urllib3

from tests.fake_api import FakeApi, faults
from tests.fake_api.tests.conftest import Client, config_map

MAPS = "/api/v1/namespaces/default/configmaps"
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


@pytest.mark.parametrize(("fault", "code", "reason"), [
    (faults.conflict(), 409, "Conflict"), (faults.field_conflict(), 409, "Conflict"), (faults.gone(), 410, "Expired"),
    (faults.too_many(), 429, "TooManyRequests"), (faults.internal(), 500, "InternalError"),
    (faults.webhook_down(), 500, "InternalError"), (faults.unavailable(), 503, "ServiceUnavailable"),
    (faults.not_found(), 404, "NotFound"), (faults.denied("no"), 403, "Forbidden"),
    (faults.denied("no", 406, "NotAcceptable"), 406, "NotAcceptable"), (faults.denied("no", 200, "No"), 400, "No")])
def test_an_answer_replaces_the_write_once(api: FakeApi, client: Client, fault: faults.Action, code: int,
                                           reason: str) -> None:
    api.fail(fault, method="PATCH")
    reply = client.apply(config_map(x="1"))
    assert (reply.status, reply.body["reason"], reply.body["code"]) == (code, reason, code)
    assert api.find("ConfigMap", "default", "a") is None
    assert client.apply(config_map(x="1")).status == 201
    assert api.faults_pending == 0


def test_retry_after_is_a_header_and_a_detail(api: FakeApi, client: Client) -> None:
    api.fail(faults.too_many(3))
    reply = client.call("GET", MAPS)
    assert (reply.headers["Retry-After"], reply.body["details"]["retryAfterSeconds"]) == ("3", 3)


def test_causes_distinguish_the_two_conflicts(api: FakeApi, client: Client) -> None:
    api.fail(faults.field_conflict(".spec.replicas", "hpa", "apps/v1"))
    api.fail(faults.conflict("a", "configmaps"))
    with_causes, without = client.apply(config_map()), client.apply(config_map())
    assert with_causes.body["details"]["causes"] == [{
        "reason": "FieldManagerConflict", "message": 'conflict with "hpa" using apps/v1', "field": ".spec.replicas"}]
    assert without.body["details"] == {"name": "a", "kind": "configmaps"}


def test_matches_by_path_index_and_count(api: FakeApi, client: Client) -> None:
    api.fail(faults.unavailable(), path="configmaps/b$", times=2)
    api.fail(faults.gone(), index=3)
    names = ["a", "b", "b", "c", "b"]
    assert [client.apply(config_map(name)).status for name in names] == [201, 503, 503, 410, 201]


def test_a_reset_before_the_write_writes_nothing(api: FakeApi, client: Client) -> None:
    api.fail(faults.reset_before(), method="PATCH")
    with pytest.raises(urllib3.exceptions.ProtocolError):
        client.apply(config_map())
    assert (api.find("ConfigMap", "default", "a"), api.requests[0].status) == (None, 0)


def test_a_reset_after_the_write_has_written(api: FakeApi, client: Client) -> None:
    api.fail(faults.reset_after(), method="PATCH")
    with pytest.raises(urllib3.exceptions.ProtocolError):
        client.apply(config_map(x="1"))
    assert api.get("ConfigMap", "default", "a")["data"] == {"x": "1"}
    assert client.apply(config_map(x="1")).status == 200


def test_a_truncated_body(api: FakeApi, client: Client) -> None:
    api.fail(faults.truncated(), method="GET")
    with pytest.raises(urllib3.exceptions.ProtocolError):
        client.call("GET", MAPS)


def test_a_hanging_request_lets_the_client_time_out(api: FakeApi) -> None:
    api.fail(faults.hang())
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        urllib3.PoolManager(retries=False).request("GET", api.url + MAPS, timeout=urllib3.Timeout(read=0.05))


def test_a_blank_line_in_a_stream(api: FakeApi, client: Client) -> None:
    api.fail(faults.blank_line(after=1))
    stream = client.watch(MAPS, **INITIAL)
    assert stream.next()[0] == "BOOKMARK"
    assert stream.raw() == b""
    api.put(config_map())
    assert stream.next()[0] == "ADDED"
    stream.close()


def test_a_stream_ends_in_good_order(api: FakeApi, client: Client) -> None:
    api.fail(faults.stream_end(after=1))
    stream = client.watch(MAPS, **INITIAL)
    stream.next()
    with pytest.raises(StopIteration):
        stream.next()


@pytest.mark.parametrize("fault", [faults.stream_cut(after=1), faults.stream_reset(after=1)])
def test_a_stream_breaks(api: FakeApi, client: Client, fault: faults.Action) -> None:
    api.fail(fault)
    stream = client.watch(MAPS, **INITIAL)
    stream.next()
    with pytest.raises(urllib3.exceptions.ProtocolError):
        stream.next()


def test_an_error_event_then_the_end(api: FakeApi, client: Client) -> None:
    api.fail(faults.stream_error(after=1))
    stream = client.watch(MAPS, **INITIAL)
    stream.next()
    what, status = stream.next()
    assert (what, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    with pytest.raises(StopIteration):
        stream.next()


def test_a_half_open_stream_says_nothing_more(api: FakeApi) -> None:
    api.fail(faults.half_open(after=1))
    client = Client(api.url, read_timeout=0.1)
    stream = client.watch(MAPS, **INITIAL)
    assert stream.next()[0] == "BOOKMARK"
    api.put(config_map())
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        stream.next()


def test_open_streams_can_be_broken(api: FakeApi, client: Client) -> None:
    stream = client.watch(MAPS, **INITIAL)
    stream.next()
    assert api.break_streams(faults.stream_end(), "ConfigMap") == 1
    with pytest.raises(StopIteration):
        stream.next()
    assert api.wait_for_streams(0)


def test_a_client_that_goes_away_is_noticed(api: FakeApi, client: Client) -> None:
    stream = client.watch(MAPS, **INITIAL)
    stream.next()
    assert len(api.streams("ConfigMap")) == 1
    stream.close()
    assert api.wait_for_streams(0, "ConfigMap")


def test_dropped_connections(api: FakeApi, client: Client) -> None:
    stream = client.watch(MAPS, **INITIAL)
    stream.next()
    api.drop_connections()
    with pytest.raises(urllib3.exceptions.ProtocolError):
        stream.next()


def test_a_server_that_was_down_is_back_with_its_objects(api: FakeApi, client: Client) -> None:
    api.put(config_map(x="1"))
    stream = client.watch(MAPS, **INITIAL)
    stream.next()
    with api.down(), pytest.raises(urllib3.exceptions.NewConnectionError):
        Client(api.url).call("GET", MAPS)
    with pytest.raises((StopIteration, urllib3.exceptions.ProtocolError)):
        while True:
            stream.next()
    assert Client(api.url).get(config_map()).body["data"] == {"x": "1"}


def test_tls_has_a_ca_of_its_own(tls_api: FakeApi) -> None:
    with pytest.raises(urllib3.exceptions.SSLError):
        Client(tls_api.url).call("GET", MAPS)
    context = ssl.create_default_context(cadata=tls_api.ca_cert)
    client = Client(tls_api.url, ssl_context=context)
    stream = client.watch(MAPS, **INITIAL)
    assert stream.next()[0] == "BOOKMARK"
    client.apply(config_map())
    assert stream.next()[0] == "ADDED"
    stream.close()
    assert tls_api.wait_for_streams(0)
    tls_api.fail(faults.reset_after())
    with pytest.raises(urllib3.exceptions.ProtocolError):
        client.apply(config_map("b"))
    assert tls_api.get("ConfigMap", "default", "b")


def test_close_ends_streams_and_refuses_connections() -> None:
    with FakeApi() as api:
        client = Client(api.url)
        stream = client.watch(MAPS, **INITIAL)
        stream.next()
    with pytest.raises((StopIteration, urllib3.exceptions.ProtocolError)):
        stream.next()
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        Client(api.url).call("GET", MAPS)


@pytest.mark.parametrize(("timeout", "code"), [("1s", 201), ("0.05s", 504)])
def test_the_timeout_of_a_request_ends_a_write_that_a_webhook_holds(
        api: FakeApi, client: Client, timeout: str, code: int) -> None:
    api.fail(faults.held(0.1), method="PATCH")
    assert client.apply(config_map(), timeout=timeout).status == code
    assert (api.find("ConfigMap", "default", "a") is not None) == (code == 201)


def test_a_webhook_holds_a_write_until_an_event(api: FakeApi, client: Client) -> None:
    end = threading.Event()
    api.fail(faults.held(end=end), method="PATCH", times=2)
    assert client.apply(config_map(), timeout="0.05s").status == 504
    end.set()
    assert client.apply(config_map(), timeout="30s").status == 201


def test_connections_are_kept_and_every_request_is_recorded(api: FakeApi, client: Client) -> None:
    client.apply(config_map(x="1"), force="true")
    client.call("GET", MAPS, labelSelector="a=b")
    assert api.connections_opened == 1
    patch, listed = api.requests
    assert (patch.index, patch.method, patch.path, patch.status) == (0, "PATCH", MAPS + "/a", 201)
    assert patch.query == {"fieldManager": "me", "force": "true"}
    assert (patch.body, patch.content_type) == (config_map(x="1"), "application/apply-patch+yaml")
    assert str(listed) == f"1 GET {MAPS}?labelSelector=a=b -> 200"
    assert api.requests.writes == [patch]
    api.requests.clear()
    assert len(api.requests) == 0


def test_many_writers_at_once(api: FakeApi) -> None:
    client = Client(api.url)
    stream = client.watch(MAPS, **INITIAL)
    stream.next()

    def write(writer: int) -> None:
        own = Client(api.url)
        for number in range(20):
            assert own.apply(config_map(f"w{writer}-{number}")).status == 201

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    seen = [stream.next()[1]["metadata"] for _ in range(160)]
    for thread in threads:
        thread.join()
    versions = [int(metadata["resourceVersion"]) for metadata in seen]
    assert versions == sorted(set(versions))
    assert len({metadata["name"] for metadata in seen}) == 160
    stream.close()
