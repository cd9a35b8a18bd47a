# SPDX-License-Identifier: Apache-2.0
"""The record of an instance: each released form of it is read, and a newer one is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.vnf.additional_params import FILES
from tests.fake_api import FakeApi
from tests.lcm.instance import Instance
from tests.lcm.web import deployment


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    blue = Instance(cluster, tmp_path, [deployment(2)])
    blue.instantiate()
    return blue


def own(blue: Instance) -> dict[str, Any]:
    """What the driver keeps in the record beside Tacker's own keys."""
    kept: dict[str, Any] = blue.inst.instantiatedVnfInfo.metadata["k8s_cr"]
    return kept


FIRST_FORM = {
    "lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"],
    "namespace": "default",
    "parameters": {},
    "wait-timeout": 60,
    "force-conflicts": False,
    "adopt-existing": False,
    "made-by-tacker": False,
    "inventory": {
        "namespace": "default",
        "kinds": ["ConfigMap", "Deployment.apps"],
        "namespaces": ["default"],
        "adopted": [["", "ConfigMap", "default", "theirs"]],
    },
}
"""As records without a version have it, but for the endpoint."""


def test_a_record_of_the_first_form_is_read_and_written_in_the_present_one(cluster: FakeApi, blue: Instance) -> None:
    info = blue.inst.instantiatedVnfInfo
    info.metadata["k8s_cr"] = {**FIRST_FORM, "endpoint": cluster.url}
    for vnfc in info.vnfcResourceInfo:
        vnfc.metadata = {"node": "n1"}
    stored = StoredInstance.read(blue.inst)
    assert not stored.is_pending
    assert {str(kind) for kind in stored.inventory_content.kinds} == {"ConfigMap", "Deployment.apps"}
    assert {key.name for key in stored.inventory_content.adopted} == {"theirs"}
    blue.scale("SCALE_OUT")
    assert own(blue)["version"] == 1
    assert {vnfc.metadata["managed-by"] for vnfc in info.vnfcResourceInfo} == {"k8s-cr-driver"}
    blue.terminate()
    assert cluster.names("Deployment") == []


@pytest.mark.parametrize("verb", ["terminate", "heal"])
def test_a_newer_record_is_refused_before_any_request(cluster: FakeApi, blue: Instance, verb: str) -> None:
    own(blue)["version"] = 3
    cluster.requests.clear()
    with pytest.raises(sol_ex.SolException, match="has version 3: a newer k8s-cr-driver has written it"):
        getattr(blue, verb)()
    assert len(cluster.requests) == 0


def test_a_failed_verb_leaves_the_record_as_it_was(cluster: FakeApi, blue: Instance) -> None:
    before = blue.inst.to_dict()
    with pytest.raises(sol_ex.SolException, match="cannot lose"):
        blue.scale("SCALE_IN", 3)
    assert blue.inst.to_dict() == before


def test_the_vnfd_is_that_of_the_objects_as_far_as_it_is_known(blue: Instance) -> None:
    assert StoredInstance.read(blue.inst).vnfd_id == own(blue)["vnfd-id"] == "vnfd"
    [first, *_] = blue.inst.instantiatedVnfInfo.vnfcResourceInfo
    first.metadata = {}  # as the in-tree driver stores it
    assert StoredInstance.read(blue.inst).vnfd_id == ""
    first.metadata = {"managed-by": "k8s-cr-driver"}
    files, blue.inst.instantiatedVnfInfo.metadata[FILES] = own(blue)[FILES], ["Files/kubernetes/other.yaml"]
    assert StoredInstance.read(blue.inst).vnfd_id == "", "container_update_mgmt_v2 has named other files"
    blue.inst.instantiatedVnfInfo.metadata[FILES] = files
    del own(blue)["vnfd-id"]
    assert StoredInstance.read(blue.inst).vnfd_id == ""
    blue.vnfd.vnfd_id = "other"
    blue.roll_back_change()
    assert own(blue)["vnfd-id"] == "other"


VERSION_1 = {
    "version": 1,
    "lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"],
    "namespace": "default",
    "parameters": {},
    "wait-timeout": 60,
    "made-by-tacker": False,
    "inventory": {**FIRST_FORM["inventory"], "uid": ""},  # type: ignore[dict-item]
}
"""As records of version 1 have it, but for the endpoint."""


def test_a_record_of_version_1_is_read(cluster: FakeApi, blue: Instance) -> None:
    info = blue.inst.instantiatedVnfInfo
    info.metadata["k8s_cr"] = {**VERSION_1, "endpoint": cluster.url}
    for vnfc in info.vnfcResourceInfo:
        vnfc.metadata = {"managed-by": "k8s-cr-driver"}
    stored = StoredInstance.read(blue.inst)
    assert (stored.is_pending, stored.endpoint, stored.options.wait_timeout) == (False, cluster.url, 60)
    assert {str(kind) for kind in stored.inventory_content.kinds} == {"ConfigMap", "Deployment.apps"}
    assert {key.name for key in stored.inventory_content.adopted} == {"theirs"}
    blue.scale("SCALE_OUT")
    assert len(info.vnfcResourceInfo) == 4
