# SPDX-License-Identifier: Apache-2.0
"""The credential sender becomes a part of a sample package."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from k8s_cr_driver.cli.commands import main as tool
from sample_packages.__main__ import FOLDERS, main, make
from sample_packages.sender import SAMPLES

SETTINGS = Path(__file__).parents[2] / "mgmt" / "credential_sender" / "credential_sender.yaml"


def test_it_is_for_the_packages_of_workload_clusters():
    assert set(SAMPLES) == {name for name in FOLDERS if "workload" in name}


def test_a_package_with_the_sender_is_valid_and_another_vnfd(tmp_path: Path):
    made = make("cluster_api_workload", tmp_path, sender=SETTINGS)
    done = CliRunner().invoke(tool, ["validate", str(made)])
    assert done.exit_code == 0 and "0 errors" in done.output
    (tmp_path / "plain").mkdir()
    plain = make("cluster_api_workload", tmp_path / "plain")
    assert plain.read_bytes() != made.read_bytes()


@pytest.mark.parametrize(("text", "problem"), [("url: 5", "url"), ("[", "is not YAML"), ("", "must be a mapping")])
def test_settings_with_mistakes_are_refused_by_their_file(tmp_path: Path, text: str, problem: str):
    (tmp_path / "sender.yaml").write_text(text)
    done = CliRunner().invoke(main, ["-o", str(tmp_path), "--sender", str(tmp_path / "sender.yaml"), "cluster_api_workload"])
    assert done.exit_code == 2 and "--sender" in done.output and "sender.yaml" in done.output
    assert problem in done.output
