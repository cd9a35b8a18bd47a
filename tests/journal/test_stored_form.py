# SPDX-License-Identifier: Apache-2.0
"""The compressed data of an inventory is unpacked within a limit."""

from __future__ import annotations

import base64
import gzip

import pytest

from k8s_cr_driver.errors import TransportError
from k8s_cr_driver.journal import stored_form
from k8s_cr_driver.journal.stored_form import parse
from k8s_cr_driver.objects.keys import Object


def inventory(packed: bytes) -> Object:
    metadata = {"name": "k8s-cr-driver-a", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    data = {"members.gz": base64.b64encode(packed).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data}


def test_members_are_unpacked_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_form, "UNPACKED_LIMIT", 1000, raising=False)
    assert parse(inventory(gzip.compress(b"{}".rjust(1000)))).members == frozenset()
    with pytest.raises(TransportError, match="the inventory default/k8s-cr-driver-a: the response is malformed"):
        parse(inventory(gzip.compress(b"{}".rjust(1001))))


@pytest.mark.parametrize("packed", [b"no gzip", gzip.compress(b"{}" + b" " * 500)[:-9]], ids=["no gzip", "cut"])
def test_members_that_are_cut_or_no_gzip_are_malformed(packed: bytes) -> None:
    with pytest.raises(TransportError, match="the response is malformed"):
        parse(inventory(packed))


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000], ids=["cut", "whole"])
def test_members_that_are_nested_deeply_are_malformed(text: bytes) -> None:
    with pytest.raises(TransportError, match="the response is malformed"):
        parse(inventory(gzip.compress(text)))


def test_members_of_too_many_values_are_not_read() -> None:
    with pytest.raises(TransportError, match="the response is malformed"):
        parse(inventory(gzip.compress(b"[" + b"1," * stored_form.VALUES_LIMIT + b"1]")))
