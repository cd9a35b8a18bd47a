# SPDX-License-Identifier: Apache-2.0
"""NodePorts of a CNF on the external load balancer of its cluster: at which operations, of which Services, by which request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.node_clusters import checks
from k8s_cr_driver.objects.fields import entries, field, text, type_name
from k8s_cr_driver.redaction import lines

PARAMETER, SECTION = "lcm-kubernetes-external-lb", "external_lb_param"
ADDRESS = ("load_balancer", "ip_address")
"""Which of them say where the load balancer is."""
EXPOSES = (
    *("instantiate_end", "scale_end", "heal_end", "change_current_package_end"),
    *("scale_rollback_end", "change_current_package_rollback_end"),
)
WITHDRAWS = ("terminate_start", "instantiate_rollback_end")
PORTS = range(1024, 65536)
MOST = 1000
"""NodePorts of one cluster, or of one CNF: others use the load balancer, too."""
TCP = "TCP"
_TABLE: checks.Table = {
    "load_balancer": checks.is_name,
    "ip_address": checks.is_address,
    "ssh_username": checks.is_user,
    "ssh_password": checks.is_text,
    "host_keys": checks.are_keys,
}


def of_request(additional_params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The section of a request, {} without one. Raises InvalidRequest with all mistakes."""
    where = f"additionalParams.{PARAMETER}.{SECTION}"
    given = field(additional_params.get(PARAMETER, {}), SECTION) or {}
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"{where}: must be a mapping, not {type_name(given)}")
    if found := list(checks.fields(where, _TABLE, given)):
        raise InvalidRequest(lines(found))
    return given


def check_address(given: Mapping[str, Any]) -> None:
    """Raises InvalidRequest if the section says neither which load balancer of the operator it is, nor how to log in there."""
    missing = [key for key in ("ip_address", "ssh_username") if not given.get(key)]
    if missing and not given.get("load_balancer"):
        where = f"additionalParams.{PARAMETER}.{SECTION}: {', '.join(missing)}"
        raise InvalidRequest(f"{where}: is missing; or give load_balancer, the name of one of the operator")


def of_service(service: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Protocol and NodePort of each port of a Service; 0 for one that the cluster is to choose."""
    if text(service, "spec", "type") != "NodePort":
        return
    for port in entries(service, "spec", "ports"):
        number = port.get("nodePort", 0)
        if type(number) is int and (not number or number in PORTS):
            yield str(port.get("protocol", TCP)), number
