# SPDX-License-Identifier: Apache-2.0
"""Packages written into a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from k8s_cr_driver.objects.keys import Object

META = """\
TOSCA-Meta-File-Version: 1.0
CSAR-Version: 1.1
Created-by: somebody
Entry-Definitions: Definitions/vnfd.yaml
"""
_ABOUT = ("descriptor_id", "descriptor_version", "provider", "product_name", "software_version", "flavour_description")
_PROFILE = {"min_number_of_instances": 0, "max_number_of_instances": 9}


def write_package(
    root: Path,
    objects: Sequence[Object],
    *,
    vdus: dict[str, str] | None = None,
    aspects: Sequence[str] = (),
    levels: dict[str, int] | None = None,
    parameters: dict[str, Any] | None = None,
) -> Path:
    """A package of one flavour; `vdus` are names by VDU ids, `parameters` TOSCA property definitions by names.

    `levels`: the counts of all VDUs by instantiation level, of which the first is the default.
    """
    about = {**dict.fromkeys(_ABOUT, "sample"), "vnfm_info": ["Tacker"], "flavour_id": "simple"}
    node_type: dict[str, Any] = {
        "derived_from": "tosca.nodes.nfv.VNF",
        "properties": {
            name: {"type": "list" if name == "vnfm_info" else "string", "default": value} for name, value in about.items()
        },
    }
    template: dict[str, Any] = {
        "substitution_mappings": {"node_type": "sample.VNF", "properties": {"flavour_id": "simple"}},
        "node_templates": {
            "VNF": {"type": "sample.VNF", "properties": about},
            **{
                vdu: {
                    "type": "tosca.nodes.nfv.Vdu.Compute",
                    "properties": {"name": name, "description": name, "vdu_profile": _PROFILE},
                }
                for vdu, name in (vdus or {}).items()
            },
        },
    }
    if aspects:
        template["policies"] = scaling_policies(aspects, targets=list(vdus or {}))
    if levels:
        template.setdefault("policies", []).extend(level_policies(levels, aspects, targets=list(vdus or {})))
    vnfd: dict[str, Any] = {
        "tosca_definitions_version": "tosca_simple_yaml_1_2",
        "imports": ["etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml"],
        "node_types": {"sample.VNF": node_type},
        "topology_template": template,
    }
    if parameters:
        inputs = {"additional_parameters": {"type": "request"}}
        node_type["interfaces"] = {"Vnflcm": {"type": "tosca.interfaces.nfv.Vnflcm", "instantiate": {"inputs": inputs}}}
        vnfd["data_types"] = {
            "request": {
                "derived_from": "tosca.datatypes.nfv.VnfOperationAdditionalParameters",
                "properties": {"parameters": {"type": "values"}},
            },
            "values": {"derived_from": "tosca.datatypes.Root", "properties": parameters},
        }
    for name, text in (
        ("TOSCA-Metadata/TOSCA.meta", META),
        ("Definitions/vnfd.yaml", yaml.safe_dump(vnfd)),
        ("Files/kubernetes/all.yaml", yaml.safe_dump_all(objects)),
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@contextmanager
def changed_vnfd(root: Path) -> Iterator[dict[str, Any]]:
    """The content of its file, which is written with what the block changes."""
    path = root / "Definitions/vnfd.yaml"
    content = yaml.safe_load(path.read_text())
    yield content
    path.write_text(yaml.safe_dump(content))


def scaling_policies(aspects: Sequence[str], targets: Sequence[str]) -> list[dict[str, Any]]:
    """Policies of a topology template, with which each of `aspects` scales each of `targets` by one."""
    steps = {
        aspect: {"name": aspect, "description": aspect, "max_scale_level": 2, "step_deltas": ["one"]} for aspect in aspects
    }
    deltas = {"one": {"number_of_instances": 1}}
    scaling = [
        {f"{aspect}_deltas": _policy("VduScalingAspectDeltas", targets=targets, aspect=aspect, deltas=deltas)}
        for aspect in aspects
    ]
    return [{"aspects": _policy("ScalingAspects", aspects=steps)}, *scaling]


def level_policies(levels: dict[str, int], aspects: Sequence[str], targets: Sequence[str]) -> list[dict[str, Any]]:
    """Policies of a topology template with these instantiation levels."""
    at_zero = {
        level: {"description": level, "scale_info": {aspect: {"scale_level": 0} for aspect in aspects}} for level in levels
    }
    counts = {level: {"number_of_instances": count} for level, count in levels.items()}
    named = _policy("InstantiationLevels", levels=at_zero, default_level=next(iter(levels)))
    return [{"levels": named}, {"counts": _policy("VduInstantiationLevels", targets=targets, levels=counts)}]


def _policy(kind: str, targets: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": f"tosca.policies.nfv.{kind}", "properties": properties, "targets": [*targets]}
