# SPDX-License-Identifier: Apache-2.0
"""
What a terminate has left in a cloud, in the metadata of the VnfInstance.

Tacker empties instantiatedVnfInfo at the end of a terminate, and its record of a completed operation has no field for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from k8s_cr_driver.objects.fields import mapping

OWN, KEY = "k8s_cr", "left-in-cloud"
"""Where in the metadata the lines are."""


def note(record: Any, lines: Sequence[str]) -> None:
    """Without `lines` removes those of an earlier terminate."""
    metadata = (record.metadata if record.obj_attr_is_set("metadata") else None) or {}
    kept = {name: value for name, value in mapping(metadata, OWN).items() if name != KEY}
    own = {**kept, KEY: list(lines)} if lines else kept
    others = {name: value for name, value in metadata.items() if name != OWN or not isinstance(value, dict)}
    now = {**others, OWN: own} if own else others
    if now != metadata:
        record.metadata = now


def sentence(lines: Sequence[str]) -> str:
    """For the error of a terminate that fails later: then Tacker does not store the metadata."""
    return f"Of its workload clusters these may stay in the cloud: {'; '.join(lines)}." if lines else ""
