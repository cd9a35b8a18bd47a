# SPDX-License-Identifier: Apache-2.0
"""The scripts of management drivers: which operations of a VNFD name one, and the text of those that this driver has.

A script of this driver is the same few lines for each management driver. So a package's folder need not have it:
`k8s-cr package` adds it where the VNFD names it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_cr_driver.objects.fields import field, mapping
from k8s_cr_driver.package import vnfd

CREDENTIAL_SENDER = "credential_sender"
_PURPOSES = {CREDENTIAL_SENDER: "sends the kubeconfigs of its workload clusters"}
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
    return _SCRIPT.format(name=name, purpose=_PURPOSES[name])


def operations(template: Mapping[str, Any]) -> dict[str, str]:
    """Operation -> path of its script in the package, as Tacker reads a flavour's topology template."""
    found = {}
    for node in mapping(template, "node_templates").values():
        for operation, value in mapping(node, "interfaces", "Vnflcm").items():
            file = field(node, "artifacts", str(field(value, "implementation")), "file")
            if isinstance(file, str):
                found[operation] = posixpath.normpath(posixpath.join(vnfd.DEFINITIONS, file))
    return found


def of_driver(template: Mapping[str, Any], name: str) -> dict[str, str]:
    """Those of `operations` whose script is that of the management driver `name`, by the file's name."""
    return {operation: path for operation, path in operations(template).items() if Path(path).name == f"{name}.py"}


def missing(folder: Path) -> dict[str, str]:
    """Path in the package -> text of the scripts that a VNFD names, the folder misses, and this driver has."""
    return {
        path: text(name)
        for template in vnfd.flavours(folder).values()
        for name in _PURPOSES
        for path in of_driver(template, name).values()
        if not path.startswith("..") and not (folder / path).is_file()
    }
