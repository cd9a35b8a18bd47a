# SPDX-License-Identifier: Apache-2.0
"""The new cluster as a VIM, on a cluster that issues tokens."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.endpoint_rules import EndpointRules
from k8s_cr_driver.node_clusters import vim
from k8s_cr_driver.node_clusters.inventory import Endpoint
from tests.credentials.clusters import kubeconfig_of
from tests.credentials.messages import issue
from tests.fake_api import FakeApi

LOCAL = EndpointRules(("127.0.0.0/8",))
OPENSTACK = {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}
OWN = "token-of-the-account"


def where(api: FakeApi, port: int = 0) -> Endpoint:
    """Its virtual IP is in a network of the project, and a floating IP leads there."""
    return Endpoint("10.0.0.100", "127.0.0.1", port or int(urlsplit(api.url).port or 0))


def test_the_url_is_where_the_conductor_reaches_it_with_its_ca_and_an_account_of_its_own(tls_api: FakeApi) -> None:
    issue(tls_api, OWN)
    entry = vim.of_cluster(kubeconfig_of(tls_api, "token-of-the-admin"), where(tls_api), LOCAL)
    assert entry["interfaceInfo"]["endpoint"] == tls_api.url
    assert "BEGIN CERTIFICATE" in entry["interfaceInfo"]["ssl_ca_cert"]
    assert entry["accessInfo"] == {"bearer_token": OWN}, "not the administrator's"
    [subject] = tls_api.get("ClusterRoleBinding", None, "tacker-vim")["subjects"]
    assert (subject["namespace"], subject["name"]) == ("tacker-vim", "tacker-vim"), "and no account that all Pods have"


def test_another_cluster_at_that_address_gets_no_account(tls_api: FakeApi) -> None:
    with FakeApi(tls=True) as other, pytest.raises(DriverError, match=r"certificate .* was not accepted"):
        vim.of_cluster(kubeconfig_of(tls_api, "token"), where(other), LOCAL)
    assert other.names("ServiceAccount", "tacker-vim") == []


def test_the_entry_is_the_last_and_keeps_its_id() -> None:
    """Tacker takes the first one for its own work."""
    instance = {"id": "4a1f", "vimConnectionInfo": {"vim1": OPENSTACK}}
    vim.add(instance, "a-name-before-vim1", {"accessInfo": {"bearer_token": "first"}})
    [openstack, own] = instance["vimConnectionInfo"].items()
    assert openstack == ("vim1", OPENSTACK)
    vim.add(instance, "a-name-before-vim1", {"accessInfo": {"bearer_token": "second"}})
    [_, again] = instance["vimConnectionInfo"].items()
    assert again == (own[0], {**own[1], "accessInfo": {"bearer_token": "second"}})
    vim.remove(instance, "a-name-before-vim1")
    vim.remove(instance, "a-name-before-vim1")
    assert instance["vimConnectionInfo"] == {"vim1": OPENSTACK}
