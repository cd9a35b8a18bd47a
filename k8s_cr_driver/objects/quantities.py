# SPDX-License-Identifier: Apache-2.0
"""Amounts as Kubernetes writes them: "500m", "10Gi", "1e3" (apimachinery's resource.Quantity)."""

from __future__ import annotations

import re
from fractions import Fraction

_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?[0-9.]{1,40})([a-zA-Z]{0,2}|[eE][+-]?[0-9]{1,2})")


def amount(text: str) -> Fraction:
    """The exact number; ValueError or KeyError if the text is no quantity."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(text)
    number, suffix = Fraction(found[1]), found[2]
    if suffix in _BINARY:
        return number * Fraction(2 ** _BINARY[suffix])
    return Fraction(number * Fraction(10) ** (int(suffix[1:]) if suffix[1:] else _DECIMAL[suffix]))


def as_amount(value: object) -> object:
    """The exact number of a quantity, so that 1Gi and 1024Mi are equal; anything else as it is."""
    try:
        return amount(str(value)) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value
    except (ValueError, KeyError):
        return value


def is_less(one: object, other: object) -> bool:
    """Whether one amount is less than another; False if either is no quantity."""
    try:
        return amount(str(one)) < amount(str(other))
    except (ValueError, KeyError):
        return False
