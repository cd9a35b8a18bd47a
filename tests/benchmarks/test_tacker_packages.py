# SPDX-License-Identifier: Apache-2.0
"""The measure of Tacker's own packages: what it says of ones that are accepted, refused by one judge, and refused by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import tacker_packages
from k8s_cr_driver.package import vnfd
from tests.cli.packages import changed_vnfd, write_package
from tests.instance import deployment


def write(folder: Path, **options: Any) -> Path:
    """A package without types and without the VNFD's script, which lie elsewhere in the checkout."""
    write_package(folder, [deployment()], **options)
    with (folder / "TOSCA-Metadata/TOSCA.meta").open("a") as meta:
        meta.write("\nName: Files/kubernetes/all.yaml\nContent-Type: text/yaml\n")
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    types = tmp_path / "common/Definitions"
    types.mkdir(parents=True)
    for path in vnfd._missing_types(tmp_path):
        (types / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_a_package_is_completed_and_both_accept_it(checkout: Path) -> None:
    folder = write(checkout / "web/contents", vdus={"Web": "web"})
    write_package(checkout / "without-manifests", [])
    assert list(tacker_packages.packages(checkout)) == [folder]
    before = sorted(folder.rglob("*"))
    assert tacker_packages.judged(folder, checkout) == ("web", (), ())
    assert sorted(folder.rglob("*")) == before


def test_a_difference_has_its_reason(checkout: Path) -> None:
    known, other = (write(checkout / name, vdus={"Web": "other"}) for name in ("test_cnf", "another"))
    found = [tacker_packages.judged(folder, checkout) for folder in (known, other)]
    assert [one.reason for one in found] == [tacker_packages.REASONS["test_cnf"], "unknown"]
    assert all(not one.tacker and "VDU Web is no object of the manifests" in one.validate[0] for one in found)


def test_what_both_refuse_is_no_difference(checkout: Path) -> None:
    folder = write(checkout / "web", vdus={"Web": "web"})
    with changed_vnfd(folder) as content:
        content["topology_template"]["node_templates"]["Web"]["type"] = "sample.Unknown"
    found = tacker_packages.judged(folder, checkout)
    assert found.tacker and found.validate and not found.reason
    assert not any("File " in line for line in found.tacker)


def test_each_reason_is_in_the_documents() -> None:
    text = (Path(__file__).parents[2] / "doc/source/reference/findings.rst").read_text()
    assert all(f"``{name}``" in text for name in tacker_packages.REASONS)
