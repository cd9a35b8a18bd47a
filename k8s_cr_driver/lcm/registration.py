"""What Tacker loads: the entry point `kubernetes_cr` in the group tacker.tacker.vnfm.drivers.

Tacker's v1 API finds its drivers there; its v2 API creates `kubernetes.Kubernetes()`, a class of its own module. So the
entry point is Tacker's v1 driver, unchanged, and its constructor puts this driver into that module. No other module
changes Tacker's attributes. If Tacker is not as expected, an error is logged and Tacker's own driver stays.
"""

from __future__ import annotations

import inspect
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
from tacker.vnfm.infra_drivers.kubernetes import kubernetes_driver

from k8s_cr_driver.lcm import conf

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
"""The methods of Tacker 16's driver that its conductor calls, with their parameters."""


class Kubernetes(kubernetes_driver.Kubernetes):  # type: ignore[misc]
    """Tacker's v1 driver, unchanged. Tacker creates several, also in the API server."""

    def __init__(self) -> None:
        super().__init__()
        install()


def install() -> bool:
    """Puts this driver where the conductor of the v2 API looks for one; False, with an error in the log, if it cannot."""
    try:
        from tacker.sol_refactored.infra_drivers.kubernetes import kubernetes

        from k8s_cr_driver.lcm.driver import Driver

        if kubernetes.Kubernetes is Driver:
            return True
        unexpected = _differences(kubernetes.Kubernetes)
        if unexpected:
            raise TypeError("; ".join(unexpected))
        conf.register(cfg.CONF)
        kubernetes.Kubernetes = Driver
    except Exception as error:
        LOG.error(
            "k8s-cr-driver does not fit this Tacker (%s: %s). Tacker's own Kubernetes driver stays in use.",
            type(error).__name__,
            error,
        )
        return False
    LOG.info("k8s-cr-driver serves vimType ETSINFV.KUBERNETES.V_1")
    return True


def _differences(driver: Any) -> list[str]:
    found = []
    for name, parameters in _EXPECTED.items():
        method = getattr(driver, name, None)
        actual = tuple(inspect.signature(method).parameters) if method else ()
        if actual != parameters:
            found.append(f"its method {name} takes ({', '.join(actual)}) instead of ({', '.join(parameters)})")
    return found
