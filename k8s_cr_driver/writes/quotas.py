# SPDX-License-Identifier: Apache-2.0
"""What a ResourceQuota's refusal says, and whether there is room once another object is deleted.

The words are those of the API server's admission plugin ResourceQuota, the amounts those of apimachinery's resource.Quantity.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from k8s_cr_driver.objects.fields import entries, field, mapping
from k8s_cr_driver.objects.keys import GroupKind, Object, kind_of
from k8s_cr_driver.objects.quantities import amount
from k8s_cr_driver.resources.base import PODS

_WORDS = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
_MEASURED = frozenset(
    {PODS, GroupKind("", "PersistentVolumeClaim"), GroupKind("", "Service"), GroupKind("resource.k8s.io", "ResourceClaim")}
)
"""The kinds of which a quota counts more than the objects: k8s.io/kubernetes/pkg/quota/v1/evaluator/core."""
_PLAIN = ("cpu", "memory", "ephemeral-storage")
"""The resources that a quota may name without `requests.` before them."""


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


def is_measured(live: Object) -> bool:
    """Whether only the refusal of another such object shows its share: of other kinds a quota counts the objects alone."""
    return kind_of(live) in _MEASURED and not _has_ended(live)


def has_room(message: str, live: Object, same: str) -> bool:
    """
    Whether an object that a quota refuses fits in place of `live`, which is deleted first.

    `same`: how another object like that one is refused, if it is measured. Without that the quota may not count it (scopes).
    """
    refusal, before = exceeded(message), exceeded(same)
    if refusal is None:
        return False
    if not is_measured(live):
        counted = (name for name in refusal.requested if name.startswith("count/") or not _has_ended(live))
        share: Mapping[str, Fraction] = dict.fromkeys(counted, Fraction(1))
    elif before is not None and before.quota == refusal.quota:
        share = {**_least(live), **before.requested}
    else:
        return False
    return all(
        name in share and name in refusal.used and name in refusal.limited
        and amount + refusal.used[name] - share[name] <= refusal.limited[name]
        for name, amount in refusal.requested.items()
    )  # fmt: skip


def _least(live: Object) -> dict[str, Fraction]:
    """What a quota counts of a Pod at least: its containers that run together. A refusal has what a copy would exceed."""
    if kind_of(live) != PODS:
        return {}
    found: dict[str, Fraction] = defaultdict(Fraction)
    for container in entries(live, "spec", "containers"):
        _add(found, container)
    whole: dict[str, Fraction] = defaultdict(Fraction)
    _add(whole, mapping(live, "spec"))  # what the Pod has as a whole counts instead
    found |= whole
    unnamed = {name: found[f"requests.{name}"] for name in _PLAIN if f"requests.{name}" in found}
    return {**found, **unnamed, "pods": Fraction(1), "count/pods": Fraction(1)}


def _add(found: dict[str, Fraction], holder: Object) -> None:
    for form in ("requests", "limits"):
        for name, requested in mapping(holder, "resources", form).items():
            with contextlib.suppress(ValueError, KeyError):
                found[f"{form}.{name}"] += amount(str(requested))


def _has_ended(live: Object) -> bool:
    """Whether it is a Pod that has run to its end: a quota counts nothing of it but the object."""
    return kind_of(live) == PODS and field(live, "status", "phase") in ("Succeeded", "Failed")


def _amounts(listed: str) -> dict[str, Fraction]:
    pairs = (one.partition("=") for one in listed.split(","))
    return {name: amount(text) for name, _, text in pairs}
