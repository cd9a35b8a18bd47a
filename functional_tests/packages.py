# SPDX-License-Identifier: Apache-2.0
"""VNF packages of the functional tests: an ordinary VNFD around the manifests that a test is about.

Manifests that `k8s-cr package` would refuse are put into the CSAR afterwards, as an author without that tool would.
"""

import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from k8s_cr_driver.credentials import operations as sender_operations
from k8s_cr_driver.package import csar, tosca_meta

from .objects import Object

Documents = Object | list[Object] | str
"""What a manifest file holds: objects, or its text."""

_META = "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-by: tests\nEntry-Definitions: Definitions/vnfd.yaml\n"
_TYPE = "test.VNF"
_INTERFACE = "tosca.interfaces.nfv.Vnflcm"
_FLAVOUR = "simple"


@dataclass(frozen=True)
class Package:
    """`files` are manifests by their names; `vdus` name the object of each VDU, each of which has a scaling aspect of its
    id with steps of one; `counts` are those of VDUs that the instantiation level names, without which Tacker's own driver
    makes no VNFCs; `parameters` are TOSCA property definitions; `unchecked` is not looked at when it is made;
    `sender` are the settings of the credential sender, as YAML, if the package has it.
    """

    files: Mapping[str, Documents]
    vdus: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    unchecked: Mapping[str, Documents] = field(default_factory=dict)
    sender: str = ""

    def make(self, output: Path) -> Path:
        """Write the CSAR."""
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work)
            content = {tosca_meta.TOSCA_META: _META, "Definitions/vnfd.yaml": yaml.safe_dump(self._vnfd())}
            content |= {path(name): _text(documents) for name, documents in self.files.items()}
            content |= {"Scripts/credential_sender.yaml": self.sender} if self.sender else {}
            for name, text in content.items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            csar.write(folder, output)
            if self.unchecked:
                for name, documents in self.unchecked.items():
                    (folder / path(name)).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path(name)).write_text(_text(documents))
                csar.write(folder, output)
        return output

    def _vnfd(self) -> Object:
        properties = {
            "descriptor_id": str(uuid.uuid4()),
            "descriptor_version": "1.0",
            "provider": "Tests",
            "product_name": "Test",
            "software_version": "1.0",
            "vnfm_info": ["Tacker"],
            "flavour_id": _FLAVOUR,
            "flavour_description": "The only flavour",
        }
        types = {name: {"type": "string", "default": value} for name, value in properties.items() if name != "vnfm_info"}
        types["vnfm_info"] = {"type": "list", "entry_schema": {"type": "string"}, "default": properties["vnfm_info"]}
        return {
            "tosca_definitions_version": "tosca_simple_yaml_1_2",
            "imports": ["etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml"],
            "node_types": {
                _TYPE: {"derived_from": "tosca.nodes.nfv.VNF", "properties": types, **self._operations()}
            },
            "data_types": self._data_types(),
            "topology_template": {
                "substitution_mappings": {"node_type": _TYPE, "properties": {"flavour_id": _FLAVOUR}},
                "node_templates": {"VNF": {"type": _TYPE, "properties": properties, **self._scripts()}, **self._vdus()},
                "policies": self._policies(),
            },
        }

    def _vdus(self) -> Object:
        profile = {"min_number_of_instances": 0, "max_number_of_instances": 100}
        return {
            vdu: {
                "type": "tosca.nodes.nfv.Vdu.Compute",
                "properties": {"name": name, "description": vdu, "vdu_profile": profile},
            }
            for vdu, name in self.vdus.items()
        }

    def _policies(self) -> list[Object]:
        if not self.vdus:
            return []
        aspects = {
            vdu: {"name": vdu, "description": vdu, "max_scale_level": 50, "step_deltas": ["one"]} for vdu in self.vdus
        }
        levels = {"default": {"description": "As written", "scale_info": {vdu: {"scale_level": 0} for vdu in self.vdus}}}
        deltas = [
            {
                f"{vdu}_deltas": {
                    "type": "tosca.policies.nfv.VduScalingAspectDeltas",
                    "properties": {"aspect": vdu, "deltas": {"one": {"number_of_instances": 1}}},
                    "targets": [vdu],
                }
            }
            for vdu in self.vdus
        ]
        initial = [
            {
                f"{vdu}_initial": {
                    "type": "tosca.policies.nfv.VduInitialDelta",
                    "properties": {"initial_delta": {"number_of_instances": 1}},
                    "targets": [vdu],
                }
            }
            for vdu in self.vdus
        ]
        counts = [
            {
                f"{vdu}_counts": {
                    "type": "tosca.policies.nfv.VduInstantiationLevels",
                    "properties": {"levels": {"default": {"number_of_instances": count}}},
                    "targets": [vdu],
                }
            }
            for vdu, count in self.counts.items()
        ]
        return [
            {"aspects": {"type": "tosca.policies.nfv.ScalingAspects", "properties": {"aspects": aspects}}},
            {
                "levels": {
                    "type": "tosca.policies.nfv.InstantiationLevels",
                    "properties": {"levels": levels, "default_level": "default"},
                }
            },
            *counts,
            *initial,
            *deltas,
        ]

    def _operations(self) -> Object:
        operations: Object = {}
        if self.parameters:
            operations["instantiate"] = {"inputs": {"additional_parameters": {"type": "test.InstantiateParameters"}}}
        if self.sender:
            operations |= {name: {"description": "Not in SOL001's types"} for name in sender_operations.UNDECLARED}
        return {"interfaces": {"Vnflcm": {"type": _INTERFACE, **operations}}} if operations else {}

    def _scripts(self) -> Object:
        if not self.sender:
            return {}
        script = {"type": "tosca.artifacts.Implementation.Python", "file": "../Scripts/credential_sender.py"}
        operations = {name: {"implementation": "sender"} for name in sender_operations.HANDLED}
        return {"interfaces": {"Vnflcm": operations}, "artifacts": {"sender": {"description": "Sender", **script}}}

    def _data_types(self) -> Object:
        if not self.parameters:
            return {}
        return {
            "test.Parameters": {"derived_from": "tosca.datatypes.Root", "properties": dict(self.parameters)},
            "test.InstantiateParameters": {
                "derived_from": "tosca.datatypes.nfv.VnfOperationAdditionalParameters",
                "properties": {"parameters": {"type": "test.Parameters"}},
            },
        }


def path(name: str) -> str:
    """Where a manifest lies in the package; whole paths and URLs stay what they are."""
    return name if "://" in name or name.startswith(f"{tosca_meta.MANIFESTS}/") else f"{tosca_meta.MANIFESTS}/{name}"


def paths(names: Sequence[str]) -> list[str]:
    return [path(name) for name in names]


def _text(documents: Documents) -> str:
    if isinstance(documents, str):
        return documents
    return yaml.safe_dump_all(documents if isinstance(documents, list) else [documents])
