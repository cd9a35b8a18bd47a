# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr check-tacker`, with the real Tacker and with some that are not as expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes

from k8s_cr_driver.cli.commands import main
from tests.lcm.instance import INTREE_DRIVER


class OtherParameters(INTREE_DRIVER):  # type: ignore[misc, valid-type]
    def scale(self, request: Any) -> None: ...

    def heal(self, request: Any) -> None: ...


@pytest.fixture(autouse=True)
def tackers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "Kubernetes", INTREE_DRIVER)


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
