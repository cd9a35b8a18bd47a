# SPDX-License-Identifier: Apache-2.0
"""Logins with OpenID Connect: when a token is asked for, how long it is used, and every way it can fail."""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from k8s_cr_driver.errors import ConnectionFailed, InvalidRequest, TransportError
from k8s_cr_driver.kube import auth
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from tests.fake_api import FakeApi, faults
from tests.instance import CONDITIONS, Instance, crontab, crontab_crd, status
from tests.oidc_provider import OidcProvider

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def provider(api: FakeApi) -> Iterator[OidcProvider]:
    api.knobs.tokens = set()
    with OidcProvider(api.knobs.tokens) as one:
        yield one


@pytest.fixture
def endpoint(api: FakeApi, provider: OidcProvider) -> Endpoint:
    return vim_endpoint({"endpoint": api.url}, provider.access())


@pytest.fixture
def connection(endpoint: Endpoint) -> Iterator[Connection]:
    with Connection(endpoint) as one:
        yield one


def test_the_password_grant_is_asked_for_when_it_is_needed_and_its_token_used(
    provider: OidcProvider, connection: Connection
) -> None:
    assert provider.asked == []
    for _ in range(5):
        assert connection.request("GET", MAPS)["kind"] == "ConfigMapList"
    form = {"grant_type": "password", "scope": "openid", "client_id": "tacker", "username": "operator", "password": "word"}
    assert provider.asked == [form]


def test_the_secret_of_a_confidential_client_is_sent(api: FakeApi, provider: OidcProvider) -> None:
    access = provider.access(client_secret="s & = ü", bearer_token="not used")
    with Connection(vim_endpoint({"endpoint": api.url}, access)) as connection:
        connection.request("GET", MAPS)
    assert provider.asked[0]["client_secret"] == "s & = ü"


@pytest.mark.parametrize(("lifetime", "asked"), [(3600, 1), (None, 1), (0, 3), (-5, 3)])
def test_a_token_that_is_about_to_expire_is_not_used(
    provider: OidcProvider, connection: Connection, lifetime: int | None, asked: int
) -> None:
    provider.lifetime = lifetime
    for _ in range(3):
        connection.request("GET", MAPS)
    assert len(provider.asked) == asked


def test_a_clock_of_the_provider_that_is_wrong_does_not_matter(provider: OidcProvider, connection: Connection) -> None:
    provider.issued = 0
    for _ in range(3):
        connection.request("GET", MAPS)
    assert len(provider.asked) == 1


def test_a_token_that_the_server_does_not_take_any_more_is_renewed_once_for_all_threads(
    api: FakeApi, provider: OidcProvider, connection: Connection
) -> None:
    connection.request("GET", MAPS)
    provider.revoke()
    with ThreadPoolExecutor(8) as workers:
        answers = workers.map(lambda _: connection.request("GET", MAPS), range(32))
    assert {one["kind"] for one in answers} == {"ConfigMapList"}
    assert len(provider.asked) == 2


