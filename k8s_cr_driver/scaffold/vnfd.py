# SPDX-License-Identifier: Apache-2.0
"""The VNFD of a package (SOL001), for what Tacker reads: the VNF, its VDUs, how they scale, its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from k8s_cr_driver.scaffold import yaml_text
from k8s_cr_driver.scaffold.model import Parameter, Product, Vdu

TEMPLATE = Path(__file__).with_name("vnfd.yaml")
FLAVOUR = "simple"
STEPS = 10
"""Scale levels above the first one."""
_LEVEL, _STEP = "default", "step"


def text(product: Product, descriptor_id: str, vdus: Sequence[Vdu], parameters: Sequence[Parameter]) -> str:
    """The file; `descriptor_id` is a UUID."""
    content = yaml.safe_load(TEMPLATE.read_text())
    vnf = f"{product.name}.VNF"
    properties = {
        "descriptor_id": descriptor_id,
        "descriptor_version": product.version,
        "provider": product.provider,
        "product_name": product.name,
        "software_version": product.software_version,
        "vnfm_info": ["Tacker"],
        "flavour_id": FLAVOUR,
        "flavour_description": "The only flavour",
    }
    content["description"] = product.description or product.name
    node_type = {**content["node_types"].pop("VNF"), "properties": {k: _declared(v) for k, v in properties.items()}}
    content["node_types"][vnf] = node_type
    topology = content["topology_template"]
    topology["substitution_mappings"]["node_type"] = vnf
    topology["node_templates"]["VNF"] = {"type": vnf, "properties": properties}
    for vdu in vdus:
        topology["node_templates"][vdu.id] = _node(vdu)
    if policies := _policies([vdu for vdu in vdus if vdu.aspect]):
        topology["policies"] = policies
    if parameters:
        content = _with_parameters(content, product.name, node_type, parameters)
    return yaml_text.dump(content)


def _declared(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"type": "list", "entry_schema": {"type": "string"}, "default": value}
    return {"type": "string", "default": value}


def _node(vdu: Vdu) -> dict[str, Any]:
    most = vdu.least + (vdu.level + STEPS) * vdu.delta if vdu.aspect else max(vdu.count or 0, STEPS)
    profile = {"min_number_of_instances": vdu.least if vdu.aspect else 0, "max_number_of_instances": most}
    return {
        "type": "tosca.nodes.nfv.Vdu.Compute",
        "properties": {"name": vdu.name, "description": vdu.description, "vdu_profile": profile},
    }


def _policies(scaled: Sequence[Vdu]) -> list[dict[str, Any]]:
    """None for a package that nothing scales in. A count of a parameter has no level, which would be used in its place."""
    if not scaled:
        return []
    aspects = {
        vdu.id: {
            "name": vdu.id,
            "description": vdu.description,
            "max_scale_level": vdu.level + STEPS,
            "step_deltas": [_STEP],
        }
        for vdu in scaled
    }
    levels = {_LEVEL: {"description": "As the manifests say", "scale_info": {v.id: {"scale_level": v.level} for v in scaled}}}
    found = [
        {"scaling_aspects": _policy("ScalingAspects", aspects=aspects)},
        {"instantiation_levels": _policy("InstantiationLevels", levels=levels, default_level=_LEVEL)},
    ]
    for vdu in scaled:
        step, least = ({"number_of_instances": number} for number in (vdu.delta, vdu.least))
        found += [
            {f"{vdu.id}_initial": _policy("VduInitialDelta", vdu, initial_delta=least)},
            {f"{vdu.id}_steps": _policy("VduScalingAspectDeltas", vdu, aspect=vdu.id, deltas={_STEP: step})},
        ]
        if vdu.count is not None:
            level = {_LEVEL: {"number_of_instances": vdu.count}}
            found.append({f"{vdu.id}_level": _policy("VduInstantiationLevels", vdu, levels=level)})
    return found


def _policy(kind: str, target: Vdu | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": f"tosca.policies.nfv.{kind}",
        "properties": properties,
        **({"targets": [target.id]} if target else {}),
    }


def _with_parameters(
    content: dict[str, Any], name: str, node_type: dict[str, Any], parameters: Sequence[Parameter]
) -> dict[str, Any]:
    """`content` with the data types of the parameters, which the node type names."""
    inputs = {"additional_parameters": {"type": f"{name}.InstantiateParameters"}}
    vnflcm = {"type": "tosca.interfaces.nfv.Vnflcm", "instantiate": {"inputs": inputs}}
    node_type["interfaces"] = {"Vnflcm": vnflcm}
    types = {
        f"{name}.Parameters": {
            "derived_from": "tosca.datatypes.Root",
            "properties": {one.name: _property(one) for one in parameters},
        },
        f"{name}.InstantiateParameters": {
            "derived_from": "tosca.datatypes.nfv.VnfOperationAdditionalParameters",
            "properties": {"parameters": {"type": f"{name}.Parameters"}},
        },
    }
    before = ("tosca_definitions_version", "description", "imports")
    return {**{key: content[key] for key in before}, "data_types": types, **content}


def _property(one: Parameter) -> dict[str, Any]:
    described = {"description": one.description} if one.description else {}
    default = {} if one.default is None else {"default": one.default}
    return {"type": one.type, **described, **({} if one.must_be_given else {"required": False}), **default}
