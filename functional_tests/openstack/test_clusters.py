# SPDX-License-Identifier: Apache-2.0
"""Clusters whose nodes are servers of the cloud, booted by the user data that Cluster API gives them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import openstack
import pytest
import yaml

from ..client import Body, Client
from ..cluster import Cluster
from ..conftest import MakeVnf, Onboard
from ..credentials.receiver import Receiver
from ..objects import Place, deployment, make
from ..packages import Package
from ..sample_onboarding import Sample
from ..testbed.bed import Environment
from ..testbed.kubernetes import Kubernetes
from ..testbed.openstack import offer
from ..testbed.processes import until
from ..testbed.release import FORMER, NEWEST
from ..vnf import Vnf
from .clusters import OF_CLASS, PATIENCE, belongings, nodes, parameters, release, reported
from .conftest import eventually

PLACE = Place("edge")
WRONG, HUGE = "wrong", "huge"
"""A Secret whose password is wrong, and a flavor that no host has room for."""
pytestmark = pytest.mark.usefixtures("secret")
CNF = Package(
    {
        "web.yaml": deployment("web", replicas=2, image="bed.test/web:1"),
        "crd.yaml": Place("cnf").crd("Gauge"),
        "gauge.yaml": Place("cnf").custom("Gauge", "main"),
    },
    {"web": "web"},
)


@pytest.fixture
def huge(admin: openstack.connection.Connection) -> Iterator[None]:
    flavor = admin.compute.create_flavor(name=HUGE, ram=1 << 30, vcpus=1, disk=1)
    yield
    admin.compute.delete_flavor(flavor)


def test_a_cluster_of_servers_becomes_a_vim_and_is_scaled_upgraded_healed_and_terminated(
    sample: Sample,
    receiver: Receiver,
    tenant: openstack.connection.Connection,
    tacker: Client,
    make_vnf: MakeVnf,
    onboard: Onboard,
    kubernetes: Kubernetes,
):
    oak = make_vnf(sample.vnfd_id)
    oak.patience = PATIENCE
    oak.instantiate(*sample.files, wait_timeout=PATIENCE, parameters=parameters("oak", WORKERS=2, **release(FORMER)))
    [kubeconfig] = receiver.kubeconfigs
    listed = partial(nodes, kubernetes, kubeconfig)
    assert listed() == reported(oak)
    assert set(listed().values()) == {FORMER.version} and len(listed()) == 3

    vim = eventually(lambda: _vim(tacker, oak), "the cluster is a VIM")
    cnf = make_vnf(onboard(CNF))
    there = {"vimId": vim["id"], "vimType": "ETSINFV.KUBERNETES.V_1"}
    cnf.instantiate("web.yaml", "crd.yaml", "gauge.yaml", vim=there, namespace="default")
    cnf.scale_out("web")

    oak.scale_out("workers")
    assert len(listed()) == 4 and listed() == reported(oak)
    chosen = oak.vnfcs("Workers")[0]["id"]
    oak.heal(chosen)
    assert len(listed()) == 4 and listed() == reported(oak) and chosen not in listed()

    oak.change(sample.vnfd_id, *sample.files, wait_timeout=PATIENCE, parameters=release(NEWEST))
    assert set(listed().values()) == {NEWEST.version} and listed() == reported(oak)

    cnf.terminate()
    oak.terminate()
    assert receiver.kubeconfigs == []
    assert until(lambda: not _vim(tacker, oak), 60), receiver.log
    assert belongings(tenant) == {}


@pytest.mark.parametrize("sample", [OF_CLASS], indirect=True)
def test_a_cluster_of_a_class_loses_one_of_three_control_planes_and_is_healed(
    sample: Sample,
    receiver: Receiver,
    tenant: openstack.connection.Connection,
    make_vnf: MakeVnf,
    kubernetes: Kubernetes,
):
    elm = make_vnf(sample.vnfd_id)
    elm.patience = PATIENCE
    elm.instantiate(*sample.files, wait_timeout=PATIENCE, parameters=parameters("elm", CONTROL_PLANES=3))
    [kubeconfig] = receiver.kubeconfigs
    before = nodes(kubernetes, kubeconfig)
    assert len(before) == 4 and before == reported(elm)
    chosen = elm.vnfcs("ControlPlane")[0]["id"]
    elm.heal(chosen)
    after = nodes(kubernetes, kubeconfig)
    assert len(after) == 4 and after == reported(elm) and len(after.keys() - before.keys()) == 1
    elm.terminate()
    assert belongings(tenant) == {}


@pytest.mark.usefixtures("huge")
def test_what_the_cloud_refuses_is_in_the_first_line(
    sample: Sample,
    tenant: openstack.connection.Connection,
    make_vnf: MakeVnf,
    cluster: Cluster,
    place: Place,
    bed: Environment,
):
    clouds = yaml.safe_load(Path(bed["OS_CLIENT_CONFIG_FILE"]).read_text())
    clouds["clouds"][offer.TENANT]["auth"]["password"] = "a-wrong-password"
    refused = {
        "The Secret, which nobody has made": ({"CLOUD_SECRET": "missing"}, "Secret edge/missing"),
        "Credentials": ({"CLOUD_SECRET": WRONG}, "refuses the credentials (401)"),
        "Image": ({"IMAGE": "nowhere"}, "nowhere"),
        "Flavor": ({"CONTROL_PLANE_FLAVOR": HUGE}, "No valid host was found"),
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


def _vim(tacker: Client, vnf: Vnf) -> Body | None:
    return next((vim for vim in tacker.vims() if vim["name"].endswith(vnf.id)), None)
