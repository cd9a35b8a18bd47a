# SPDX-License-Identifier: Apache-2.0
"""What vimConnectionInfo says of a cluster: how to log in, how to trust it, and that it may be gone for good."""

from k8s_cr_driver.kube.endpoint import Endpoint
from tests.fake_api.tls import server_context
from tests.oidc_provider import OidcProvider

from ..client import Body
from ..cluster import Cluster
from ..conftest import Logged
from ..objects import Place, config_map, deployment
from ..packages import Package
from ..proxy import Proxy, Upstream
from ..testbed.bed import Environment
from ..testbed.processes import until
from ..vnf import Vnf, purge

PLACE = Place("vims")

PACKAGE = Package({"all.yaml": [deployment("web"), config_map("config", a="1")]}, vdus={"Web": "web"})
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
