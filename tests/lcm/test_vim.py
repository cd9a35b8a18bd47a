# SPDX-License-Identifier: Apache-2.0
"""vimConnectionInfo becomes an endpoint, or an error that names the field and not the value."""

from __future__ import annotations

import pytest

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint


def test_a_ca_that_is_no_pem_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match="ssl_ca_cert"):
        vim_endpoint({"endpoint": "https://a", "ssl_ca_cert": "/etc/ca.pem"}, {}, verify_without_ca=False)


def test_a_token_may_end_with_a_newline_and_is_in_no_error() -> None:
    assert vim_endpoint({"endpoint": "https://a"}, {"bearer_token": "abc\n"}).authorization == "Bearer abc"
    with pytest.raises(InvalidRequest, match="bearer_token") as raised:
        vim_endpoint({"endpoint": "https://a"}, {"bearer_token": "very\nsecret"})
    assert "secret" not in str(raised.value)
