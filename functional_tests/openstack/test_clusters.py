# SPDX-License-Identifier: Apache-2.0
"""Clusters whose nodes are servers of the cloud, booted by the user data that Cluster API gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import openstack
import pytest
import urllib3
import yaml

from .. import sample_onboarding
from ..client import Body, Client
from ..cluster import Cluster
from ..cluster_api.clusters import CORE, OF_CONTROL_PLANE, conditions
from ..conftest import MakeVnf, Onboard
from ..credentials.receiver import Receiver
from ..families import BROUGHT
from ..objects import Place, deployment, make
from ..packages import Package
from ..sample_onboarding import Sample
from ..testbed.bed import Environment
from ..testbed.kubernetes import Kubernetes
from ..testbed.openstack import offer
from ..testbed.processes import until
from ..testbed.release import FORMER, NEWEST
from ..vnf import Vnf
from .clusters import (
    CLOUD_PROVIDER,
    OF_CLASS,
    PATIENCE,
    SAMPLE,
    belongings,
    declared,
    nodes,
    parameters,
    release,
    reported,
)
from .conftest import eventually
from .servers import machine_of

TENANT = offer.TENANT
PLACE = Place("edge")
WRONG, HUGE, AS_GOOD = "wrong", "huge", "as-good"
"""A Secret whose password is wrong, a flavor that no host has room for, and one that is as good as the usual one."""
pytestmark = [pytest.mark.usefixtures("secret"), pytest.mark.alone(*BROUGHT)]
_SERVICE = {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}
CNF = Package(
    {
        "web.yaml": deployment("web", replicas=2, image="bed.test/web:1"),
        "service.yaml": make("v1", "Service", "web", spec=_SERVICE),
        "crd.yaml": Place("cnf").crd("Gauge"),
        "gauge.yaml": Place("cnf").custom("Gauge", "main"),
    },
    {"web": "web"},
)


@pytest.fixture
def flavor(request: pytest.FixtureRequest, admin: openstack.connection.Connection) -> Iterator[str]:
    """The name of one more, of so much RAM in MiB."""
    name, ram = request.param
    made = admin.compute.create_flavor(name=name, ram=ram, vcpus=2, disk=10)
    yield name
    admin.compute.delete_flavor(made)


@pytest.fixture
def cloud_provider(tacker: Client) -> Iterator[Sample]:
    """The package of the cloud controller manager."""
    sample = sample_onboarding.onboard(tacker, [CLOUD_PROVIDER])[CLOUD_PROVIDER]
    yield sample
    tacker.delete_package(sample.package_id)


@pytest.mark.parametrize("flavor", [(AS_GOOD, 4096)], indirect=True)
def test_a_cluster_of_servers_becomes_a_vim_and_is_scaled_upgraded_healed_and_terminated(
    sample: Sample,
    cloud_provider: Sample,
    receiver: Receiver,
    tenant: openstack.connection.Connection,
    tacker: Client,
    make_vnf: MakeVnf,
    onboard: Onboard,
    kubernetes: Kubernetes,
    flavor: str,
    tmp_path: Path,
):
    oak = make_vnf(sample.vnfd_id)
    oak.patience = PATIENCE
    oak.instantiate(*sample.files, wait_timeout=PATIENCE, parameters=parameters("oak", WORKERS=2, **release(FORMER)))
    [kubeconfig] = receiver.kubeconfigs
    listed = partial(nodes, kubernetes, kubeconfig)
    assert listed() == reported(oak)
    assert set(listed().values()) == {FORMER.version} and len(listed()) == 3

    vim = eventually(lambda: _vim(tacker, oak), "the cluster is a VIM")
    there = {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}
    cloud_config = tmp_path / "cloud.conf"
    cloud_config.write_text(configuration(tenant))
    secret = ["secret", "generic", "cloud-config", "--namespace=kube-system", f"--from-file=cloud.conf={cloud_config}"]
    kubernetes.kubectl(f"--kubeconfig={kubeconfig}", "create", *secret)
    provider = make_vnf(cloud_provider.vnfd_id)
    provider.instantiate(*cloud_provider.files, vim=there, parameters={"CLUSTER_NAME": "oak"})
    cnf = make_vnf(onboard(CNF))
    cnf.instantiate("web.yaml", "service.yaml", "crd.yaml", "gauge.yaml", vim=there, namespace="default")
    cnf.scale_out("web")
    answers = partial(_answers, kubernetes, kubeconfig)
    assert until(answers, 60)

    oak.scale_out("workers")
    assert len(listed()) == 4 and listed() == reported(oak)
    chosen = oak.vnfcs("Workers")[0]["id"]
    oak.heal(chosen)
    assert len(listed()) == 4 and listed() == reported(oak) and chosen not in listed()

    given = {**release(NEWEST), "WORKER_FLAVOR": flavor}
    oak.change(sample.vnfd_id, *sample.files, wait_timeout=PATIENCE, parameters=given)
    assert set(listed().values()) == {NEWEST.version} and listed() == reported(oak)
    assert Counter(server.flavor.original_name for server in tenant.compute.servers()) == {"node": 1, flavor: 3}
    assert until(answers, 60)

    cnf.terminate()
    provider.terminate()
    oak.terminate()
    assert receiver.kubeconfigs == []
    assert until(lambda: not _vim(tacker, oak), 60), receiver.log
    assert belongings(tenant) == {}


@pytest.mark.parametrize("sample", [OF_CLASS], indirect=True)
def test_a_cluster_of_a_class_is_scaled_and_healed_and_its_control_planes_die(
    sample: Sample,
    receiver: Receiver,
    tenant: openstack.connection.Connection,
    make_vnf: MakeVnf,
    cluster: Cluster,
    kubernetes: Kubernetes,
):
    elm = make_vnf(sample.vnfd_id)
    elm.patience = PATIENCE
    elm.instantiate(*sample.files, wait_timeout=PATIENCE, parameters=parameters("elm", CONTROL_PLANES=3))
    [kubeconfig] = receiver.kubeconfigs
    listed = partial(nodes, kubernetes, kubeconfig)
    before = listed()
    assert len(before) == 4 and before == reported(elm)
    elm.scale_out("workers")
    assert len(listed()) == 5 and listed() == reported(elm)
    chosen = {vdu: elm.vnfcs(vdu)[0] for vdu in ("ControlPlane", "Workers")}
    elm.heal(*(vnfc["id"] for vnfc in chosen.values()))
    after = listed()
    assert len(after) == 5 and after == reported(elm)
    assert not after.keys() & {vnfc["metadata"]["node"] for vnfc in chosen.values()}
    elm.scale_in("workers")
    assert len(listed()) == 4 and listed() == reported(elm)

    last, second, first = elm.vnfcs("ControlPlane")
    machine_of(first).cut_off()
    eventually(lambda: ready(cluster) == 2, "Cluster API has noticed the first", PATIENCE)
    eventually(lambda: len(listed()) == 3, "the load balancer leaves it out")
    machine_of(second).cut_off()
    eventually(lambda: ready(cluster) < 2, "Cluster API has noticed the second", PATIENCE)
    operation = elm.begin_heal(last["id"])
    assert "more of them must be ready before any is replaced" in elm.failure(operation)["detail"]
    elm.give_up(operation)
    elm.terminate()
    assert belongings(tenant) == {}


@pytest.mark.parametrize("flavor", [(HUGE, 1 << 30)], indirect=True)
def test_what_the_cloud_refuses_is_in_the_first_line(
    sample: Sample,
    tenant: openstack.connection.Connection,
    make_vnf: MakeVnf,
    cluster: Cluster,
    place: Place,
    bed: Environment,
    flavor: str,
):
    clouds = yaml.safe_load(Path(bed["OS_CLIENT_CONFIG_FILE"]).read_text())
    clouds["clouds"][offer.TENANT]["auth"]["password"] = "a-wrong-password"
    refused = {
        "The Secret, which nobody has made": ({"CLOUD_SECRET": "missing"}, "Secret edge/missing"),
        "Credentials": ({"CLOUD_SECRET": WRONG}, "refuses the credentials (401)"),
        "Image": ({"IMAGE": "nowhere"}, "nowhere"),
        "Flavor": ({"CONTROL_PLANE_FLAVOR": flavor}, "No valid host was found"),
    }
    wrong = make("v1", "Secret", WRONG, place.name, stringData={"clouds.yaml": yaml.safe_dump(clouds)})
    with cluster.holding(wrong):
        begun = {}
        for number, (given, _) in enumerate(refused.values()):
            vnf = make_vnf(sample.vnfd_id)
            vnf.patience = PATIENCE
            given = parameters(f"refused-{number}", **given)
            begun[vnf] = vnf.begin_instantiate(*sample.files, wait_timeout=90, parameters=given)
        details = [vnf.failure(operation)["detail"] for vnf, operation in begun.items()]
        for detail, (_, expected) in zip(details, refused.values(), strict=True):
            first = detail.splitlines()[1]
            assert expected in first, detail
            assert "a-wrong-password" not in detail
        for vnf, operation in begun.items():
            vnf.roll_back(operation)
    assert belongings(tenant) == {}


def test_servers_that_the_policy_of_their_group_keeps_apart_are_refused_by_name(
    tenant: openstack.connection.Connection, make_vnf: MakeVnf, onboard: Onboard, tmp_path: Path
):
    """One host has room for one of the four. Nova says so before it selects a host, or when a server has lost it."""
    files = sample_onboarding.manifests(SAMPLE, tmp_path)
    apart = files["workers.yaml"].replace("${WORKER_FLAVOR}", "${WORKER_FLAVOR}\n      serverGroup: {filter: {name: apart}}")
    vdus = {"ControlPlane": "control-plane", "Workers": "workers"}
    package = Package({**files, "workers.yaml": apart}, vdus, parameters=declared(SAMPLE))
    group = tenant.compute.create_server_group(name="apart", policy="anti-affinity")
    fir = make_vnf(onboard(package))
    fir.patience = PATIENCE
    operation = fir.begin_instantiate(*package.files, wait_timeout=240, parameters=parameters("fir", WORKERS=4))
    detail = fir.failure(operation)["detail"]
    texts = ("No valid host was found", "Exhausted all hosts available")
    assert any(text in detail.splitlines()[1] for text in texts), detail
    fir.roll_back(operation)
    tenant.compute.delete_server_group(group)
    assert belongings(tenant) == {}


def ready(cluster: Cluster) -> int:
    """How many Machines of control planes are Ready."""
    found = cluster.all("Machine", PLACE.name, OF_CONTROL_PLANE, CORE)
    return sum(conditions(one).get("Ready") == "True" for one in found)


def configuration(tenant: openstack.connection.Connection) -> str:
    """The cloud.conf of the cloud controller manager."""
    given = tenant.config.get_auth_args()
    lines = {
        "[Global]": "",
        "auth-url": given["auth_url"],
        "username": given["username"],
        "password": given["password"],
        "tenant-name": given["project_name"],
        "domain-id": given["user_domain_id"],
        "region": tenant.config.get_region_name(),
        "[LoadBalancer]": "",
        "lb-provider": "haproxy",
        "floating-network-id": tenant.network.find_network(offer.EXTERNAL).id,
    }
    return "".join(f"{name} = {value}\n" if value else f"{name}\n" for name, value in lines.items())


def _answers(kubernetes: Kubernetes, kubeconfig: Path) -> bool:
    """Whether the load balancer of the CNF's Service does."""
    path = "jsonpath={.status.loadBalancer.ingress[0].ip}"
    address = kubernetes.kubectl(f"--kubeconfig={kubeconfig}", "get", "service", "web", f"--output={path}")
    try:
        return urllib3.request("GET", f"http://{address}", timeout=5, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def _vim(tacker: Client, vnf: Vnf) -> Body | None:
    return next((vim for vim in tacker.vims() if vim["name"].endswith(vnf.id)), None)
