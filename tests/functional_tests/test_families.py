# SPDX-License-Identifier: Apache-2.0
"""What is started for the arguments of pytest."""

from pathlib import Path

import pytest

from functional_tests.families import FAMILIES, FOLDER, PORTABLE, chosen
from functional_tests.testbed import bed
from sample_packages.upstream import PROJECTS


def test_every_folder_with_tests_is_a_family():
    assert {path.relative_to(FOLDER).parts[0] for path in FOLDER.rglob("test_*.py")} == set(FAMILIES)


@pytest.mark.parametrize(
    ("arguments", "families"),
    [
        (["functional_tests/core"], ["core"]),
        (["functional_tests/faults/test_requests.py::test_x[a]", "functional_tests/testbed/"], ["faults", "testbed"]),
        (["functional_tests"], list(FAMILIES)),
        (["."], list(FAMILIES)),
        (["tests"], []),
    ],
)
def test_the_families_of_paths_are_chosen(arguments: list[str], families: list[str]):
    assert chosen(arguments, FOLDER.parent) == families


def test_an_absolute_path_is_taken_as_it_is(tmp_path: Path):
    assert chosen([str(FOLDER / "samples")], tmp_path) == ["samples"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_needs_parts_that_the_bed_has_and_their_samples_are_rendered(name: str):
    family = FAMILIES[name]
    assert set(family.parts) <= set(bed.PARTS)
    assert set(family.samples) <= PROJECTS.keys() | {"cluster_api_workload"}


def test_families_for_any_cluster_need_no_images_that_the_bed_builds():
    assert all(FAMILIES[name].samples == () and not FAMILIES[name].needs_cloud for name in PORTABLE)
