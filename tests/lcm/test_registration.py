# SPDX-License-Identifier: Apache-2.0
"""What Tacker loads, on the real Tacker and on some that are not as expected."""

from __future__ import annotations

import ast
import json
import logging
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from oslo_config import cfg
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes
from tacker.vnfm.infra_drivers.kubernetes import kubernetes_driver

from k8s_cr_driver.cli.commands import main
from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.lcm import conf, registration
from k8s_cr_driver.lcm.driver import Driver
from tests.lcm.instance import INTREE_DRIVER


@pytest.fixture(autouse=True)
def tackers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "Kubernetes", INTREE_DRIVER)


class AnotherParameter(INTREE_DRIVER):  # type: ignore[misc, valid-type]
    def scale(self, request: Any) -> None: ...


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]


def test_what_tacker_loads_is_its_driver_of_the_first_version_and_registers_ours_for_the_second() -> None:
    [entry_point] = metadata.entry_points(group="tacker.tacker.vnfm.drivers", name="kubernetes_cr")
    loaded = entry_point.load()()
    assert isinstance(loaded, kubernetes_driver.Kubernetes)
    assert kubernetes.Kubernetes is Driver
    assert not [name for name in vars(type(loaded)) if not name.startswith("_")], "the first version is Tacker's own"


def test_the_scripts_of_packages_find_the_conductors_options(
    options_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tacker.conf.d"
    folder.mkdir()
    (folder / "more.conf").write_text("[k8s_cr]\nverify_tls_without_ca = false\n")
    monkeypatch.setattr(cfg, "CONF", parsed := cfg.ConfigOpts())
    parsed([f"--config-file={options_file}", f"--config-dir={folder}"])
    assert registration.install()
    options = conf.of_conductor()
    assert (options.allowed_endpoints, options.verify_tls_without_ca) == (["*"], False)
    monkeypatch.delenv(conf._FILES)
    monkeypatch.setenv("OS_K8S_CR__ALLOWED_ENDPOINTS", "10.0.0.0/8")
    assert conf.of_conductor().allowed_endpoints == ["10.0.0.0/8"], "of a conductor with files in the usual place, or none"


@pytest.mark.parametrize("args", [["file"], ["dir", "file"], ["file", "dir"], ["dir"], []])
def test_the_scripts_of_packages_read_the_conductors_files_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """The last one that has an option counts; a folder in the usual place is read before files that are named."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(conf._FILES, "")
    folder = tmp_path / ".tacker" / "tacker.conf.d"
    folder.mkdir(parents=True)
    (folder / "a.conf").write_text("[k8s_cr]\nallowed_receivers = of-folder\n")
    (tmp_path / "my.conf").write_text("[k8s_cr]\nallowed_receivers = of-file\n")
    options = {"file": f"--config-file={tmp_path / 'my.conf'}", "dir": f"--config-dir={folder}"}
    conductor = cfg.ConfigOpts()
    conf.register(conductor)
    conductor([options[one] for one in args], project="tacker", prog="tacker-conductor")
    conf.publish(conductor)
    assert conf.of_conductor().allowed_receivers == conductor.k8s_cr.allowed_receivers


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "my.conf"),
        (b"[k8s_cr]\nallowed_receivers = $my_ip\n", "my_ip"),
        (b"[k8s_cr]\nallowed_receivers = \xff\n", "a file of them is not UTF-8"),
        (b"[DEFAULT]\na-password\n", "my.conf is malformed"),
    ],
)
def test_options_that_scripts_cannot_read_are_named_and_no_line_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, words: str
) -> None:
    """A line may be a password of Tacker's, and users of Tacker's API read the error."""
    path = tmp_path / "my.conf"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv(conf._FILES, json.dumps([f"--config-file={path}"]))
    with pytest.raises(InvalidRequest, match=rf"cannot read the conductor's options: .*{words}") as refused:
        conf.of_conductor()
    assert "a-password" not in str(refused.value)


@pytest.mark.parametrize(
    "published", ['{"config_file": ["/etc/tacker/tacker.conf"], "config_dir": []}', "no JSON", "[1]", '["--bad=1"]']
)
def test_a_conductor_that_an_earlier_driver_has_started_is_to_be_restarted(
    monkeypatch: pytest.MonkeyPatch, published: str
) -> None:
    monkeypatch.setenv(conf._FILES, published)
    with pytest.raises(InvalidRequest, match=rf"{conf._FILES} .* Ask the operator to restart tacker-conductor\."):
        conf.of_conductor()


@pytest.mark.parametrize("given", ["--config-file=~/folder/a.conf", "--config-dir=~/folder"])
def test_the_scripts_of_packages_read_files_below_the_home_of_the_conductor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """No shell has replaced the ~ there; oslo.config does."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(conf._FILES, "")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.conf").write_text("[k8s_cr]\nallowed_receivers = a\n")
    conductor = cfg.ConfigOpts()
    conductor([given], project="tacker", prog="tacker-conductor")
    conf.publish(conductor)
    assert conf.of_conductor().allowed_receivers == ["a"]


