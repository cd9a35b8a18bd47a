# SPDX-License-Identifier: Apache-2.0
"""The scripts of management drivers: which ones a VNFD names, their digests, and the text of those that this project has.

Tacker runs a script as its own user, so a package is code on the conductor. A script of this project is the same few lines for
each management driver. So a package's folder need not have it: `k8s-cr package` adds it where the VNFD names it.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.package import files, tosca_meta, vnfd

CREDENTIAL_SENDER = "credential_sender"
OWN = {
    CREDENTIAL_SENDER: "sends the kubeconfigs of its workload clusters",
    "ha_masters": "makes a Kubernetes cluster with several masters of its servers",
    "node_ports": "exposes its NodePorts on an external load balancer",
    "kubespray": "makes a Kubernetes cluster of its servers by kubespray",
    "persistent_volumes": "makes a Kubernetes cluster with volumes over NFS of its servers",
}
"""Of each management driver that has a folder in `mgmt`: from here follow the script's text and its digest."""
_IMPLEMENTATION = "tosca.artifacts.Implementation"
_IMPORTABLE = (".py", ".pyc", ".so")
"""Ends of the names of modules on Linux (`importlib.machinery.all_suffixes`)."""
_SCRIPT = """\
# SPDX-License-Identifier: Apache-2.0
\"\"\"Management driver of a VNF package: {purpose}. See README.md.\"\"\"

import sys

from k8s_cr_driver.lcm import hook

if __name__ == "__main__":
    sys.exit(hook.run("{name}", __file__))
"""


def text(name: str) -> str:
    """The script of the management driver `name`, one of this driver's."""
    return _SCRIPT.format(name=name, purpose=OWN[name])


def own(path: str) -> str:
    """The management driver of this project whose script's name a file has; "" for another name."""
    name = Path(path).stem
    return name if name in OWN and Path(path).suffix == ".py" else ""


def digests() -> frozenset[str]:
    """The SHA-256 digests of this project's own scripts."""
    return frozenset(hashlib.sha256(text(name).encode()).hexdigest() for name in OWN)


def unusable(digests: Iterable[str]) -> list[str]:
    """A sentence for each of the digests that an operator allows that is none; `*` stands for all."""
    return [
        f"{one!r} is no SHA-256; write its 64 hexadecimal digits alone, as k8s-cr check-package prints them"
        for one in digests
        if one != "*" and not re.fullmatch("[0-9a-fA-F]{64}", one)
    ]


def named(contents: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """
    Path in the package -> the operations that name it, of each script in the artifacts of TOSCA files.

    All that Tacker may run, and what no operation names. A path that leads out of the package begins with `/` or `..`.
    """
    found: dict[str, list[str]] = {}
    for content in contents:
        nodes = mapping(content, "topology_template", "node_templates"), mapping(content, "node_types")
        for node in (one for several in nodes for one in several.values()):
            for name, artifact in mapping(node, "artifacts").items():
                file = field(artifact, "file")
                if isinstance(file, str) and str(field(artifact, "type")).startswith(_IMPLEMENTATION):
                    naming = mapping(node, "interfaces", "Vnflcm").items()
                    found.setdefault(_path(file), []).extend(
                        str(operation) for operation, value in naming if field(value, "implementation") == name
                    )
    return found


def programs(folder: Path, paths: Iterable[str]) -> dict[str, str]:
    """
    Path -> SHA-256 of the scripts with these paths in a package, and of what they can import of it: code beside them.

    Python looks for modules in the folder of a script first. The digest is "" for what is no file of the package.
    """
    found: dict[str, str] = {}
    for path in paths:
        file = files.inside(folder, path)
        if file is None:
            found[path] = ""
            continue
        found[path] = tosca_meta._digest_of("sha-256", file)
        found |= {f"{posixpath.dirname(path)}/{name}".lstrip("/"): digest for name, digest in code(file.parent)}
    return found


def code(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and SHA-256 of each file below a folder that Python can import."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in _IMPORTABLE and file.is_file():
            yield file.relative_to(folder).as_posix(), tosca_meta._digest_of("sha-256", file)


def _path(file: str) -> str:
    """Of what an artifact names, seen from Definitions."""
    return posixpath.normpath(posixpath.join(vnfd.DEFINITIONS, file))


def operations(template: Mapping[str, Any]) -> dict[str, str]:
    """Operation -> path of its script in the package, as Tacker reads a flavour's topology template."""
    found = {}
    for node in mapping(template, "node_templates").values():
        for operation, value in mapping(node, "interfaces", "Vnflcm").items():
            file = field(node, "artifacts", str(field(value, "implementation")), "file")
            if isinstance(file, str):
                found[operation] = _path(file)
    return found


def of_driver(template: Mapping[str, Any], name: str) -> dict[str, str]:
    """Those of `operations` whose script is that of the management driver `name`, by the file's name."""
    return {operation: path for operation, path in operations(template).items() if Path(path).name == f"{name}.py"}


def missing(folder: Path) -> dict[str, str]:
    """Path in the package -> text of the scripts that a VNFD names, the folder misses, and this driver has."""
    return {
        path: text(name)
        for template in vnfd.flavours(folder).values()
        for name in OWN
        for path in of_driver(template, name).values()
        if not path.startswith("..") and not (folder / path).is_file()
    }
