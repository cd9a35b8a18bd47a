# SPDX-License-Identifier: Apache-2.0
"""The message of the protocol and its signature."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json

import pytest

from k8s_cr_driver.credentials import envelope
from k8s_cr_driver.credentials.envelope import Envelope
from k8s_cr_driver.errors import InvalidRequest
from tests.instance import BLUE

KEY = b"0123456789abcdef0123456789abcdef"
SENDER = f"red/{BLUE}"
READY = Envelope("ready", BLUE, "default/red", "https://10.0.0.1:6443", "a: 1", envelope.digest("a: 1"))


def test_a_message_is_read_as_it_was_sent() -> None:
    assert envelope.parse(READY.body()) == READY
    assert sorted(json.loads(READY.body())) == sorted(field.name for field in dataclasses.fields(Envelope))
    assert "a: 1" not in repr(READY)


@pytest.mark.parametrize(
    "field, value",
    [
        ("event", "other"), ("vnfInstanceId", "../../etc"), ("cluster", "red"), ("cluster", "default/../red"),
        ("kubeconfig", ""), ("kubeconfig", "b: 2"), ("digest", "sha256:0"), ("sentAt", "now"),
        ("sentAt", "2026-01-01T00:00:00"), ("endpoint", 1),
        ("endpoint", ""), ("endpoint", "10.0.0.1:6443"), ("endpoint", "https://a:b@10.0.0.1"), ("endpoint", "https://a\x1b[31m"),
        ("endpoint", "https://" + "a" * 2000),
    ],
)  # fmt: skip
def test_a_field_that_is_not_as_the_protocol_has_it_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest):
        envelope.parse(json.dumps({**dataclasses.asdict(READY), field: value}).encode())


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b'"a"'])
def test_a_body_without_the_fields_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="the body is not a JSON object"):
        envelope.parse(body)


def test_a_signature_is_of_one_body_one_key_one_sender_and_one_time() -> None:
    headers = envelope.signed(KEY, SENDER, b"body", now=1000.5)
    assert envelope.is_signed(KEY, headers, b"body", now=1300)
    assert not envelope.is_signed(KEY, headers, b"body", now=1301)
    assert not envelope.is_signed(KEY, headers, b"other", now=1000)
    assert not envelope.is_signed(KEY[::-1], headers, b"body", now=1000)
    assert not envelope.is_signed(KEY, {**headers, envelope.TIME_HEADER: "1001"}, b"body", now=1000)
    assert not envelope.is_signed(KEY, {**headers, envelope.TIME_HEADER: "soon"}, b"body", now=1000)
    assert not envelope.is_signed(KEY, {**headers, envelope.SIGNATURE_HEADER: "é"}, b"body", now=1000)
    assert not envelope.is_signed(KEY, {}, b"body", now=1000)
    for sender in (f"other/{BLUE}", f"red/{BLUE[:-1]}0", "red/1", ""):
        assert not envelope.is_signed(KEY, {**headers, envelope.SENDER_HEADER: sender}, b"body", now=1000)


def test_the_key_of_a_sender_is_neither_that_of_the_receiver_nor_that_of_another_sender() -> None:
    stolen = envelope.derived(KEY, SENDER)
    for sender in (SENDER, f"other/{BLUE}", f"red/{BLUE[:-1]}0", f"/{BLUE}"):
        time = {envelope.TIME_HEADER: "1000", envelope.SENDER_HEADER: sender}
        forged = {**time, envelope.SIGNATURE_HEADER: hmac.new(stolen, b"1000.body", hashlib.sha256).hexdigest()}
        assert envelope.is_signed(KEY, forged, b"body", now=1000) is (sender == SENDER)


def test_a_message_is_of_the_instance_of_its_sender() -> None:
    assert envelope.is_of({envelope.SENDER_HEADER: SENDER}, READY)
    for sender in (f"red/{BLUE[:-1]}0", "", BLUE[1:]):
        assert not envelope.is_of({envelope.SENDER_HEADER: sender}, READY)
