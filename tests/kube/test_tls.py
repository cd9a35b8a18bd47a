# SPDX-License-Identifier: Apache-2.0
"""PEM texts as users give them."""

import time

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube import tls


@pytest.mark.parametrize("part", ["-----BEGIN A-----", "-----BEGIN ", "-----BEGIN A-----x-----END ", "-", "A "])
def test_hostile_pems_take_linear_time(part: str) -> None:
    began = time.process_time()
    tls.pem(part * (1_000_000 // len(part)))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("ca", ["é", "\0", "-----BEGIN CERTIFICATE-----\né\n-----END CERTIFICATE-----"])
def test_an_odd_ca_is_an_error_of_the_request(ca: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        tls.context("https://a", ca=ca)
