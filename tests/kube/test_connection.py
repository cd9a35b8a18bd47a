# SPDX-License-Identifier: Apache-2.0
"""From a VIM to a cluster: the keys that Tacker stores, TLS, logins, and every way an answer can fail."""

from __future__ import annotations

import base64
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # eventlet leaves its own as attributes of http
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.errors import ApiError, ConnectionFailed, InvalidRequest, NotConnected, TransportError
from k8s_cr_driver.kube import auth, tls
from k8s_cr_driver.kube.connection import APPLY, Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.kubeconfig import endpoint as kubeconfig_endpoint
from k8s_cr_driver.kube.tls import pem
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from tests.fake_api import FakeApi, errors, faults
from tests.fake_api.tls import server_certificate
from tests.instance import config_map

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def connection(api: FakeApi) -> Iterator[Connection]:
    with Connection(Endpoint(api.url)) as one:
        yield one


def test_a_connection_sends_nothing_after_its_operation(api: FakeApi, connection: Connection) -> None:
    connection.__exit__(None, None, None)
    with pytest.raises(NotConnected, match="the operation has ended"):
        connection.request("PATCH", f"{MAPS}/a", body=config_map("a"), content_type=APPLY)
    assert not api.requests.writes


@pytest.mark.parametrize("name", ["..", ".", "../../../namespaces/default"])
def test_a_name_of_others_leads_to_no_other_path(api: FakeApi, connection: Connection, name: str) -> None:
    sent = len(api.requests)
    with pytest.raises(InvalidRequest, match="has a name that no object has"):
        connection.request("GET", f"{MAPS}/{name}")
    assert len(api.requests) == sent


def test_an_error_of_the_server_carries_all_that_it_said(api: FakeApi, connection: Connection) -> None:
    api.fail(faults.too_many(retry_after=7))
    api.fail(faults.field_conflict(".data.x", manager="kubectl"), index=1)
    with pytest.raises(ApiError) as raised:
        connection.request("GET", MAPS)
    assert (raised.value.status, raised.value.reason, raised.value.retry_after) == (429, "TooManyRequests", 7.0)
    with pytest.raises(ApiError) as raised:
        connection.request("GET", MAPS)
    assert raised.value.causes == (("FieldManagerConflict", ".data.x", 'conflict with "kubectl" using v1'),)
    assert str(raised.value).startswith(f"GET {MAPS}: 409 Conflict: Apply failed with 1 conflict")


@pytest.mark.parametrize("fault", [faults.reset_before(), faults.reset_after(), faults.truncated()])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_without_a_whole_answer_it_is_not_known_what_happened(
    api: FakeApi, connection: Connection, fault: faults.Action, method: str
) -> None:
    api.put(config_map("a"))
    api.requests.clear()
    api.fail(fault)
    with pytest.raises(TransportError, match=f"^{method} {MAPS}/a: "):
        connection.request(method, f"{MAPS}/a", body=config_map("a") if method == "PUT" else None)
    assert len(api.requests) == 1
    assert connection.request("GET", MAPS)["kind"] == "ConfigMapList"


def test_a_server_that_never_answers_is_given_up(api: FakeApi, connection: Connection) -> None:
    api.fail(faults.hang())
    with pytest.raises(TransportError, match="timed out"):
        connection.request("GET", MAPS, read_timeout=0.1)


