"""What Tacker loads, on the real Tacker and on some that are not as expected."""

from __future__ import annotations

import logging
from importlib import metadata
from typing import Any

import pytest
from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes
from tacker.vnfm.infra_drivers.kubernetes import kubernetes_driver

from k8s_cr_driver.lcm import registration
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


def test_a_second_registration_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert registration.install() and registration.install()
    assert kubernetes.Kubernetes is Driver and not errors(caplog)


def test_where_a_verb_takes_other_parameters_tackers_driver_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kubernetes, "Kubernetes", AnotherParameter)
    assert not registration.install()
    assert kubernetes.Kubernetes is AnotherParameter
    [error] = errors(caplog)
    assert "its method scale takes (self, request) instead of (self, req, inst, grant_req, grant, vnfd)" in error
    assert "Tacker's own Kubernetes driver stays in use" in error


def test_where_tacker_has_no_such_driver_the_first_version_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr(kubernetes, "Kubernetes")
    assert isinstance(registration.Kubernetes(), kubernetes_driver.Kubernetes)
    assert not hasattr(kubernetes, "Kubernetes")
    assert len(errors(caplog)) == 1