def test_a_second_registration_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert registration.install() and registration.install()
    assert kubernetes.Kubernetes is Driver and not errors(caplog)


VERBS = list(registration._EXPECTED)


def assert_fails_closed(reason: str) -> None:
    """The verbs of what Tacker finds in the place of its driver all fail with the reason."""
    for verb in VERBS:
        with pytest.raises(sol_ex.SolException, match=reason):
            getattr(kubernetes.Kubernetes(), verb)(*[None] * 5)


def test_no_verb_works_where_a_verb_takes_other_parameters(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kubernetes, "Kubernetes", AnotherParameter)
    assert not registration.install() and not registration.install()
    [error] = errors(caplog)
    assert "its method scale takes (self, request) instead of (self, req, inst, grant_req, grant, vnfd)" in error
    assert_fails_closed("does not fit this Tacker .*its method scale takes")


def test_no_verb_works_where_tacker_has_no_such_driver_and_the_first_version_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(kubernetes, "Kubernetes")
    assert isinstance(registration.Kubernetes(), kubernetes_driver.Kubernetes)
    assert len(errors(caplog)) == 1
    assert_fails_closed("does not fit this Tacker")


def test_no_verb_works_where_an_import_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "k8s_cr_driver.lcm.driver", None)
    assert not registration.install()
    assert_fails_closed("ModuleNotFoundError|ImportError")


def test_the_module_of_the_entry_point_imports_nothing_but_tacker_at_its_top() -> None:
    tree = ast.parse(Path(registration.__file__).read_text())
    names = {one.module for one in tree.body if isinstance(one, ast.ImportFrom)}
    assert all(str(name).startswith(("tacker.", "__future__", "typing")) for name in names)


class OtherParameters(AnotherParameter):
    def heal(self, request: Any) -> None: ...


def check() -> Result:
    return CliRunner().invoke(main, ["check-tacker"])


def test_the_tacker_of_this_environment_fits() -> None:
    tool = Path(sys.executable).with_name("k8s-cr")
    result = subprocess.run([tool, "check-tacker"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "The driver fits the Tacker in this environment\n"), result.stderr


def test_each_method_with_other_parameters_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "Kubernetes", OtherParameters)
    result = check()
    assert result.exit_code == 1
    scale, heal = result.output.splitlines()
    assert scale == "its method scale takes (self, request) instead of (self, req, inst, grant_req, grant, vnfd)"
    assert heal.startswith("its method heal takes (self, request)")


@pytest.mark.parametrize(
    "module", ["tacker.sol_refactored.infra_drivers.kubernetes.kubernetes", "k8s_cr_driver.lcm.driver"]
)
def test_a_module_that_cannot_be_imported_is_a_difference(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    result = check()
    assert result.exit_code == 1
    assert module in result.output and len(result.output.splitlines()) == 1
