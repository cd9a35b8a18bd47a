# SPDX-License-Identifier: Apache-2.0
"""What Tacker loads: the entry point `kubernetes_cr` in the group tacker.tacker.vnfm.drivers.

Tacker's v1 API finds its drivers there; its v2 API creates `kubernetes.Kubernetes()`, a class of its own module. So the
entry point is Tacker's v1 driver, unchanged, and its constructor puts this driver into that module. No other module
changes Tacker's attributes. If Tacker does not fit, or an import fails, a stand-in is put there whose verbs all fail with
the reason: the in-tree driver must not serve instances of this one. So nothing but Tacker is imported at the top.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from typing import Any

from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.vnfm.infra_drivers.kubernetes import kubernetes_driver

LOG = logging.getLogger(__name__)

_VERB = ("self", "req", "inst", "grant_req", "grant", "vnfd")
_EXPECTED = {
    "instantiate": _VERB,
    "instantiate_rollback": _VERB,
    "terminate": _VERB,
    "scale": _VERB,
    "scale_rollback": _VERB,
    "heal": _VERB,
    "change_vnfpkg": _VERB,
    "change_vnfpkg_rollback": _VERB,
    "diff_check_inst": ("self", "inst", "vim_info"),
    "sync_db": ("self", "context", "vnf_instance", "vim_info"),
}
"""The methods of Tacker's driver that its conductor calls, with their parameters; the same in Tacker 15 and 16."""


class Kubernetes(kubernetes_driver.Kubernetes):  # type: ignore[misc]
    """Tacker's v1 driver, unchanged. Tacker creates several, also in the API server."""

    def __init__(self) -> None:
        super().__init__()
        install()


class StandIn:
    """In the place of the driver that cannot be used."""


def install() -> bool:
    """Puts this driver where the conductor of the v2 API looks for one; False, with an error in the log, if it cannot."""
    from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes

    present = getattr(kubernetes, "Kubernetes", None)
    if inspect.isclass(present) and issubclass(present, StandIn):
        return False
    try:
        kubernetes.Kubernetes = _driver(present)
    except Exception as error:
        reason = f"k8s-cr-driver does not fit this Tacker ({type(error).__name__}: {error})"
        LOG.error("%s. No VNF instance of vimType ETSINFV.KUBERNETES.V_1 can be operated.", reason)
        kubernetes.Kubernetes = _stand_in(reason)
        return False
    LOG.info("k8s-cr-driver serves vimType ETSINFV.KUBERNETES.V_1")
    _report_options()
    return True


def _report_options() -> None:
    """One WARNING for each mistake in the driver's options: oslo.config reports no name that nobody has registered."""
    from oslo_config import cfg

    from k8s_cr_driver.lcm import conf_check

    with contextlib.suppress(cfg.Error):  # no files were read yet
        for mistake in conf_check.mistakes(conf_check.files(cfg.CONF)):
            LOG.warning("%s", mistake)


def _driver(present: Any) -> type:
    """The class that replaces `present`; TypeError if the methods of that are not as expected."""
    from oslo_config import cfg

    from k8s_cr_driver.lcm import conf, tacker_names
    from k8s_cr_driver.lcm.driver import Driver

    if present is not Driver and (unexpected := [*differences(present), *tacker_names.differences()]):
        raise TypeError("; ".join(unexpected))
    conf.register(cfg.CONF)
    conf.publish(cfg.CONF)
    return Driver


def _stand_in(reason: str) -> type[StandIn]:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise sol_ex.SolException(sol_detail=f"{reason}; see the conductor's log")

    return type("StandIn", (StandIn,), dict.fromkeys(_EXPECTED, fail))


def differences(driver: Any) -> list[str]:
    """How the methods of Tacker's driver differ from those that this one replaces, one text for each method."""
    found = []
    for name, parameters in _EXPECTED.items():
        method = getattr(driver, name, None)
        actual = tuple(inspect.signature(method).parameters) if method else ()
        if actual != parameters:
            found.append(f"its method {name} takes ({', '.join(actual)}) instead of ({', '.join(parameters)})")
    return found
