# SPDX-License-Identifier: Apache-2.0
"""What vimConnectionInfo says of a cluster: how to log in, how to trust it, and that it may be gone for good."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import urllib3

from k8s_cr_driver.kube.endpoint import Endpoint
from tests.fake_api.tls import server_context
from tests.oidc_provider import OidcProvider

from ..client import Body, Client
from ..cluster import Cluster
from ..conftest import Logged
from ..objects import Place, config_map, deployment
from ..packages import Package
from ..proxy import Proxy, Upstream
from ..testbed.bed import Environment
from ..testbed.processes import until
from ..vim import NAMESPACE, connection_info
from ..vnf import Vnf, purge

PLACE = Place("vims")

PACKAGE = Package({"all.yaml": [deployment("web"), config_map("config", a="1")]}, vdus={"Web": "web"})
FORGOTTEN_WITHIN = 60
"""Seconds for which an API server may remember that it has accepted a token."""
MADE = ["ConfigMap vims/config", "Deployment vims/web"]


def test_tokens_of_an_openid_connect_provider_and_authorities_on_one_line(vnf: Vnf, vim: Body, cluster: Cluster):
    """The provider's tokens are such as the API server accepts: those of a service account."""
    token = vim["accessInfo"]["bearer_token"]
    with OidcProvider(set(), tls=True) as provider:
        provider.answers = [(200, {"id_token": token})] * 20
        authorities = (vim["interfaceInfo"]["ssl_ca_cert"] + provider.ca_cert).replace("\n", " ")
        interface = {**vim["interfaceInfo"], "ssl_ca_cert": authorities}
        vnf.instantiate("all.yaml", vim={**vim, "interfaceInfo": interface, "accessInfo": provider.access()})
        vnf.scale_out("Web")
        assert len(vnf.vnfcs("Web")) == 2
        vnf.terminate()
    assert cluster.of(vnf.id) == []
    assert {asked["username"] for asked in provider.asked} == {"operator"}


def test_a_cluster_that_is_gone_is_abandoned_and_purged_when_it_is_back(
    vnf: Vnf, vim: Body, endpoint: Endpoint, cluster: Cluster, logged: Logged, bed: Environment
):
    context, ca = server_context()
    with Proxy(Upstream(endpoint.url, endpoint.ca), context) as proxy:
        vnf.instantiate("all.yaml", vim={**vim, "interfaceInfo": {"endpoint": proxy.url, "ssl_ca_cert": ca}})
    problem = vnf.failure(refused := vnf.begin_terminate(wait_timeout=3))
    assert f"cannot connect to {proxy.url}" in problem["detail"]
    vnf.give_up(refused)
    vnf.terminate(abandon=True, wait_timeout=3)
    assert vnf.shown()["instantiationState"] == "NOT_INSTANTIATED"
    assert cluster.of(vnf.id) == MADE
    assert until(lambda: logged(f"VNF instance {vnf.id} is abandoned"), 10)

    purge(vnf.id, bed)
    assert cluster.leftovers([vnf.id]) == []


class Account:
    """A service account of its own, whose tokens expire with it."""

    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self._cluster, self._name = cluster, f"expiring-{uuid4().hex[:8]}"
        self.vim = connection_info(kubeconfig, self._name)

    def end(self) -> None:
        """Its token is not accepted any more."""
        self._cluster.delete("ServiceAccount", self._name, NAMESPACE)
        role = "rbac.authorization.k8s.io/v1"
        self._cluster.delete("ClusterRoleBinding", self._name, api_version=role)
        assert until(lambda: _status(self.vim) == 401, FORGOTTEN_WITHIN)


def _status(vim: Body) -> int:
    headers = {"Authorization": f"Bearer {vim['accessInfo']['bearer_token']}"}
    with urllib3.PoolManager(ca_cert_data=vim["interfaceInfo"]["ssl_ca_cert"]) as pool:
        return pool.request("GET", f"{vim['interfaceInfo']['endpoint']}/api/v1/namespaces", headers=headers).status


@pytest.fixture
def account(cluster: Cluster, bed: Environment) -> Account:
    return Account(cluster, Path(bed["KUBECONFIG"]))


@pytest.fixture
def registered(tacker: Client, account: Account) -> Iterator[str]:
    made = tacker.register_vim(f"expiring-{uuid4().hex[:8]}", account.vim)
    yield made
    tacker.delete_vim(made)


def test_an_update_of_the_registered_vim_holds_for_a_retry(
    vnf: Vnf, vim: Body, cluster: Cluster, tacker: Client, account: Account, registered: str
):
    vnf.instantiate("all.yaml", vim={**account.vim, "vimId": registered})
    account.end()
    operation = vnf.begin_scale("SCALE_OUT", "Web")
    assert "does not accept the credentials (401)" in vnf.failure(operation)["detail"]
    tacker.update_vim(registered, **vim["accessInfo"], ssl_ca_cert=vim["interfaceInfo"]["ssl_ca_cert"])
    vnf.retry(operation)
    assert len(vnf.vnfcs("Web")) == 2
    vnf.terminate()
    assert cluster.of(vnf.id) == []


def test_credentials_of_an_instance_are_modified_after_its_operation_was_given_up(
    vnf: Vnf, vim: Body, cluster: Cluster, tacker: Client, account: Account
):
    vnf.instantiate("all.yaml", vim=account.vim)
    account.end()
    operation = vnf.begin_scale("SCALE_OUT", "Web")
    assert "does not accept the credentials (401)" in vnf.failure(operation)["detail"]
    vnf.give_up(operation)
    renewed = {"accessInfo": vim["accessInfo"]}
    tacker.wait(tacker.modify(vnf.id, vimConnectionInfo={"vim1": {"vimType": vim["vimType"], **renewed}}))
    vnf.scale_out("Web")
    vnf.terminate()
    assert cluster.of(vnf.id) == []
