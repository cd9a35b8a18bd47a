# SPDX-License-Identifier: Apache-2.0
"""The section `external_lb_param` of a cluster that kubeadm makes: HAProxy and keepalived on servers outside the masters.

The names are those that the specifications give an external load balancer, and `vdu_id`, by which all other servers are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_cr_driver.node_clusters import checks
from k8s_cr_driver.node_clusters.groups import Group
from k8s_cr_driver.objects.fields import mapping, text, type_name

SECTION = "external_lb_param"
COUNT = 2
"""The fewest of them: one has the virtual IP, another takes it over."""
_TABLE: checks.Table = {
    "vdu_id": checks.is_name,
    "aspect_id": checks.is_name,
    "ssh_cp_name": checks.is_name,
    "nic_cp_name": checks.is_name,
    "ssh_username": checks.is_user,
    "ssh_password": checks.is_text,
    "script_path": checks.is_path,
}


@dataclass(frozen=True)
class Balancers:
    """The servers in front of the masters."""

    group: Group
    script_path: str
    """In the package: installs HAProxy and keepalived; "" for images that have them."""


def read(merged: Mapping[str, Any]) -> Balancers | None:
    """Of parameters without `problems`; None if the masters balance themselves."""
    given = mapping(merged, SECTION)
    if not given:
        return None
    ssh = text(given, "ssh_cp_name")
    group = Group(
        text(given, "vdu_id"),
        text(given, "aspect_id"),
        ssh,
        text(given, "nic_cp_name") or ssh,
        text(given, "ssh_username"),
        text(given, "ssh_password"),
    )
    return Balancers(group, text(given, "script_path"))


def problems(merged: Mapping[str, Any]) -> Iterator[str]:
    """Each begins with the path below the parameter."""
    given = merged.get(SECTION, {})
    if not isinstance(given, Mapping):
        yield f".{SECTION}: must be a mapping, not {type_name(given)}"
        return
    if SECTION not in merged or not given:
        return
    yield from checks.fields(f".{SECTION}", _TABLE, given, ("ssh_cp_name", "ssh_username"))
    if not given.get("vdu_id") and not given.get("aspect_id"):
        yield f".{SECTION}.vdu_id: is missing; it is the VDU of these servers"
    for role in ("master_node", "worker_node"):
        for key in ("vdu_id", "aspect_id"):
            if given.get(key) and given[key] == mapping(merged, role).get(key):
                yield f".{SECTION}.{key}: is that of {role}; the load balancers are servers of a VDU of their own"
