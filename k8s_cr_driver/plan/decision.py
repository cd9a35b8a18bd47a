# SPDX-License-Identifier: Apache-2.0
"""
How an object that is not wanted any more leaves its instance: the rule of every verb, and of `k8s-cr diff`, `plan` and `purge`.

A pure function of what the instance has noted and of the object as it is. What a Namespace or CRD holds is found out before.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from typing import NamedTuple

from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, ObjectKey, is_of_every_namespace, key_of
from k8s_cr_driver.objects.marks import KEEP, SHARED, is_created, is_kept, users

EXISTED, IN_USE, ANNOTATED = "it existed before the instance", "it holds objects of this instance", f"annotated with {KEEP}"
IN_EACH = "Kubernetes puts it into each Namespace"


class Way(enum.Enum):
    """What is done to the object."""

    DELETE = enum.auto()
    KEEP = enum.auto()
    """It stays with all its fields."""
    GIVE_BACK = enum.auto()
    """It was adopted: the fields that nobody else owns go."""
    GIVE_UP = enum.auto()
    """The instance's fields go, and perhaps the object with its Namespace."""
    LEAVE_TO_OTHERS = enum.auto()
    """Other instances use it: the label goes."""
    LEAVE = enum.auto()
    """No instance uses it any more, nor deletes it."""


class Decision(NamedTuple):
    """`why` it is released, "" if it is deleted."""

    way: Way
    why: str = ""

    @property
    def outlives(self) -> bool:
        """Whether the object stays, so that its Namespace and its CRD have to stay, too."""
        return self.way not in (Way.DELETE, Way.GIVE_UP)


def decide(journal: InventoryContent, instance: str, live: Object, held: str = "") -> Decision:
    """`held`: why a Namespace or CRD stays that the instance could delete, by what is in it, or of it."""
    key = key_of(live)
    is_shared = key.group_kind in SHARED
    others = users(live) - {instance} if is_shared else set()
    if why := stays(journal, live):
        way = Way.KEEP if why == ANNOTATED else Way.LEAVE_TO_OTHERS if others else Way.GIVE_BACK
        return Decision(way, why)
    if is_of_every_namespace(key):
        return Decision(Way.GIVE_UP, IN_EACH)
    if others:
        return Decision(Way.LEAVE_TO_OTHERS, used_by_others(others))
    if is_shared and (held or not is_created(live)):
        return Decision(Way.LEAVE, held or EXISTED)
    return Decision(Way.DELETE)


def stays(journal: InventoryContent, live: Object) -> str:
    """Why an object outlives its instance whoever else uses it: it was adopted, or is to be kept; "" for others."""
    return EXISTED if journal.is_adopted(live) else ANNOTATED if is_kept(live) else ""


def used_by_others(others: Collection[str]) -> str:
    """Why a shared object stays that other instances use."""
    return f"used by VNF instance {', '.join(sorted(others))}"


def holds(live: Object, keys: Iterable[ObjectKey]) -> bool:
    """Whether one of the objects is in this Namespace, or of this CRD."""
    key = key_of(live)
    if key.group_kind == NAMESPACE:
        return any(one.namespace == key.name for one in keys)
    is_defined = key.group_kind == CRD and "spec" in live and not is_refused(live)
    return is_defined and any(one.group_kind == defined_by(live) for one in keys)
