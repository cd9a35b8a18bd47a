# SPDX-License-Identifier: Apache-2.0
"""
The kinds of the Kubernetes that the test bed builds -> the compact data of `k8s_cr_driver/package/builtin.json`.

`python -m builds.kinds` writes the file. The source is the OpenAPI description in the Go module k8s.io/kubernetes, which the
build has brought; nothing but names, types and required fields is taken from it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from builds.commands import run

FILE = Path(__file__).parents[1] / "k8s_cr_driver/package/builtin.json"
_FAMILY = Path(__file__).parent / "go/kubernetes"
_PREFIXES = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.", "io.k8s.")
_SIMPLE = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}
_SPECIAL = {"IntOrString": "q", "Quantity": "Q", "Time": "s", "MicroTime": "s"}
"""Types that are no mappings, by the ends of their names."""


def main() -> None:
    version = re.search(r"k8s\.io/kubernetes (v\S+)", (_FAMILY / "go.mod").read_text())
    assert version
    module = json.loads(run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version[1]}"], cwd=_FAMILY))
    swagger = json.loads((Path(module["Dir"]) / "api/openapi-spec/swagger.json").read_text())
    FILE.write_text(text(compact(swagger, version[1].removeprefix("v"))))


def text(content: Mapping[str, Any]) -> str:
    """One line for each kind and type, so that a new release is read as a difference."""
    parts = []
    for name in ("kinds", "types"):
        lines = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in content[name].items())
        parts.append(f' "{name}": {{\n' + ",\n".join(lines) + "\n }")
    return f'{{\n "kubernetes": {json.dumps(content["kubernetes"])},\n' + ",\n".join(parts) + "\n}\n"


def compact(swagger: Mapping[str, Any], version: str) -> dict[str, Any]:
    """{"kubernetes": version, "kinds": {"GROUP/KIND": {"namespaced": bool, "versions": {VERSION: TYPE}}}, "types": ...}.

    `types`: {TYPE: {FIELD: code}}. A required field has "!" behind its name. A code is s (text), i (integer), n (number), b
    (boolean), q (integer or text), Q (number or text), * (anything), the name of a type, or one of these after "[" (a list) or
    "{" (a mapping).
    """
    definitions = swagger["definitions"]
    kinds: dict[str, dict[str, Any]] = defaultdict(lambda: {"namespaced": False, "versions": {}})
    for group, api, kind, is_namespaced in sorted(set(_created(swagger["paths"]))):
        found = kinds[f"{group}/{kind}"]
        found["namespaced"] |= is_namespaced
        found["versions"][api] = ""
    for name, definition in definitions.items():
        for one in definition.get("x-kubernetes-group-version-kind", ()):
            known = kinds.get(f"{one['group']}/{one['kind']}")
            if known and one["version"] in known["versions"]:
                known["versions"][one["version"]] = _short(name)
    types: dict[str, dict[str, str]] = {}
    names = {_short(name): name for name in definitions}
    wanted = [type_ for kind in kinds.values() for type_ in kind["versions"].values()]
    while wanted:
        if (short := wanted.pop()) not in types:
            types[short] = dict(_fields(definitions[names[short]]))
            wanted += [code.lstrip("[{") for code in types[short].values() if code.lstrip("[{") in names]
    return {"kubernetes": version, "kinds": dict(sorted(kinds.items())), "types": dict(sorted(types.items()))}


def _created(paths: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """(group, version, kind, whether it is namespaced) of what can be created at a path of its own."""
    for path, methods in paths.items():
        if "post" in methods and "{name}" not in path and (kind := methods["post"].get("x-kubernetes-group-version-kind")):
            yield kind["group"], kind["version"], kind["kind"], "{namespace}" in path


def _fields(definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    required = definition.get("required", ())
    for name, schema in sorted(definition.get("properties", {}).items()):
        yield f"{name}!" if name in required else name, _code(schema)


def _code(schema: Mapping[str, Any]) -> str:
    if reference := schema.get("$ref"):
        short = _short(reference.rpartition("/")[2])
        last = short.rpartition(".")[2]
        if last in _SPECIAL:
            return _SPECIAL[last]
        is_free = last in ("RawExtension", "FieldsV1", "Patch") or (last.startswith("JSON") and last != "JSONSchemaProps")
        return "*" if is_free else short
    if schema.get("type") == "array":
        return "[" + _code(schema["items"])
    if "additionalProperties" in schema:
        return "{" + _code(schema["additionalProperties"])
    return _SIMPLE.get(schema.get("type", ""), "*")


def _short(name: str) -> str:
    """`core.v1.Pod` of `io.k8s.api.core.v1.Pod`."""
    return next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)


if __name__ == "__main__":
    main()
