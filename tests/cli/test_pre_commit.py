# SPDX-License-Identifier: Apache-2.0
"""The hook of pre-commit, run as pre-commit runs it: the entry, its arguments, then the files of a commit."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.packages import write_package
from tests.instance import config_map, crontab, crontab_crd

HOOKS = Path(__file__).parents[2] / ".pre-commit-hooks.yaml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Of two packages, the second of which has a misspelt field, and a document."""
    tag = {"type": "string", "default": "1"}
    write_package(tmp_path / "packages/good", [config_map("own", a="${TAG}")], parameters={"TAG": tag})
    wrong = crontab("nightly")
    wrong["spec"]["cronSpek"] = wrong["spec"].pop("cronSpec")
    write_package(tmp_path / "packages/wrong", [crontab_crd(), wrong])
    (tmp_path / "README").write_text("Packages\n")
    return tmp_path


def commit(repository: Path, *files: str, code: int = 0) -> str:
    """What the hook prints of a commit of these files."""
    [hook] = yaml.safe_load(HOOKS.read_text())
    assert hook["language"] == "python" and hook.get("pass_filenames", True)
    program, *arguments = shlex.split(hook["entry"])
    assert program == "python"
    done = subprocess.run([sys.executable, *arguments, *files], cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def manifests(repository: Path, package: str) -> list[str]:
    return [str(path.relative_to(repository)) for path in sorted((repository / package).rglob("*.yaml"))]


def test_a_package_is_checked_once_for_all_its_files(repository: Path) -> None:
    files = manifests(repository, "packages/good")
    assert len(files) > 1
    assert commit(repository, "README", *files) == "packages/good: 0 errors, 0 warnings\n"


def test_an_error_fails_the_commit_and_all_packages_are_checked(repository: Path) -> None:
    said = commit(repository, *manifests(repository, "packages/wrong"), *manifests(repository, "packages/good"), code=1)
    assert "spec.cronSpek: unknown field" in said
    assert "did you mean cronSpec? [schema] Files/kubernetes/" in said
    assert "packages/good: 0 errors" in said


def test_files_of_no_package_are_left_out(repository: Path) -> None:
    assert commit(repository, "README") == ""


def test_options_are_those_of_validate(repository: Path) -> None:
    said = commit(repository, "--param", "TAGS=1", *manifests(repository, "packages/good"), code=1)
    assert "TAGS" in said


def test_a_folder_may_be_named(repository: Path) -> None:
    assert "packages/wrong: 1 error" in commit(repository, "packages/wrong", "README", code=1)
    assert "TOSCA-Metadata" in commit(repository, "packages", "README", code=1)


def test_a_repository_may_be_a_package_that_init_has_made(repository: Path) -> None:
    copy = repository / "packages/good/.k8s-cr-init/made/TOSCA-Metadata/TOSCA.meta"
    copy.parent.mkdir(parents=True)
    copy.write_text("")
    files = [path.removeprefix("packages/good/") for path in manifests(repository, "packages/good")]
    said = commit(repository / "packages/good", *files, ".k8s-cr-init/made/TOSCA-Metadata/TOSCA.meta")
    assert said == ".: 0 errors, 0 warnings\n"
