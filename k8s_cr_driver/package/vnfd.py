# SPDX-License-Identifier: Apache-2.0
"""The files in Definitions: TOSCA templates, flavours and VDU nodes."""

from __future__ import annotations

import copy
import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects import yaml_nodes
from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.package import limits


def flavours(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The topology template of each flavour."""
    contents = definitions(folder).values()
    return {name: mapping(content, "topology_template") for content in contents if (name := flavour(content))}


def vdu_nodes(template: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The VDUs of a topology template, by their ids."""
    nodes = mapping(template, "node_templates")
    return {name: node for name, node in nodes.items() if field(node, "type") == "tosca.nodes.nfv.Vdu.Compute"}


DEFINITIONS = "Definitions"
_TYPE_FILES = ("etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml")
_TYPE_FOLDERS = {
    "tacker": "tests/unit/vnfm/infra_drivers/openstack/data/etsi_nfv",
    "tackerclient": "tests/unit/osc/v1/fixture_data/sample_vnf_package/Definitions",
}


class _Loader(yaml_nodes.Shallow, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads TOSCA as Tacker does. Merge keys (<<) copy what they name, so the size is measured before."""

    def construct_document(self, node: yaml.Node) -> Any:
        limits.check_expanded(node, yaml_nodes.parts, "the text")
        return super().construct_document(node)


_Loader.add_constructor("tag:yaml.org,2002:int", yaml_nodes.integer)


def definitions(folder: Path) -> dict[str, dict[str, Any]]:
    """The parsed files of a package's folder Definitions, by file name, as Tacker reads them. Raises InvalidPackage."""
    found = {}
    for path in sorted((folder / DEFINITIONS).glob("*.y*ml")):
        documents = _documents(path, f"{DEFINITIONS}/{path.name}")
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise InvalidPackage(f"{DEFINITIONS}/{path.name} must be one TOSCA service template")
        found[path.name] = documents[0]
    return found


def _documents(path: Path, name: str) -> list[Any]:
    return copy.deepcopy(_parsed(_read(path, name), name))


@functools.lru_cache(maxsize=8)
def _parsed(text: str, name: str) -> list[Any]:
    """A check of a package asks for the same files some twenty times."""
    return _parse(text, name)


def _read(path: Path, name: str) -> str:
    if not path.is_file():  # a named pipe has no end
        raise InvalidPackage(f"{name}: is no file")
    if path.stat().st_size > limits.DEFINITION:
        raise InvalidPackage(f"{name}: is larger than {limits.DEFINITION // 1024**2} MiB, the limit; divide it")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidPackage(f"{name} is not UTF-8 text") from None


def _parse(text: str, name: str) -> list[Any]:
    try:
        for root in yaml.compose_all(text, Loader=_Loader):
            _check_distinct(root, name)
        return list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise InvalidPackage(f"{name} is not YAML: {error}") from None
    except InvalidPackage as error:
        raise InvalidPackage(f"{name}: {error}") from None
    except Exception as error:  # PyYAML's constructors fail in many ways: dates, `!!int ""`
        raise InvalidPackage(f"{name} holds a value that is no YAML: {type(error).__name__}; write it in quotes") from None


def composed(path: Path) -> list[yaml.Node]:
    """The nodes of a file, with their marks. Raises InvalidPackage."""
    name = f"{DEFINITIONS}/{path.name}"
    try:
        return list(yaml.compose_all(_read(path, name), Loader=_Loader))
    except yaml.YAMLError as error:
        raise InvalidPackage(f"{name} is not YAML: {error}") from None


def _check_distinct(root: yaml.Node | None, name: str) -> None:
    """InvalidPackage if two nodes of the topology have one id: YAML, and so Tacker, would only have the last of them."""
    lines: dict[str, int] = {}
    for key, _ in _items(_value(_value(root, "topology_template"), "node_templates")):
        line = key.start_mark.line + 1
        if (first := lines.setdefault(key.value, line)) != line:
            raise InvalidPackage(
                f"{name}: node_templates has two nodes of the id {key.value}, in line {first} and in line {line}; give each "
                "an id of its own"
            )


def _items(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    return next((value for name, value in _items(node) if name.value == key), None)


def flavour(content: dict[str, Any]) -> str | None:
    """The deployment flavour that a TOSCA file describes, None if it describes none."""
    value = field(content, "topology_template", "substitution_mappings", "properties", "flavour_id")
    return value if isinstance(value, str) else None


def _missing_types(folder: Path) -> list[Path]:
    """SOL001's type files that are missing in the folder, from an installed package that has them."""
    missing = [name for name in _TYPE_FILES if not (folder / DEFINITIONS / name).is_file()]
    for package, inside in _TYPE_FOLDERS.items():
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or []) if spec else []:
            paths = [Path(location, inside, name) for name in missing]
            if all(path.is_file() for path in paths):
                return paths
    raise InvalidPackage(
        f"{DEFINITIONS}: missing are {' and '.join(missing)}: put them there, or install python-tackerclient, which has them"
    )
