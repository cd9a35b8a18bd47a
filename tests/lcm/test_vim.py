# SPDX-License-Identifier: Apache-2.0
"""vimConnectionInfo becomes an endpoint, or an error that names the field and not the value."""

from __future__ import annotations

import pytest

from k8s_cr_driver.errors import ApiError, InvalidRequest
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from k8s_cr_driver.lcm.vim import with_remedy


def test_a_ca_that_is_no_pem_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match="ssl_ca_cert"):
        vim_endpoint({"endpoint": "https://a", "ssl_ca_cert": "/etc/ca.pem"}, {}, verify_without_ca=False)


def test_a_token_may_end_with_a_newline_and_is_in_no_error() -> None:
    assert vim_endpoint({"endpoint": "https://a"}, {"bearer_token": "abc\n"}).authorization == "Bearer abc"
    with pytest.raises(InvalidRequest, match="bearer_token") as raised:
        vim_endpoint({"endpoint": "https://a"}, {"bearer_token": "very\nsecret"})
    assert "secret" not in str(raised.value)


def test_a_request_without_credentials_is_named() -> None:
    said = 'forbidden: User "system:anonymous" cannot get path "/apis"'
    assert with_remedy(ApiError("GET /apis", 403, "Forbidden", said)).endswith(
        "The request had no credentials. Check bearer_token, or username and password, in vimConnectionInfo.accessInfo."
    )
    assert with_remedy(ApiError("GET /apis", 403, "Forbidden", "forbidden")) == "GET /apis: 403 Forbidden: forbidden"
