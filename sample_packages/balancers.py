# SPDX-License-Identifier: Apache-2.0
"""The sample `ha_masters` with HAProxy and keepalived on two servers of their own, outside the masters."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from . import vnfd

SAMPLE = "ha_masters"
VDU = "balancerNode"
"""Their VDU, whose port is `balancerNode_CP1`, and the external link of it `balancers`."""
COUNT = 2
_MASTER, _LINK = "masterNode", "virtual_link_external"
_TEMPLATES = "BaseHOT/simple"


def add(package: Path) -> None:
    """The package's folder gets the VDU; the masters' ports need no pair any more. It is another VNFD."""
    nested = package / _TEMPLATES / "nested"
    text = (nested / f"{_MASTER}.yaml").read_text()
    (nested / f"{VDU}.yaml").write_text(text.replace(_MASTER, VDU))
    _change(nested / f"{_MASTER}.yaml", _take_the_pair)
    _change(package / _TEMPLATES / f"{SAMPLE}.yaml", _add_servers)
    vnfd.change(package, lambda node_type, _: node_type["requirements"].append(_requirement()))
    _change(package / "Definitions" / f"{SAMPLE}.yaml", lambda content: _describe(content["topology_template"]))
    vnfd.rename(package, VDU)


def _change(file: Path, by: Callable[[dict[str, Any]], None]) -> None:
    content = yaml.safe_load(file.read_text())
    by(content)
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def _take_the_pair(template: dict[str, Any]) -> None:
    del template["parameters"]["virtual_ip"]
    del template["resources"][f"{_MASTER}_CP1"]["properties"]["allowed_address_pairs"]


def _add_servers(template: dict[str, Any]) -> None:
    resources = template["resources"]
    resources[VDU] = _renamed(resources[_MASTER])
    del resources[_MASTER]["properties"]["virtual_ip"]


def _requirement() -> dict[str, Any]:
    capability = "tosca.capabilities.nfv.VirtualLinkable"
    return {f"{_LINK}_balancers": {"capability": capability, "occurrences": [0, 1]}}


def _describe(topology: dict[str, Any]) -> None:
    topology["substitution_mappings"]["requirements"][f"{_LINK}_balancers"] = [f"{VDU}_CP1", "virtual_link"]
    nodes, policies = topology["node_templates"], topology["policies"]
    nodes[VDU], nodes[f"{VDU}_CP1"] = _renamed(nodes[_MASTER]), _renamed(nodes[f"{_MASTER}_CP1"])
    profile = {"min_number_of_instances": COUNT, "max_number_of_instances": COUNT}
    nodes[VDU]["properties"] |= {"description": "The load balancers, in front of the masters", "vdu_profile": profile}
    for policy in copy.deepcopy(policies):
        [(name, content)] = policy.items()
        if content.get("targets") == [_MASTER]:
            properties = content["properties"]
            for counted in (properties.get("initial_delta"), *properties.get("levels", {}).values()):
                if counted:
                    counted["number_of_instances"] = COUNT
            policies.append({name.replace("master", "balancer"): {**content, "targets": [VDU]}})


def _renamed(value: Any) -> Any:
    return yaml.safe_load(yaml.safe_dump(value).replace(_MASTER, VDU))
