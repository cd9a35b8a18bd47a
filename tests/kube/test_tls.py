# SPDX-License-Identifier: Apache-2.0
"""PEM texts as users give them."""

import time

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube import tls
from tests.fake_api.tls import server_certificate

PEM = serialization.Encoding.PEM


@pytest.mark.parametrize("part", ["-----BEGIN A-----", "-----BEGIN ", "-----BEGIN A-----x-----END ", "-", "A "])
def test_hostile_pems_take_linear_time(part: str) -> None:
    began = time.process_time()
    tls.pem(part * (1_000_000 // len(part)))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("ca", ["é", "\0", "-----BEGIN CERTIFICATE-----\né\n-----END CERTIFICATE-----"])
def test_an_odd_ca_is_an_error_of_the_request(ca: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        tls.context("https://a", ca=ca)


def test_an_encrypted_key_is_an_error_and_its_password_is_not_asked_for() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encrypted = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hunter2"))
    certificate = server_certificate()[1]
    with pytest.raises(InvalidRequest, match="the client's certificate or key, cannot be read"):
        tls.context("https://10.0.0.1", client_cert=certificate, client_key=encrypted.decode())
