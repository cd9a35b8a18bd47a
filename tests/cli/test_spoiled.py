# SPDX-License-Identifier: Apache-2.0
"""Whatever one field of a package holds, `k8s-cr` says what is wrong and never fails itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from k8s_cr_driver.cli.commands import main
from k8s_cr_driver.objects.keys import Object
from tests import spoiled
from tests.cli.packages import write_package

PARAMETERS = {
    "COUNT": {"type": "integer", "default": 1, "constraints": [{"in_range": [1, 5]}]},
    "LOGIN": {"type": "string", "metadata": {"secret": True}},
}


@settings(max_examples=40)
@given(spoiled.versions(spoiled.GOOD))
def test_a_spoiled_package_is_reported(objects: list[Object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = write_package(Path(folder), objects, vdus={"Web": "web"})
        for command in ("validate", "tree"):
            result = CliRunner().invoke(main, [command, str(package)])
            assert isinstance(result.exception, SystemExit | None), result.exc_info
            assert result.exit_code in (0, 1)


@settings(max_examples=40)
@given(st.data())
def test_a_spoiled_vnfd_is_reported(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = write_package(Path(folder), spoiled.GOOD, vdus={"Web": "web"}, aspects=["web"], parameters=PARAMETERS)
        vnfd = package / "Definitions/vnfd.yaml"
        (content,) = data.draw(spoiled.versions([yaml.safe_load(vnfd.read_text())]))
        vnfd.write_text(yaml.safe_dump(content))
        result = CliRunner().invoke(main, ["validate", str(package), "--update-of", str(package), "--param", "LOGIN=a/b"])
    assert isinstance(result.exception, SystemExit | None), result.exc_info
    assert result.exit_code in (0, 1)


@pytest.mark.parametrize("name", [[], {}, 5, None, ["web"]])
def test_a_vdu_whose_name_is_no_text_is_reported(tmp_path: Path, name: object) -> None:
    package = write_package(tmp_path, spoiled.GOOD, vdus={"Web": "web"}, aspects=["web"], parameters=PARAMETERS)
    vnfd = package / "Definitions/vnfd.yaml"
    content = yaml.safe_load(vnfd.read_text())
    content["topology_template"]["node_templates"]["Web"]["properties"]["name"] = name
    vnfd.write_text(yaml.safe_dump(content))
    result = CliRunner().invoke(main, ["validate", str(package), "--update-of", str(package), "--param", "LOGIN=a/b"])
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (1, True), result.output
