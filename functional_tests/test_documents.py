"""What the documents tell people to do works as it is written there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from k8s_cr_driver.package import csar

from .client import Body, Client
from .cluster import Cluster
from .conftest import MakeVnf
from .objects import Object

ROOT = Path(__file__).parent.parent
DOCUMENTS = ROOT / "doc" / "source"
VERSION = "tutorial.example.com/v1"


@contextmanager
def allowed(cluster: Cluster, vim: Body, account: Object, *roles: Object) -> Iterator[Body]:
    """A VimConnectionInfo of an account with these roles and no others."""
    with cluster.holding(account, *roles):
        wanted = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
        )
        made = client.CoreV1Api(cluster.api).create_namespaced_service_account_token(
            account["metadata"]["name"], account["metadata"]["namespace"], wanted
        )
        yield {**vim, "accessInfo": {"bearer_token": made.to_dict()["status"]["token"]}}


@pytest.fixture
def vim_with(cluster: Cluster, vim: Body, request: pytest.FixtureRequest) -> Iterator[Body]:
    """The VIM with the account and the permissions of a file of the operator guide."""
    with allowed(cluster, vim, *yaml.safe_load_all((DOCUMENTS / "operator" / request.param).read_text())) as info:
        yield info


@pytest.fixture
def onboarded(tacker: Client, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The VNFD id of the package in the folder that the test names."""
    info = tacker.onboard(csar.build(request.param, tmp_path / "crontab.csar"))
    yield info["vnfdId"]
    tacker.delete_package(info["id"])


@pytest.mark.parametrize("onboarded", [ROOT / "sample_packages" / "crontab"], indirect=True, ids=["crontab"])
@pytest.mark.parametrize("vim_with", ["cluster_role.yaml"], indirect=True)
def test_the_cluster_role_of_the_operator_guide_suffices_for_the_smallest_package(
    vim_with: Body, onboarded: str, make_vnf: MakeVnf, cluster: Cluster
):
    vnf = make_vnf(onboarded)
    vnf.wait(vnf.begin_instantiate("crontab.yaml", vim=vim_with))
    vnf.heal()
    assert len(cluster.of(vnf.id)) == 2
    vnf.terminate()
    assert cluster.of(vnf.id) == []


@pytest.mark.parametrize("onboarded", [DOCUMENTS / "tutorial" / "package"], indirect=True, ids=["tutorial"])
@pytest.mark.parametrize("vim_with", ["role.yaml"], indirect=True)
def test_the_role_of_the_operator_guide_suffices_for_the_tutorial(
    vim_with: Body, onboarded: str, make_vnf: MakeVnf, cluster: Cluster
):
    vnf = make_vnf(onboarded)
    given = {"NAME": "nightly", "SCHEDULE": "0 3 * * *"}
    vnf.wait(vnf.begin_instantiate("definition.yaml", "crontab.yaml", vim=vim_with, parameters=given))
    vnf.wait(vnf.begin_scale("SCALE_OUT", "jobs", 2))
    live = cluster.get("CronTab", "nightly", "default", VERSION)
    assert live is not None
    assert (live["spec"]["cronSpec"], live["spec"]["replicas"]) == ("0 3 * * *", 3)
    assert [vnfc["id"] for vnfc in vnf.vnfcs("Jobs")] == ["nightly-2", "nightly-1", "nightly-0"]
    cluster.delete("CronTab", "nightly", "default", VERSION)
    vnf.heal()
    vnf.change(onboarded, "definition.yaml", "crontab.yaml", parameters={"SCHEDULE": "0 4 * * *"})
    live = cluster.get("CronTab", "nightly", "default", VERSION)
    assert live is not None
    assert (live["spec"]["cronSpec"], live["spec"]["replicas"]) == ("0 4 * * *", 3)
    vnf.terminate()
    assert cluster.of(vnf.id) == []
