# SPDX-License-Identifier: Apache-2.0
"""
What an operation does to each object: a function of what the instance has noted, what it wants, what is there, and of others.

`live` has the metadata of the instance's objects, and of Namespaces and CRDs all. Nothing here asks the cluster.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from k8s_cr_driver.journal.entries import InventoryContent
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, ObjectKey, key_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, SHARED, appliers, is_created, is_kept, is_managed, users
from k8s_cr_driver.plan.field_diff import Change
from k8s_cr_driver.writes.delete import ANNOTATED, EXISTED, IN_USE, used_by_others


class Do(enum.Enum):
    """What is done to an object."""

    CREATE = "create"
    APPLY = "apply"
    REPLACE = "replace"
    DELETE = "delete"
    RELEASE = "release"
    LEAVE = "leave"
    CONFLICT = "conflict"
    REFUSE = "refuse"


class Answer(NamedTuple):
    """What the cluster says to a dry run of a desired object; CONFLICT and REFUSE: it does not take it, `why` says why."""

    do: Do
    why: str = ""
    changes: Sequence[Change] = ()


class Action(NamedTuple):
    """What is done to one object, and why it stays or is not taken, or what is deleted with it."""

    key: ObjectKey
    do: Do
    why: str = ""
    changes: Sequence[Change] = ()

    def __str__(self) -> str:
        return f"{self.do.value:<8}{self.key}" + (f" ({self.why})" if self.why else "")


class Contents(NamedTuple):
    """What of others is in a Namespace, or of a CRD: why it stays, and what goes with it if it goes."""

    keeps: str = ""
    goes: str = ""


NONE = Contents()
DIGITS = 32
"""Of a digest, hexadecimal."""


def plan(
    journal: InventoryContent,
    instance: str,
    desired: Mapping[ObjectKey, Answer],
    live: Mapping[ObjectKey, Object],
    others: Mapping[ObjectKey, Contents],
) -> list[Action]:
    """
    The actions on the `desired` objects in their order, then on the other `live` ones in that of their keys.

    `others`: of Namespaces and CRDs that `may_go`.
    """
    kept, staying = _kept(journal, instance, desired, live), _staying(journal, instance, desired, live)
    actions = [Action(key, *answer) for key, answer in desired.items()]
    for key in sorted(live.keys() - desired.keys()):
        why = kept.get(key, "") or (IN_USE if holds(live[key], staying) else "") or others.get(key, NONE).keeps
        goes = "" if why else others.get(key, NONE).goes
        actions.append(Action(key, Do.RELEASE if why else Do.DELETE, why or goes))
    return actions


def may_go(
    journal: InventoryContent, instance: str, desired: Collection[ObjectKey], live: Mapping[ObjectKey, Object]
) -> set[ObjectKey]:
    """The objects that go, but for Namespaces and CRDs that hold others."""
    return live.keys() - _staying(journal, instance, desired, live)


def _staying(
    journal: InventoryContent, instance: str, desired: Collection[ObjectKey], live: Mapping[ObjectKey, Object]
) -> set[ObjectKey]:
    return {*desired, *_kept(journal, instance, desired, live)}


def _kept(
    journal: InventoryContent, instance: str, desired: Collection[ObjectKey], live: Mapping[ObjectKey, Object]
) -> dict[ObjectKey, str]:
    reasons = {key: why_it_stays(journal, instance, one) for key, one in live.items() if key not in desired}
    return {key: why for key, why in reasons.items() if why}


def why_it_stays(journal: InventoryContent, instance: str, live: Object) -> str:
    """Why an object that is not wanted is released, as far as its marks say; "" if it goes."""
    if journal.is_adopted(live):
        return EXISTED
    if is_kept(live):
        return ANNOTATED
    if key_of(live).group_kind not in SHARED:
        return ""
    others = users(live) - {instance}
    return used_by_others(others) if others else "" if is_created(live) else EXISTED


def holds(live: Object, keys: Iterable[ObjectKey]) -> bool:
    """Whether one of the objects is in this Namespace, or of this CRD."""
    key = key_of(live)
    if key.group_kind == NAMESPACE:
        return any(one.namespace == key.name for one in keys)
    is_defined = key.group_kind == CRD and "spec" in live and not is_refused(live)
    return is_defined and any(one.group_kind == defined_by(live) for one in keys)


def is_member(journal: InventoryContent, instance: str, live: Object) -> bool:
    """Whether an object is the instance's: by label, or by field manager and inventory."""
    key, marks = key_of(live), marked_by(live)
    is_recorded = journal.is_member(key)
    if not is_managed(live, instance):
        return instance in marks and is_recorded and not journal.is_adopted(live)
    is_hidden = is_recorded if key.group_kind in SHARED else not marks & appliers(live)
    return journal.may_own(live, instance) and (instance in marks or is_hidden)


def marked_by(live: Object) -> set[str]:
    """The instances whose labels an object has."""
    return users(live) if key_of(live).group_kind in SHARED else {labels(live).get(INSTANCE_LABEL, "")}


def digest(actions: Iterable[Action], counts: Mapping[ObjectKey, str]) -> str:
    """
    Of what is done and written, without the values of secrets, which are in no `changes`, and without counts.

    `counts`: the path of the count of each object that has one: only Tacker knows what it is to be.
    """
    done = []
    for action in sorted(actions, key=lambda one: one.key):
        written = [change for change in action.changes if change.path != counts.get(action.key)]
        is_left = action.do is Do.APPLY and action.changes and not written
        done.append([*action.key, (Do.LEAVE if is_left else action.do).value, written])
    return hashlib.sha256(json.dumps(done, sort_keys=True, default=str).encode()).hexdigest()[:DIGITS]
