# SPDX-License-Identifier: Apache-2.0
"""Which VNFCs of a VDU a scale in removes first: Tacker proposes the first ones of the record to the NFVO."""

from __future__ import annotations

import re

from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.base import CustomResource


def in_order(obj: CustomResource, several: list[Object]) -> list[Object]:
    """Those first that the controller of a VDU's object removes first, where that is known, else the newest."""
    newest = sorted(several, key=lambda one: (_created(one), _natural(one["metadata"]["name"])), reverse=True)
    return obj.scaling().removal_order(newest) or newest


def _created(live: Object) -> str:
    return str(live["metadata"].get("creationTimestamp", ""))


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts tab-9 before tab-11: numbers by their value, all else as text."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
