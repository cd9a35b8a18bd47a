# SPDX-License-Identifier: Apache-2.0
"""The VNFD of a sample package's folder, changed when the package is made."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml


def rename(package: Path, variant: str) -> None:
    """Give the VNFD an identifier that follows from its own and from `variant`: both can be onboarded then."""
    file = _file(package)
    text = file.read_text()
    own = yaml.safe_load(text)["topology_template"]["node_templates"]["VNF"]["properties"]["descriptor_id"]
    file.write_text(text.replace(own, str(uuid.uuid5(uuid.UUID(own), variant))))


def change(package: Path, by: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Have its node type and its VNF, both mappings, changed."""
    file = _file(package)
    content = yaml.safe_load(file.read_text())
    [node_type] = content["node_types"].values()
    by(node_type, content["topology_template"]["node_templates"]["VNF"])
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def _file(package: Path) -> Path:
    """The one that is not of SOL001."""
    [file] = (path for path in (package / "Definitions").iterdir() if not path.name.startswith("etsi_nfv_"))
    return file
