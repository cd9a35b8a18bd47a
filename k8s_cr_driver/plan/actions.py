# SPDX-License-Identifier: Apache-2.0
"""
What an operation does to each object: a function of what the instance has noted, what it wants, what is there, and of others.

First the rule of every verb, and of `k8s-cr diff`, `plan` and `purge`, by which an object that is not wanted any more leaves
its instance; then the plan that follows. `live` has the metadata of the instance's objects, and of Namespaces and CRDs all.
Nothing here asks the cluster.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, Object, ObjectKey, is_of_every_namespace, key_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, KEEP, SHARED, appliers, is_created, is_kept, is_managed, users
from k8s_cr_driver.plan import DIGITS
from k8s_cr_driver.plan.field_diff import Change

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


def why_used(live: Object, keys: Iterable[ObjectKey]) -> str:
    """Which one of the instance's objects is in this Namespace, or of this CRD; "" if none is."""
    key, held = key_of(live), list[ObjectKey]()
    if key.group_kind == NAMESPACE:
        held = [one for one in keys if one.namespace == key.name]
    elif key.group_kind == CRD and "spec" in live and not is_refused(live):
        kind = defined_by(live)
        held = [one for one in keys if one.group_kind == kind]
    return f"{IN_USE}: {min(held)}" if held else ""


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
        return f"{self.do.value:<7} {self.key}" + (f" ({self.why})" if self.why else "")


class Contents(NamedTuple):
    """What of others is in a Namespace, or of a CRD: why it stays, and what goes with it if it goes."""

    keeps: str = ""
    goes: str = ""


NONE = Contents()


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
    decided, staying = _decided(journal, instance, desired, live)
    actions = [Action(key, *answer) for key, answer in desired.items()]
    for key in sorted(decided):
        held = why_used(live[key], staying) or others.get(key, NONE).keeps
        decision = decide(journal, instance, live[key], held)
        is_deleted = decision.way is Way.DELETE
        actions.append(Action(key, *((Do.DELETE, others.get(key, NONE).goes) if is_deleted else (Do.RELEASE, decision.why))))
    return actions


def may_go(
    journal: InventoryContent, instance: str, desired: Collection[ObjectKey], live: Mapping[ObjectKey, Object]
) -> set[ObjectKey]:
    """The objects that go, but for Namespaces and CRDs that hold others."""
    decided, _ = _decided(journal, instance, desired, live)
    return {key for key, decision in decided.items() if not decision.outlives}


def _decided(
    journal: InventoryContent, instance: str, desired: Collection[ObjectKey], live: Mapping[ObjectKey, Object]
) -> tuple[dict[ObjectKey, Decision], set[ObjectKey]]:
    """What becomes of what is not desired, by its marks; and what stays."""
    decided = {key: decide(journal, instance, live[key]) for key in live.keys() - set(desired)}
    return decided, {*desired, *(key for key, decision in decided.items() if decision.outlives)}


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
