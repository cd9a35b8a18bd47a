# SPDX-License-Identifier: Apache-2.0
"""The record of an instance: each released form of it is read, and a newer one is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.common import exceptions as sol_ex

from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.vnf.additional_params import FILES
from tests.fake_api import FakeApi, faults
from tests.instance import CONDITIONS, config_map, crontab, crontab_crd, status
from tests.lcm.instance import Instance, instantiated
from tests.lcm.web import deployment


@pytest.fixture
def blue(cluster: FakeApi, tmp_path: Path) -> Instance:
    return instantiated(cluster, tmp_path, [deployment(2)])


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


VERSION_1 = {
    **{key: value for key, value in FIRST_FORM.items() if key not in ("force-conflicts", "adopt-existing")},
    "version": 1,
    "inventory": {**FIRST_FORM["inventory"], "uid": ""},  # type: ignore[dict-item]
}
"""As records of version 1 have it, but for the endpoint."""


@pytest.mark.parametrize(
    ("form", "mark"), [(FIRST_FORM, {"node": "n1"}), (VERSION_1, {"managed-by": "k8s-cr-driver"})], ids=["first", "version 1"]
)
def test_a_former_record_is_read_and_written_in_the_present_form(
    cluster: FakeApi, blue: Instance, form: dict[str, Any], mark: dict[str, str]
) -> None:
    info = blue.inst.instantiatedVnfInfo
    info.metadata["k8s_cr"] = {**form, "endpoint": cluster.url}
    for vnfc in info.vnfcResourceInfo:
        vnfc.metadata = mark
    stored = StoredInstance.read(blue.inst)
    assert (stored.is_pending, stored.endpoint, stored.options.wait_timeout) == (False, cluster.url, 60)
    assert {str(kind) for kind in stored.inventory_content.kinds} == {"ConfigMap", "Deployment.apps"}
    assert {key.name for key in stored.inventory_content.adopted} == {"theirs"}
    blue.scale("SCALE_OUT")
    assert own(blue)["version"] == 1 and len(info.vnfcResourceInfo) == 4
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


OPTIONAL = {"k8s-cr-driver/optional": "true"}


def shown(blue: Instance) -> list[str]:
    return list(blue.inst.instantiatedVnfInfo.metadata["k8s_cr"].get("optional-not-ready", []))


def test_record_of_the_instance_has_a_line_for_what_is_not_ready(cluster: FakeApi, tmp_path: Path) -> None:
    tab = crontab("may")
    tab["metadata"]["annotations"] = OPTIONAL
    blue = instantiated(cluster, tmp_path / "package", [deployment(), crontab_crd(**CONDITIONS), tab])
    [line] = shown(blue)
    assert line.startswith("CronTab.stable.example.com default/may: Waiting (NoStatus)")
    cluster.set_status("CronTab", "default", "may", status())
    blue.heal()
    assert not shown(blue)


def test_record_is_short_whatever_the_package_has(cluster: FakeApi, tmp_path: Path) -> None:
    tabs = [crontab(f"tab-{number}") for number in range(30)]
    for tab in tabs:
        tab["metadata"]["annotations"] = OPTIONAL
    blue = Instance(cluster, tmp_path / "package", [deployment(), crontab_crd(**CONDITIONS), *tabs])
    cluster.fail(faults.status(422, "Invalid", "x" * 10_000), path="/crontabs/tab-7$", times=99, method="PATCH")
    blue.instantiate()
    assert len(shown(blue)) == 20
    assert all(len(line) <= 500 for line in shown(blue))


def test_change_with_a_refused_optional_object_completes(cluster: FakeApi, tmp_path: Path) -> None:
    first = {**config_map("may", x="1"), "metadata": {"name": "may", "annotations": OPTIONAL}}
    blue = instantiated(cluster, tmp_path / "old", [deployment(1), first])
    cluster.fail(faults.status(422, "Invalid", "data is too colourful"), path="/configmaps/may$", method="PATCH", times=99)
    blue.change(blue.package([deployment(2), {**first, "data": {"x": "2"}}]))
    [line] = shown(blue)
    assert "data is too colourful" in line
    assert cluster.get("ConfigMap", "default", "may")["data"] == {"x": "1"}
