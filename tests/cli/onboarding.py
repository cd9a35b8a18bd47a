# SPDX-License-Identifier: Apache-2.0
"""What Tacker does with a CSAR that it is given, by its own code."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any
from unittest import mock

import tacker.conf
from tacker.common import csar_utils

Onboarded = tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]


def onboard(csar: Path, folder: Path) -> Onboarded:
    """The VNF's properties, the flavours and the artifacts that Tacker stores; its own error for what it refuses."""
    conf = tacker.conf.CONF
    conf.set_override("vnf_package_csar_path", str(folder / "onboarded"), group="vnf_package")
    try:
        # They stand for types at a URL; a wheel of Tacker does not have the files.
        with mock.patch.object(csar_utils.toscautils, "tosca_tmpl_local_defs", dict):
            found: Onboarded = csar_utils.load_csar_data(None, str(uuid.uuid4()), str(csar))
        return found
    finally:
        conf.clear_override("vnf_package_csar_path", group="vnf_package")
