"""Whatever one field of a package holds, `k8s-cr` says what is wrong and never fails itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

from click.testing import CliRunner
from hypothesis import given, settings

from k8s_cr_driver.cli import main
from k8s_cr_driver.keys import Object
from tests import spoiled
from tests.cli.packages import write_package


@settings(max_examples=40)
@given(spoiled.packages())
def test_a_spoiled_package_is_told(objects: list[Object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = write_package(Path(folder), objects, vdus={"Web": "web"})
        for command in ("validate", "tree"):
            result = CliRunner().invoke(main, [command, str(package)])
            assert isinstance(result.exception, SystemExit | None), result.exc_info
            assert result.exit_code in (0, 1)