def test_after_429_nothing_sleeps_inside_of_a_request(api: FakeApi, connection: Connection) -> None:
    api.fail(faults.too_many(retry_after=3600))
    with pytest.raises(ApiError):
        connection.request("GET", MAPS)
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    "header, seconds",
    [
        *(("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("1e999", 60.0), ("99999999999", 60.0), ("nan", None), ("soon", None)),
        *(("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 60.0), ("Wed, 99 Oct 2015", None)),
    ],
)
def test_a_wish_to_be_asked_later_is_believed_within_bounds(
    api: FakeApi, connection: Connection, header: str, seconds: float | None
) -> None:
    api.fail(faults.Answer(errors.ApiError(429, "TooManyRequests", "later", headers={"Retry-After": header})))
    with pytest.raises(ApiError) as raised:
        connection.request("GET", MAPS)
    assert raised.value.retry_after == seconds


def test_credentials_that_were_accepted_may_be_refused_for_a_while(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.fail(faults.status(401, "Unauthorized"))
    with pytest.raises(ConnectionFailed, match=r"does not accept the credentials \(401\)"):
        connection.request("GET", MAPS)
    connection.request("GET", MAPS)
    monkeypatch.setattr(auth, "REFUSED_GRACE", 60)
    api.fail(faults.status(401, "Unauthorized"), times=2)
    with pytest.raises(TransportError, match=r"does not accept the credentials \(401\)"):
        connection.request("GET", MAPS)
    monkeypatch.setattr(auth, "REFUSED_GRACE", 0)
    with pytest.raises(ConnectionFailed):
        connection.request("GET", MAPS)


def test_a_webhook_that_denies_with_401_does_not_refuse_the_credentials(api: FakeApi, connection: Connection) -> None:
    """As an admission policy does with the reason Unauthorized."""
    api.fail(faults.denied("no", 401, "Unauthorized"))
    with pytest.raises(ApiError, match="denied the request: no"):
        connection.request("PATCH", f"{MAPS}/a", body=config_map("a"), content_type=APPLY)


def test_connections_are_used_again_also_after_errors(api: FakeApi, connection: Connection) -> None:
    for index in range(10):
        if index % 2:
            api.fail(faults.unavailable())
        try:
            connection.request("GET", MAPS)
        except ApiError:
            assert index % 2
    assert api.connections_opened == 1


def test_a_connection_that_the_server_has_dropped_is_opened_again(api: FakeApi, connection: Connection) -> None:
    connection.request("GET", MAPS)
    api.drop_connections()
    try:
        connection.request("GET", MAPS)
    except TransportError:
        connection.request("GET", MAPS)


def test_the_token_and_the_password_reach_the_server(api: FakeApi) -> None:
    pair = base64.b64encode(b"operator:word").decode()
    logins = [
        ({"bearer_token": " t "}, "Bearer t"), ({"username": "operator", "password": "word"}, f"Basic {pair}"),
        ({"bearer_token": "t", "username": "operator", "password": "word"}, "Bearer t"), ({}, None),
    ]
    for access, expected in logins:
        with Connection(vim_endpoint({"endpoint": api.url}, access)) as connection:
            connection.request("GET", "/version")
        headers = api.requests[len(api.requests) - 1].headers
        assert headers.get("authorization", headers.get("Authorization")) == expected


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:6443", "ftp://a", "file:///etc/passwd", "https://[::1", "https://a:99999", "https://a b", "https://:6443"],
)
def test_an_endpoint_that_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"interfaceInfo\.endpoint: .* is not an http\(s\) URL"):
        vim_endpoint({"endpoint": url}, {})


@pytest.mark.parametrize("spoil", [lambda text: text, lambda text: text.replace("\n", " "), lambda text: f"\n {text} \n"])
def test_the_ca_of_a_vim_is_used_also_when_its_newlines_were_lost(tls_api: FakeApi, spoil: object) -> None:
    ca = spoil(tls_api.ca_cert)  # type: ignore[operator]
    with Connection(vim_endpoint({"endpoint": tls_api.url, "ssl_ca_cert": ca}, {})) as connection:
        assert connection.request("GET", "/version")["major"] == "1"


def test_a_ca_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="ssl_ca_cert: is no PEM"):
        vim_endpoint({"endpoint": "https://127.0.0.1:1", "ssl_ca_cert": "/etc/ssl/ca.crt"}, {})
    assert pem("nothing") == ""
    damaged = "-----BEGIN CERTIFICATE-----\nabcd\n-----END CERTIFICATE-----"
    with pytest.raises(InvalidRequest, match=r"The CA, .* cannot be read"):
        Connection(vim_endpoint({"endpoint": "https://127.0.0.1:1", "ssl_ca_cert": damaged}, {}))


def test_a_server_without_tls_is_distinguished_from_one_with_a_wrong_certificate(api: FakeApi) -> None:
    endpoint = vim_endpoint({"endpoint": api.url.replace("http:", "https:")}, {})
    with Connection(endpoint) as connection, pytest.raises(ConnectionFailed, match="does not speak TLS: check"):
        connection.request("GET", "/version")


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_without_a_ca_the_certificate_is_verified_unless_the_operator_says_otherwise(
    tls_api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    vim = {"endpoint": tls_api.url}
    with Connection(vim_endpoint(vim, {})) as connection, pytest.raises(ConnectionFailed, match="certificate"):
        connection.request("GET", "/version")
    assert not caplog.records
    with Connection(vim_endpoint(vim, {}, verify_without_ca=False)) as connection:
        assert connection.request("GET", "/version")["major"] == "1"
    assert "is not verified" in caplog.text


def test_a_kubeconfig_with_data_in_it(tls_api: FakeApi, tmp_path: Path) -> None:
    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump({
        "current-context": "one",
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in ("one", "two")],
        "clusters": [
            {"name": "one", "cluster": {"server": tls_api.url, "certificate-authority-data": encoded(tls_api.ca_cert or "")}},
            {"name": "two", "cluster": {"server": "https://two.example.com", "insecure-skip-tls-verify": True}},
        ],
        "users": [{"name": "one", "user": {"token": "t"}}, {"name": "two", "user": {"client-key-data": encoded("key")}}],
    }))
    tls_api.knobs.tokens = {"t"}
    with Connection(kubeconfig_endpoint(path)) as connection:
        connection.request("GET", MAPS)
    other = kubeconfig_endpoint(path, "two")
    assert (other.url, other.verify, other.client_key, other.authorization) == ("https://two.example.com", False, "key", "")


