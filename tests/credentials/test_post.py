# SPDX-License-Identifier: Apache-2.0
"""What a receiver may do to a message on its way: refuse it, fail, redirect it, close, or not be there."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from k8s_cr_driver.credentials import envelope, post
from k8s_cr_driver.credentials.envelope import Envelope
from k8s_cr_driver.credentials.post import NotDelivered
from k8s_cr_driver.credentials.secrets import Secrets
from k8s_cr_driver.credentials.settings import Settings
from tests.credentials.web import CLOSE, HANG, Web, web
from tests.fake_api.tls import server_context
from tests.instance import BLUE

KEY = b"0123456789abcdef0123456789abcdef"
MESSAGE = Envelope("ready", BLUE, "default/red", "https://10.0.0.1:6443", "a: 1", envelope.digest("a: 1"))


@pytest.fixture
def receiver() -> Iterator[Web]:
    with web() as one:
        yield one


def send(url: str, ca: str, seconds: float = 30, **settings: Any) -> None:
    found = Settings(url, {}, ca_bundle=ca, **settings)
    with post.poster(found, Secrets(KEY), time.monotonic() + seconds) as poster:
        poster.post(MESSAGE)


def test_what_may_pass_is_tried_again_with_a_signature_of_its_own(receiver: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver.responses += [(500, {}), (503, {}), (429, {"Retry-After": "0.05"}), (CLOSE, {})]
    monkeypatch.setattr(post.time, "time", iter(range(2 * 10**9, 3 * 10**9)).__next__)
    send(receiver.url, receiver.ca)
    assert len(receiver.posts) == 5 and len({one.body for one in receiver.posts}) == 1
    times = [int(one.headers[envelope.TIME_HEADER]) for one in receiver.posts]
    assert len(set(times)) == 5
    assert all(envelope.is_signed(KEY, one.headers, one.body, now) for one, now in zip(receiver.posts, times, strict=True))


def test_retry_after_is_waited_for(receiver: Web) -> None:
    receiver.responses += [(429, {"Retry-After": "0.3"})]
    begun = time.monotonic()
    send(receiver.url, receiver.ca)
    assert time.monotonic() - begun >= 0.3 and len(receiver.posts) == 2


@pytest.mark.parametrize("status", [301, 302, 303, 400, 401, 403, 404, 409, 413])
def test_a_refusal_ends_it_with_url_status_and_cluster(receiver: Web, status: int) -> None:
    receiver.responses += [(status, {"Location": "/other"})]
    with pytest.raises(NotDelivered) as raised:
        send(receiver.url, receiver.ca)
    assert str(raised.value) == f"default/red: {receiver.url} did not accept the event ready: status {status} (attempt 1)"
    assert len(receiver.posts) == 1


def test_attempts_end_with_the_retries(receiver: Web) -> None:
    receiver.responses += [(500, {})] * 1000
    with pytest.raises(NotDelivered, match="status 500"):
        send(receiver.url, receiver.ca, retries=2)
    assert len(receiver.posts) == 3


def test_no_pause_goes_beyond_the_deadline(receiver: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(post.time, "sleep", pauses.append)
    begun = time.monotonic()
    monkeypatch.setattr(post.time, "monotonic", lambda: begun + sum(pauses))
    receiver.responses += [(500, {})] * 1000
    with pytest.raises(NotDelivered, match="status 500"):
        send(receiver.url, receiver.ca, 20, retries=1000)
    assert 10 < sum(pauses) <= 20 and len(receiver.posts) == len(pauses) + 1


def test_a_slow_receiver_is_given_up_at_the_deadline(receiver: Web) -> None:
    receiver.responses += [(HANG, {})]
    begun = time.monotonic()
    with pytest.raises(NotDelivered, match="no status: Read timed out"):
        send(receiver.url, receiver.ca, 2)
    assert time.monotonic() - begun < 15


def test_a_redirect_stays_on_the_server(receiver: Web) -> None:
    receiver.responses += [(307, {"Location": "/there"}), (308, {"Location": "again"})]
    send(receiver.url, receiver.ca)
    assert [one.path for one in receiver.posts] == ["/hook", "/there", "/again"]
    with web() as other:
        receiver.responses += [(307, {"Location": other.url})]
        with pytest.raises(NotDelivered, match="redirects to another server, which is refused"):
            send(receiver.url, receiver.ca)
        host, here = (one.url.split("/")[2] for one in (other, receiver))
        receiver.responses += [(307, {"Location": f"https://{host}\\@{here}/hook"})]
        with pytest.raises(NotDelivered, match="redirects to another server, which is refused"):
            send(receiver.url, receiver.ca)
        assert not other.posts
    receiver.responses += [(307, {"Location": "/there"})] * 10
    with pytest.raises(NotDelivered, match="redirects again and again"):
        send(receiver.url, receiver.ca)


def test_a_redirect_to_what_is_no_url_is_refused(receiver: Web) -> None:
    receiver.responses += [(307, {"Location": "//["})]
    with pytest.raises(NotDelivered, match="redirects to another server, which is refused"):
        send(receiver.url, receiver.ca)


def test_a_wrong_certificate_ends_it_before_anything_is_sent(receiver: Web) -> None:
    with pytest.raises(NotDelivered, match=r"no status: .*certificate.* \(attempt 1\)"):
        send(receiver.url, server_context()[1])
    with pytest.raises(NotDelivered, match="certificate"):
        send(receiver.url, "")
    context, ca = server_context("127.0.0.9")
    with web(context, ca) as elsewhere, pytest.raises(NotDelivered, match="certificate"):
        send(elsewhere.url, elsewhere.ca)
    assert not receiver.posts and not elsewhere.posts


def test_a_receiver_that_is_down_is_tried_until_it_is_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(NotDelivered, match=r"no status: .*refused \(attempt 4\)"):
            send(url, server_context()[1], retries=3)
