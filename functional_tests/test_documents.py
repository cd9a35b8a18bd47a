"""What the documents tell people to do works as it is written there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from k8s_cr_driver import package

from .client import Body, Client
from .cluster import Cluster
from .conftest import MakeVnf

DOCUMENTS = Path(__file__).parent.parent / "doc" / "source"
VERSION = "tutorial.example.com/v1"


@pytest.fixture
def least_rights(cluster: Cluster, vim: Body) -> Iterator[Body]:
    """A VimConnectionInfo with the rights that the operator guide gives, and no others."""
    manifests = list(yaml.safe_load_all((DOCUMENTS / "operator" / "role.yaml").read_text()))
    with cluster.holding(*manifests):
        account = manifests[0]["metadata"]
        wanted = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
        )
        made = client.CoreV1Api(cluster.api).create_namespaced_service_account_token(
            account["name"], account["namespace"], wanted
        )
        yield {**vim, "accessInfo": {"bearer_token": made.to_dict()["status"]["token"]}}


@pytest.fixture
def tutorial(tacker: Client, tmp_path: Path) -> Iterator[str]:
    """The VNFD id of the tutorial's package."""
    info = tacker.onboard(package.build(DOCUMENTS / "tutorial" / "package", tmp_path / "crontab.csar"))
    yield info["vnfdId"]
    tacker.delete_package(info["id"])


def test_the_tutorial_needs_no_more_rights_than_the_operator_guide_gives(
    least_rights: Body, tutorial: str, make_vnf: MakeVnf, cluster: Cluster
):
    vnf = make_vnf(tutorial)
    given = {"NAME": "nightly", "SCHEDULE": "0 3 * * *"}
    vnf.wait(vnf.begin_instantiate("definition.yaml", "crontab.yaml", vim=least_rights, parameters=given))
    vnf.wait(vnf.begin_scale("SCALE_OUT", "jobs", 2))
    live = cluster.get("CronTab", "nightly", "default", VERSION)
    assert live is not None
    assert (live["spec"]["cronSpec"], live["spec"]["replicas"]) == ("0 3 * * *", 3)
    assert [vnfc["id"] for vnfc in vnf.vnfcs("Jobs")] == ["nightly-2", "nightly-1", "nightly-0"]
    cluster.delete("CronTab", "nightly", "default", VERSION)
    vnf.heal()
    vnf.change(tutorial, "definition.yaml", "crontab.yaml", parameters={"SCHEDULE": "0 4 * * *"})
    live = cluster.get("CronTab", "nightly", "default", VERSION)
    assert live is not None
    assert (live["spec"]["cronSpec"], live["spec"]["replicas"]) == ("0 4 * * *", 3)
    vnf.terminate()
    assert cluster.of(vnf.id) == []
