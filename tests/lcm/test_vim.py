# SPDX-License-Identifier: Apache-2.0
"""vimConnectionInfo becomes an endpoint, or an error that names the field and not the value."""

from __future__ import annotations

import copy
import gc
import ssl

import pytest
import webob.exc
from tacker import context
from tacker.api.v1.base import Controller
from tacker.extensions.nfvo import RESOURCE_ATTRIBUTE_MAP
from tacker.sol_refactored import objects
from tacker.sol_refactored.common.vim_utils import vim_to_conn_info

from k8s_cr_driver.credentials.tacker import Vim
from k8s_cr_driver.errors import ApiError, ConnectionFailed, InvalidRequest
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm.vim import endpoint as vim_endpoint
from k8s_cr_driver.lcm.vim import with_remedy
from tests.fake_api import FakeApi


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


def test_a_certificate_that_is_not_accepted_leaves_no_socket_open() -> None:
    """With eventlet, as in the conductor of Tacker 15, this is the driver's own work."""
    gc.collect()
    gc.disable()
    try:
        with FakeApi(tls=True) as api, pytest.raises(ConnectionFailed, match="was not accepted"):
            Connection(Endpoint(api.url)).request("GET", "/api")
        left = [one for one in gc.get_objects() if isinstance(one, ssl.SSLSocket) and not one.server_side and one.fileno() >= 0]
    finally:
        gc.enable()
    assert left == []


objects.register_all()
VIM = Vim("red-default-1", "Workload cluster red", "https://10.0.0.1:6443", "", "token-of-tacker-vim")


def checked(body: object, *, is_create: bool) -> object:
    attributes = copy.deepcopy(RESOURCE_ATTRIBUTE_MAP["vims"])
    return Controller.prepare_request_body(context.get_admin_context(), body, is_create, "vim", attributes)


def test_tacker_takes_the_bodies_of_a_registration_and_of_a_change() -> None:
    body = {"vim": {**VIM.body()["vim"], "tenant_id": "1"}}
    assert checked(body, is_create=True)
    assert checked(VIM.changes(), is_create=False)
    with pytest.raises(webob.exc.HTTPBadRequest, match="read-only attribute auth_url"):
        checked({"vim": {"auth_url": VIM.url}}, is_create=False)


def test_the_driver_reads_the_vim_as_tacker_gives_it_to_an_instance() -> None:
    body = VIM.body()["vim"]
    auth = {**body["auth_cred"], "auth_url": body["auth_url"], "username": "None", "password": None, "ssl_ca_cert": "None"}
    info = vim_to_conn_info({"vim_id": "1", "vim_type": body["type"], "vim_auth": auth})
    found = vim_endpoint(info.interfaceInfo, info.accessInfo)
    assert (found.url, found.authorization) == (VIM.url, f"Bearer {VIM.token}")
