# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `helm` on PATH: its commands and options, and templates with `{{ .Values.a.b }}` and `{{ random }}`.

It shows how the tool calls helm and takes what that prints; what Helm makes of charts is Helm's.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

_PROGRAM = """#!{python}
import io, json, pathlib, re, sys, tarfile, uuid, yaml

def parts(path):
    path = pathlib.Path(path)
    if path.is_dir():
        return {{p.relative_to(path).as_posix(): p.read_text(errors="replace") for p in sorted(path.rglob("*")) if p.is_file()}}
    with tarfile.open(path) as archive:
        return {{m.name.partition("/")[2]: archive.extractfile(m).read().decode() for m in archive if m.isfile()}}

def put(values, path, value):
    *way, last = path.split(".")
    for step in way:
        values = values.setdefault(step, {{}})
    values[last] = value

def refused(schema, value, at=""):
    types = {{"integer": int, "string": str, "object": dict}}
    if "type" in schema and type(value) is not types[schema["type"]]:
        yield f"- at '{{at}}': got {{type(value).__name__}}, want {{schema['type']}}"
    elif value not in schema.get("enum", [value]):
        yield f"- at '{{at}}': value must be one of {{schema['enum']}}"
    for name, inner in schema.get("properties", {{}}).items() if isinstance(value, dict) else ():
        yield from refused(inner, value[name], f"{{at}}/{{name}}")

command, arguments = sys.argv[1], sys.argv[2:]
if command == "pull":
    where = pathlib.Path(arguments[arguments.index("--destination") + 1])
    sys.exit("Error: not found") if "missing" in arguments[0] else None
    (where / "web-1.2.3.tgz").write_bytes(pathlib.Path({archive!r}).read_bytes())
elif command == "show":
    print(parts(arguments[1])[{{"chart": "Chart.yaml", "values": "values.yaml"}}[arguments[0]]])
elif command == "template":
    release, chart, *options = arguments
    files, values, namespace, crds, served = parts(chart), {{}}, "default", False, []
    values = yaml.safe_load(files["values.yaml"])
    while options:
        option = options.pop(0)
        if option == "--include-crds":
            crds = True
            continue
        if option == "--skip-schema-validation":
            files.pop("values.schema.json", None)
            continue
        value = options.pop(0)
        if option == "--namespace":
            namespace = value
        elif option == "--api-versions":
            served.append(value.replace("/", "-"))
        elif option == "--values":
            values |= yaml.safe_load(pathlib.Path(value).read_text())
        elif option in ("--set", "--set-string"):
            path, _, text = value.partition("=")
            put(values, path, text if option == "--set-string" else yaml.safe_load(text))
    if wrong := list(refused(json.loads(files.get("values.schema.json", "{{}}")), values)):
        sys.exit("\\n".join(["Error: values don't meet the specifications of the schema(s):", *wrong]))
    def filled(match):
        words = match[1].split()
        if words[0] == "random":
            return uuid.uuid4().hex
        found = {{"Served": ".".join(served), "Values": values, "Release": {{"Name": release, "Namespace": namespace}}}}
        for step in words[0].strip(".").split("."):
            found = found[step]
        if words[1:2] == ["times2"]:
            found = found * 2
        return str(found).lower() if isinstance(found, bool) else str(found)
    for name, text in files.items():
        if name.startswith("templates/") or (crds and name.startswith("crds/")):
            print(f"---\\n# Source: web/{{name}}")
            print(re.sub(r"\\{{\\{{ ([^}}]+) \\}}\\}}", filled, text) if name.startswith("templates/") else text)
else:
    sys.exit(f"Error: unknown command {{command}}")
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, archive: Path | None = None) -> None:
    """Puts it first on PATH; `archive` is the chart that it pulls, whatever the name."""
    folder.mkdir(parents=True)
    program = folder / "helm"
    program.write_text(_PROGRAM.format(python=sys.executable, archive=str(archive)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
