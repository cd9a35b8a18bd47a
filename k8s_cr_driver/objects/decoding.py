# SPDX-License-Identifier: Apache-2.0
"""Reads JSON of others. Python's parser recurses, and a value of two characters takes 60 bytes."""

from __future__ import annotations

import json
from typing import Any

VALUES_LIMIT = 10_000_000
"""Values of one text, which take about a gigabyte: a page of 250 objects has fewer, unless each has a MiB of empty ones."""


def decoded(text: str | bytes) -> Any:
    """The JSON value; ValueError for what is none, is nested too deeply, or has more than VALUES_LIMIT values."""
    if len(text) > VALUES_LIMIT and _parts(text) > VALUES_LIMIT:
        raise ValueError(f"the JSON has more than {VALUES_LIMIT:,} values")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _parts(text: str | bytes) -> int:
    """At least the number of values; more if texts have such characters."""
    if isinstance(text, bytes):
        return sum(map(text.count, (b",", b"{", b"[")))
    return sum(map(text.count, (",", "{", "[")))
