# SPDX-License-Identifier: Apache-2.0
"""What the documents tell people to do works as it is written there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_cr_driver.package import csar

from ..client import Body, Client
from ..cluster import Cluster
from ..conftest import MakeVnf, OnboardSamples

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "doc" / "source"
VERSION = "tutorial.example.com/v1"


@pytest.fixture
def tutorial(tacker: Client, tmp_path: Path) -> Iterator[str]:
    """The VNFD id of the tutorial's package."""
    info = tacker.onboard(csar.write(DOCUMENTS / "tutorial" / "package", tmp_path / "crontab.csar"))
    yield info["vnfdId"]
    tacker.delete_package(info["id"])


@pytest.mark.parametrize("vim_with", ["cluster_role.yaml"], indirect=True)
def test_the_cluster_role_of_the_operator_guide_suffices_for_the_smallest_package(
    vim_with: Body, onboard_samples: OnboardSamples, make_vnf: MakeVnf, cluster: Cluster
):
    [crontab] = onboard_samples("crontab")
    vnf = make_vnf(crontab.vnfd_id)
    vnf.wait(vnf.begin_instantiate(*crontab.files, vim=vim_with))
    vnf.heal()
    assert len(cluster.of(vnf.id)) == 2
    vnf.terminate()
    assert cluster.of(vnf.id) == []


@pytest.mark.parametrize("vim_with", ["role.yaml"], indirect=True)
def test_the_role_of_the_operator_guide_suffices_for_the_tutorial(
    vim_with: Body, tutorial: str, make_vnf: MakeVnf, cluster: Cluster
):
    vnf = make_vnf(tutorial)
    given = {"NAME": "nightly", "SCHEDULE": "0 3 * * *"}
    vnf.wait(vnf.begin_instantiate("definition.yaml", "crontab.yaml", vim=vim_with, parameters=given))
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
