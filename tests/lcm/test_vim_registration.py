# SPDX-License-Identifier: Apache-2.0
"""What `k8s-cr receive --register-vim` sends passes the checks of Tacker's own API, and gives a VIM that this driver reads."""

from __future__ import annotations

import copy

import pytest
import webob.exc
from tacker import context
from tacker.api.v1.base import Controller
from tacker.extensions.nfvo import RESOURCE_ATTRIBUTE_MAP
from tacker.sol_refactored import objects
from tacker.sol_refactored.common.vim_utils import vim_to_conn_info

from k8s_cr_driver.credentials.tacker import Vim
from k8s_cr_driver.lcm.vim import endpoint

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
    found = endpoint(info.interfaceInfo, info.accessInfo)
    assert (found.url, found.authorization) == (VIM.url, f"Bearer {VIM.token}")