def test_a_token_that_expires_in_an_operation_is_renewed_also_for_its_streams(
    api: FakeApi, provider: OidcProvider, endpoint: Endpoint
) -> None:
    blue = Instance(api.url)
    blue.endpoint = endpoint
    run = blue.start([crontab_crd(**CONDITIONS), crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    provider.revoke()
    api.break_streams(faults.stream_end())
    api.set_status("CronTab", "default", "one", status())
    run.result(10)
    assert len(provider.asked) == 2


def test_an_api_server_that_has_just_started_is_asked_again(
    api: FakeApi, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know the provider's keys yet, and refuses every token."""
    monkeypatch.setattr(auth, "REFUSED_GRACE", 30.0)
    blue = Instance(api.url)
    blue.endpoint = endpoint
    run = blue.start([crontab_crd(**CONDITIONS), crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.fail(faults.status(401, "Unauthorized", "Unauthorized"), path="crontabs", times=5)
    api.break_streams(faults.stream_end(), "CronTab")
    api.set_status("CronTab", "default", "one", status())
    run.result(10)
    assert api.faults_pending == 0


def test_an_api_server_that_refuses_for_longer_ends_the_run(
    api: FakeApi, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "REFUSED_GRACE", 0.3)
    blue = Instance(api.url)
    blue.endpoint = endpoint
    run = blue.start([crontab_crd(**CONDITIONS), crontab("one")])
    blue.wait_until_reported("one", "Waiting")
    api.fail(faults.status(401, "Unauthorized", "Unauthorized"), times=1000)
    api.break_streams(faults.stream_end(), "CronTab")
    with pytest.raises(ConnectionFailed, match="does not accept the ID token"):
        run.result(10)


def test_an_api_server_that_does_not_trust_the_provider_is_one_clear_error(
    api: FakeApi, provider: OidcProvider, connection: Connection
) -> None:
    api.knobs.tokens = {"another"}
    with pytest.raises(ConnectionFailed) as raised:
        connection.request("GET", MAPS)
    assert str(raised.value) == (
        f"{api.url} does not accept the ID token of {provider.url} (401). The API server must trust that provider and "
        "this client_id (its options --oidc-issuer-url and --oidc-client-id)."
    )
    assert len(provider.asked) == 2


NO_TOKEN = r"has no id_token: check that .*oidc_token_url is the token endpoint"


@pytest.mark.parametrize(("status", "body", "message"), [
    (400, {"error": "invalid_grant"}, r"gives no token \(400 invalid_grant\): check username and password\."),
    (401, {"error": "invalid_client"}, r"gives no token \(401 invalid_client\): check client_id and client_secret"),
    (400, {"error": "unauthorized_client"}, "let the provider allow the password grant for this client_id"),
    (400, {"error": ["word"]}, r"gives no token \(400\): check oidc_token_url"),
    (400, [], r"gives no token \(400\)"),
    (404, b"<html>", r"gives no token \(404\): check oidc_token_url"),
    (307, b"", r"gives no token \(307\)"),
    (200, b"<html>", NO_TOKEN),
    (200, {"access_token": "a"}, NO_TOKEN),
    (200, {"id_token": "a\r\nb: c"}, NO_TOKEN),
    (200, {"id_token": 1}, NO_TOKEN),
])  # fmt: skip
def test_a_provider_that_gives_no_token_is_one_clear_error(
    api: FakeApi, provider: OidcProvider, connection: Connection, status: int, body: Any, message: str
) -> None:
    provider.answers = [(status, body)]
    with pytest.raises(ConnectionFailed, match=message):
        connection.request("GET", MAPS)
    assert (len(provider.asked), len(api.requests)) == (1, 0)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_provider_in_trouble_is_asked_again(provider: OidcProvider, connection: Connection, status: int) -> None:
    provider.answers = [(status, b"")]
    with pytest.raises(TransportError, match=f"the OpenID Connect provider responds with {status}"):
        connection.request("GET", MAPS)
    connection.request("GET", MAPS)


def test_a_provider_that_nobody_serves(api: FakeApi, provider: OidcProvider, connection: Connection) -> None:
    provider.__exit__()
    with pytest.raises(TransportError, match=f"POST {provider.url}: .*refused"):
        connection.request("GET", MAPS)


def test_a_provider_that_never_answers_is_waited_for_once_by_all_threads(
    provider: OidcProvider, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "READ_TIMEOUT", 0.5)
    provider.free.clear()
    together = threading.Barrier(8)

    def fail(_: int) -> None:
        together.wait(10)
        with pytest.raises(TransportError, match="timed out"):
            connection.request("GET", MAPS)

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(fail, range(8)))
    assert len(provider.asked) < 8


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_the_provider_is_verified_as_the_api_server_is(tls_api: FakeApi) -> None:
    def ask(ca: str, verify: bool = True) -> None:
        vim = {"endpoint": tls_api.url, "ssl_ca_cert": ca}
        with Connection(vim_endpoint(vim, provider.access(), verify_without_ca=verify)) as connection:
            connection.request("GET", "/version")

    tls_api.knobs.tokens = set()
    with OidcProvider(tls_api.knobs.tokens, tls=True) as provider:
        with pytest.raises(ConnectionFailed, match=f"The certificate of {provider.url} was not accepted"):
            ask(tls_api.ca_cert or "")
        assert provider.asked == []
        ask(f"{tls_api.ca_cert} {provider.ca_cert}")
        ask("", verify=False)
        assert len(provider.asked) == 2


@pytest.mark.parametrize(("access", "message"), [
    ({"username": "a", "password": "b"}, "accessInfo: oidc_token_url needs client_id beside it"),
    ({}, "needs client_id and username and password beside it"),
    ({"oidc_token_url": "https://a:b@c/"}, r"accessInfo\.oidc_token_url: holds credentials"),
    ({"oidc_token_url": "c.example.com/token"}, r"oidc_token_url: 'c\.example\.com/token' is not an http"),
])  # fmt: skip
def test_an_access_info_with_a_missing_field_is_refused(access: dict[str, str], message: str) -> None:
    if "oidc_token_url" in access:
        access = {"client_id": "a", "username": "a", "password": "b", **access}
    with pytest.raises(InvalidRequest, match=message):
        vim_endpoint({"endpoint": "https://127.0.0.1:1"}, {"oidc_token_url": "https://a/token", **access})


def test_credentials_in_the_endpoint_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"interfaceInfo\.endpoint: holds credentials") as raised:
        vim_endpoint({"endpoint": "https://operator:word@127.0.0.1:1"}, {})
    assert "word" not in str(raised.value)


def test_a_token_whose_time_is_no_time_does_not_expire() -> None:
    payload = base64.urlsafe_b64encode(b'{"exp": 1' + b"0" * 400 + b', "iat": 1}').decode()
    assert auth._lifetime(f"a.{payload}.b") == math.inf