def test_the_text_of_an_apply_is_the_same_to_a_server_that_reads_it_as_yaml() -> None:
    """Measured with API server 1.36: it refuses raw control characters and folds raw line separators."""
    received: list[bytes] = []

    class Server(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    manifest = config_map("odd", text='a \u2028 b \u2029 c \x85 d \x7f e \x80 f \ufeff g \uffff ü 😀 \\ud83d " \t\n')
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with Connection(Endpoint(f"http://127.0.0.1:{server.server_port}")) as connection:
            connection.request("PATCH", f"{MAPS}/odd", body=manifest, content_type=APPLY)
        server.shutdown()
    assert yaml.safe_load(received[0]) == manifest


def test_a_server_that_closes_in_the_handshake_may_be_there_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_at_once() -> None:
            server.accept()[0].close()

        threading.Thread(target=close_at_once, daemon=True).start()
        endpoint = Endpoint(f"https://127.0.0.1:{server.getsockname()[1]}")
        with Connection(endpoint) as connection, pytest.raises(TransportError):
            connection.request("GET", "/api")


def test_connections_of_parallel_requests_are_used_again(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    threads = 40
    together = threading.Barrier(threads)

    def ask(connection: Connection) -> None:
        for _ in range(3):
            together.wait(30)
            connection.request("GET", "/version")

    with Connection(Endpoint(api.url)) as connection, ThreadPoolExecutor(threads) as workers:
        for asked in [workers.submit(ask, connection) for _ in range(threads)]:
            asked.result()
    assert "Connection pool is full" not in caplog.text
    assert api.connections_opened <= threads


def test_the_key_of_a_client_is_in_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ssl module reads a client's certificate from a path only."""
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    chain, ca = server_certificate()
    assert tls.context("https://127.0.0.1:1", ca=ca, client_cert=chain.decode()) is not None
