# SPDX-License-Identifier: Apache-2.0
"""Who reads the VNF instance sees which optional objects an operation has left not ready, and why."""

from __future__ import annotations

from pathlib import Path

from tests.fake_api import FakeApi, faults
from tests.instance import CONDITIONS, config_map, crontab, crontab_crd, status
from tests.lcm.instance import Instance, make_vnfd
from tests.lcm.web import deployment

OPTIONAL = {"k8s-cr-driver/optional": "true"}


def shown(blue: Instance) -> list[str]:
    return list(blue.inst.instantiatedVnfInfo.metadata["k8s_cr"].get("optional-not-ready", []))


def test_record_of_the_instance_has_a_line_for_what_is_not_ready(cluster: FakeApi, tmp_path: Path) -> None:
    tab = crontab("may")
    tab["metadata"]["annotations"] = OPTIONAL
    blue = Instance(cluster, tmp_path / "package", [deployment(), crontab_crd(**CONDITIONS), tab])
    blue.instantiate()
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
    blue = Instance(cluster, tmp_path / "old", [deployment(1), first])
    blue.instantiate()
    cluster.fail(faults.status(422, "Invalid", "data is too colourful"), path="/configmaps/may$", method="PATCH", times=99)
    blue.change(make_vnfd(tmp_path / "new", [deployment(2), {**first, "data": {"x": "2"}}]))
    [line] = shown(blue)
    assert "data is too colourful" in line
    assert cluster.get("ConfigMap", "default", "may")["data"] == {"x": "1"}
