"""What the documents tell people to do works as it is written there."""

import re
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
def allowed(cluster: Cluster, vim: Body, account: Object, *rights: Object) -> Iterator[Body]:
    """A VimConnectionInfo of an account with these rights and no others."""
    with cluster.holding(account, *rights):
        wanted = client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600)
        )
        made = client.CoreV1Api(cluster.api).create_namespaced_service_account_token(
            account["metadata"]["name"], account["metadata"]["namespace"], wanted
        )
        yield {**vim, "accessInfo": {"bearer_token": made.to_dict()["status"]["token"]}}


@pytest.fixture
def rights_of_the_readme(cluster: Cluster, vim: Body) -> Iterator[Body]:
    [text] = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    name = "stranger"
    role = {**yaml.safe_load(text), "metadata": {"name": name}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    binding = {
        "apiVersion": role["apiVersion"],
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": name},
        "subjects": [{"kind": "ServiceAccount", **account["metadata"]}],
    }
    with allowed(cluster, vim, account, role, binding) as info:
        yield info


@pytest.fixture
def rights_of_the_operator_guide(cluster: Cluster, vim: Body) -> Iterator[Body]:
    with allowed(cluster, vim, *yaml.safe_load_all((DOCUMENTS / "operator" / "role.yaml").read_text())) as info:
        yield info


@pytest.fixture
def onboarded(tacker: Client, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The VNFD id of the package in the folder that the test names."""
    info = tacker.onboard(csar.build(request.param, tmp_path / "crontab.csar"))
    yield info["vnfdId"]
    tacker.delete_package(info["id"])


@pytest.mark.parametrize("onboarded", [ROOT / "sample_packages" / "crontab"], indirect=True, ids=["crontab"])
def test_the_smallest_package_needs_no_more_rights_than_the_readme_gives(
    rights_of_the_readme: Body, onboarded: str, make_vnf: MakeVnf, cluster: Cluster
):
    vnf = make_vnf(onboarded)
    vnf.wait(vnf.begin_instantiate("crontab.yaml", vim=rights_of_the_readme))
    vnf.heal()
    assert len(cluster.of(vnf.id)) == 2
    vnf.terminate()
    assert cluster.of(vnf.id) == []


@pytest.mark.parametrize("onboarded", [DOCUMENTS / "tutorial" / "package"], indirect=True, ids=["tutorial"])
def test_the_tutorial_needs_no_more_rights_than_the_operator_guide_gives(
    rights_of_the_operator_guide: Body, onboarded: str, make_vnf: MakeVnf, cluster: Cluster
):
    vnf = make_vnf(onboarded)
    given = {"NAME": "nightly", "SCHEDULE": "0 3 * * *"}
    vnf.wait(vnf.begin_instantiate("definition.yaml", "crontab.yaml", vim=rights_of_the_operator_guide, parameters=given))
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
