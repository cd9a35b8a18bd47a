# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a VNFD that Tacker's parser does not see, or refuses without a name."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from k8s_cr_driver.errors import InvalidPackage
from k8s_cr_driver.objects.fields import field, mapping, sequence, type_name
from k8s_cr_driver.package import vnfd

_SHAPES: Mapping[str, type | tuple[type, ...]] = {
    "properties": dict,
    "attributes": dict,
    "capabilities": dict,
    "interfaces": dict,
    "artifacts": dict,
    "requirements": list,
    "metadata": dict,
}


def problems(contents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each mistake; `contents` are the parsed files by name."""
    yield from _descriptor_ids(contents)
    for file, content in contents.items():
        yield from (f"Definitions/{file}: {problem}" for problem in _shapes(mapping(content, "topology_template"), content))


def repeated_keys(folder: Path) -> Iterator[str]:
    """A sentence for each key that a mapping has twice: of these YAML, and so Tacker, would only have the last one."""
    for path in sorted((folder / vnfd.DEFINITIONS).glob("*.y*ml")):
        with contextlib.suppress(InvalidPackage):  # which has been reported
            for root in vnfd.composed(path):
                for key, first, again in _repeated(root):
                    where = f"{vnfd.DEFINITIONS}/{path.name}, line {again}"
                    yield f"{where}: the key {key} is in this mapping already, in line {first}; only the last counts, keep one"


def _repeated(node: yaml.Node) -> Iterator[tuple[str, int, int]]:
    """(key, its line, the line in which it is again), of the mapping and those within it; what an alias names once."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, yaml.SequenceNode):
            waiting += one.value
        elif isinstance(one, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, value in one.value:
                line = key.start_mark.line + 1
                if isinstance(key, yaml.ScalarNode) and (first := lines.setdefault(key.value, line)) != line:
                    yield key.value[:100], first, line
                waiting.append(value)


def _descriptor_ids(contents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Tacker stores one id for a package, and takes that of the first file."""
    found: dict[str, list[str]] = defaultdict(list)
    for file, content in contents.items():
        for node in mapping(content, "topology_template", "node_templates").values():
            if isinstance(id := field(node, "properties", "descriptor_id"), str) and id:
                found[id].append(file)
    if len(found) > 1:
        named = " and ".join(f"{id} in {files[0]}" for id, files in list(found.items())[:2])
        yield f"Definitions: the flavours have several descriptor_id, {named}; a package has one, so write it in each flavour"


def _shapes(template: Mapping[str, Any], content: Mapping[str, Any]) -> Iterator[str]:
    """Parts that are of another form than TOSCA has: the parser fails there without the name of the node."""
    place = "topology_template"
    for name in ("node_templates", "inputs", "substitution_mappings", "groups"):
        if name in template and not isinstance(template[name], dict):
            yield f"{place}.{name}: is {type_name(template[name])}, must be a mapping"
    for name, node in mapping(template, "node_templates").items():
        yield from _node(f"{place}.node_templates.{name}", node)
    policies = template.get("policies")
    if policies is not None and not isinstance(policies, list):
        yield f"{place}.policies: is {type_name(policies)}, must be a list of mappings, each with the name of one policy"
    for index, entry in enumerate(sequence(template, "policies")):
        if not (isinstance(entry, dict) and len(entry) == 1 and isinstance(next(iter(entry.values())), dict)):
            yield f"{place}.policies[{index}]: must be a mapping with one policy, NAME: {{type: ..., properties: ...}}"
    for name in ("node_types", "data_types"):
        if name in content and not isinstance(content[name], dict):
            yield f"{name}: is {type_name(content[name])}, must be a mapping"
    if "imports" in content and not isinstance(content["imports"], list):
        yield f"imports: is {type_name(content['imports'])}, must be a list of files"


def _node(where: str, node: Any) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{where}: is {type_name(node)}, must be a mapping with type"
        return
    if not isinstance(node.get("type"), str):
        yield f"{where}.type: is missing or no text; write the type of the node, such as tosca.nodes.nfv.Vdu.Compute"
    for name, kind in _SHAPES.items():
        if node.get(name) is not None and not isinstance(node[name], kind):
            yield f"{where}.{name}: is {type_name(node[name])}, must be {'a list' if kind is list else 'a mapping'}"
