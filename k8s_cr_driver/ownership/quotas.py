# SPDX-License-Identifier: Apache-2.0
"""What a ResourceQuota's refusal says, and whether there is room once another object is gone.

The words are those of the API server's admission plugin ResourceQuota, the amounts those of apimachinery's resource.Quantity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.objects.keys import GroupKind

_WORDS = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
_MEASURED = frozenset(GroupKind("", kind) for kind in ("Pod", "PersistentVolumeClaim", "Service"))
"""Of all other kinds a quota counts the objects alone: k8s.io/kubernetes/pkg/quota/v1/evaluator/core."""
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?[0-9.]{1,40})([a-zA-Z]{0,2}|[eE][+-]?[0-9]{1,2})")


class Exceeded(NamedTuple):
    """A refusal: the quota, and what was requested, used and allowed of each resource that is exceeded."""

    quota: str
    requested: Mapping[str, Fraction]
    used: Mapping[str, Fraction]
    limited: Mapping[str, Fraction]


def exceeded(message: str) -> Exceeded | None:
    """None if it cannot be read."""
    found = _WORDS.search(message)
    try:
        return Exceeded(found[1], *map(_amounts, found.groups()[1:])) if found else None
    except (ValueError, KeyError):
        return None


def has_room(message: str, kind: GroupKind, same: Callable[[], ApiError | None]) -> bool:
    """
    Whether an object that a quota refuses fits in place of one that is deleted first.

    `same`: how another object like that one is refused, by which its own share is known.
    """
    refusal = exceeded(message)
    if refusal is None:
        return False
    share: Mapping[str, Fraction] = dict.fromkeys(refusal.requested, Fraction(1))
    if kind in _MEASURED:
        error = same()
        before = exceeded(error.message) if error else None
        if before is None or before.quota != refusal.quota:
            return False
        share = before.requested
    return all(
        name in share and name in refusal.used and name in refusal.limited
        and amount + refusal.used[name] - share[name] <= refusal.limited[name]
        for name, amount in refusal.requested.items()
    )  # fmt: skip


def _amounts(listed: str) -> dict[str, Fraction]:
    pairs = (one.partition("=") for one in listed.split(","))
    return {name: _amount(text) for name, _, text in pairs}


def _amount(text: str) -> Fraction:
    """ValueError or KeyError if it is no quantity."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(text)
    number, suffix = Fraction(found[1]), found[2]
    if suffix in _BINARY:
        return number * Fraction(2 ** _BINARY[suffix])
    return Fraction(number * Fraction(10) ** (int(suffix[1:]) if suffix[1:] else _DECIMAL[suffix]))
