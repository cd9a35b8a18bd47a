# SPDX-License-Identifier: Apache-2.0
"""What the TOSCA parser of Tacker refuses when a package is onboarded."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from toscaparser.common.exception import ExceptionCollector, ValidationError
from toscaparser.tosca_template import ToscaTemplate

from k8s_cr_driver.objects.fields import field, mapping, texts
from k8s_cr_driver.package import vnfd
from k8s_cr_driver.package.tosca_meta import _meta_blocks

# It warns of each input without a default: those of a flavour have none.
logging.getLogger("tosca.model").setLevel(logging.ERROR)


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
        for refusal in _refusals(Path(temporary, entry)):
            yield f"{entry}: Tacker refuses to onboard it: {refusal}"


def _refusals(entry: Path) -> list[str]:
    """What the parser says, without the places in its own code."""
    try:
        ToscaTemplate(str(entry))
    except ValidationError:
        return list(dict.fromkeys(ExceptionCollector.getExceptionsReport(full=False)))
    except Exception as error:  # the parser takes much for granted
        return [f"the parser of TOSCA fails, {type(error).__name__}: {error}"]
    return []
