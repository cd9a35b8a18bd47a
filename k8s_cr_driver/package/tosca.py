# SPDX-License-Identifier: Apache-2.0
"""What the TOSCA parser of Tacker refuses when a package is onboarded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from k8s_cr_driver.objects.fields import field, mapping, texts
from k8s_cr_driver.package import vnfd
from k8s_cr_driver.package.tosca_meta import _meta_blocks

_PARSER = "k8s_cr_driver.package.tosca_parser"
_SECONDS = 60
"""In which the parser must have ended. It takes less than one for the packages that Tacker comes with."""


def problems(folder: Path) -> Iterator[str]:
    """A sentence for each mistake, in a folder that `check` has found no problem in.

    The parser would load imports from URLs, so a package that has some is not parsed.
    """
    contents = vnfd.definitions(folder)
    for file, content in contents.items():
        for name, node in mapping(content, "topology_template", "node_templates").items():
            if field(node, "properties", "descriptor_id") == "":
                yield f"{vnfd.DEFINITIONS}/{file}: descriptor_id of {name} is empty; give the package a UUID of its own"
    if any("://" in name for content in contents.values() for name in texts(content, "imports")):
        return
    entry = _meta_blocks(folder)[0]["Entry-Definitions"]
    with tempfile.TemporaryDirectory() as temporary:
        definitions = shutil.copytree(folder / vnfd.DEFINITIONS, Path(temporary, vnfd.DEFINITIONS))
        for path in vnfd._missing_types(folder):
            shutil.copy(path, definitions)
        if not (copy := Path(temporary, entry)).exists():  # beside the folder of the flavours
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / entry, copy)
        for refusal in _refusals(temporary, entry):
            yield f"{entry}: Tacker refuses to onboard it: {refusal}"


def _refusals(folder: str, entry: str) -> list[str]:
    command = [sys.executable, "-m", _PARSER, entry]
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=True)  # noqa: S603
    except subprocess.TimeoutExpired:
        return [
            f"the parser of TOSCA has not ended for {_SECONDS} s; look for a type that is derived from itself, a file that "
            "imports itself, and a pattern of a property that takes long"
        ]
    except subprocess.CalledProcessError as error:
        return [f"the parser of TOSCA ends with status {error.returncode}"]
    found: list[str] = json.loads(ended.stdout)
    return found
