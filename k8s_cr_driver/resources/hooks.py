# SPDX-License-Identifier: Apache-2.0
"""Groups of hooks that few kinds need: a method of `CustomResource` returns each, by default one that does nothing.

A kind that has more to say returns a subclass, with what that needs of the object. As all hooks they make no request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from k8s_cr_driver.objects.keys import CloudEntry, GroupKind, Object, ObjectKey, key_of, labels


@dataclass(frozen=True)
class Children:
    """Which objects are the VNFCs of an object: those of `kind` in `namespace` that it controls (ownerReferences), or itself.

    `selector` is a label selector that finds them all, and may find others. `through` are the kinds between, from the top:
    a Deployment controls ReplicaSets, and these the Pods; the selector finds them, too. `version` may be "": any.
    With `by_selector` they are what the selector finds, whoever controls them; one that is "" finds none. Only those that an
    object of the instance controls are deleted, and a replica may be several of them, unless they are `one_each`. With
    `or_replicas` each replica is a VNFC as long as there are none.
    """

    kind: GroupKind
    version: str
    namespace: str
    selector: str
    through: tuple[GroupKind, ...] = ()
    by_selector: bool = False
    or_replicas: bool = False
    one_each: bool = False


@dataclass(frozen=True)
class Orphans:
    """
    Objects that the controller of a deleted object leaves behind: those of `kind` in `namespace` with such `names` that the
    label selector finds; "" finds all. A terminate deletes them.

    Without a selector (None) nobody knows which ones are the object's, and all are left. `labels` are those that they have in
    any case.
    """

    kind: GroupKind
    version: str
    namespace: str
    names: re.Pattern[str]
    selector: str | None = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    are_taken: bool = False
    """Whether they are deleted with the object, whoever deletes it."""
    are_kept: bool = False
    """Whether the author of the object wants to keep them."""

    def are_called(self, key: ObjectKey) -> bool:
        """Whether an object of their kind has the name and the place of one."""
        return key.namespace == self.namespace and self.names.fullmatch(key.name) is not None

    def may_include(self, orphan: Object) -> bool:
        """Whether an object of their kind may be one of them."""
        return self.are_called(key_of(orphan)) and self.labels.items() <= labels(orphan).items()


class Scaling:
    """Which counts an object can have, and in which order its VNFCs go."""

    removal_annotations: ClassVar[Mapping[str, str]] = {}
    """The annotations of a VNFC that make its controller remove it first in a scale in; none if it knows none."""

    few_unavailable: ClassVar[str] = ""
    """Why `max_unavailable` is a limit, as a clause of a message."""

    def error(self, count: int) -> str:
        """Why the object cannot have that count, and the remedy; "" if it can."""
        del count
        return ""

    def autoscaler(self) -> str:
        """What else sets the count and would undo a scale, and the remedy; "" if nothing does."""
        return ""

    def removal_order(self, several: Sequence[Object]) -> list[Object] | None:
        """The VNFCs in the order in which a scale in removes them, None if that is unknown."""
        del several
        return None

    def max_unavailable(self, count: int) -> int:
        """How many of `count` VNFCs may be deleted, or not ready, at the same time."""
        return count

    def awaited_revision(self, live: Object) -> str:
        """The revision that the VNFCs of `live` are to have, if it replaces none of them while one is not ready, else ""."""
        del live
        return ""


class Changes:
    """What a live object may become."""

    def error(self, live: Object | None, desired: Sequence[Object]) -> str:
        """
        Why `live`, None if it is not there, cannot become this object of the set `desired`, and the remedy; "" if it can.

        Before a refusal it is called again, with those objects of `Relations.applied_after` that only the cluster has.
        """
        del live, desired
        return ""

    def error_of_made(self, made: Mapping[GroupKind, Sequence[Object]], desired: Sequence[Object]) -> str:
        """The same for what a controller has made of the live object; `made` has no kind that may not be listed."""
        del made, desired
        return ""

    def is_last(self, live: Object) -> bool:
        """Whether `live` is to become this object only when the others of the set are ready."""
        del live
        return False


@dataclass(frozen=True)
class Made:
    """The `several` objects that a controller makes of `live`. Its own status follows theirs."""

    live: Object
    several: Sequence[Children]

    are_awaited: ClassVar[bool] = True
    """Whether they are to be ready before it; its own counts may say as much of them."""

    def missing(self, found: Mapping[GroupKind, Sequence[Object]]) -> str:
        """What of `live` those that were found do not have yet; "" if they have it all. No kind that may not be listed."""
        del found
        return ""


class Relations:
    """How an object stands to the other objects of the set."""

    is_rotated: ClassVar[bool] = False
    """Whether others refer to it, and a change of its spec takes effect only by a reference to another object."""

    sums_up: ClassVar[bool] = False
    """Whether the kind has `is_held_up_by`: it is ready only when others are."""

    def names(self) -> Sequence[tuple[Object, str, ObjectKey]]:
        """Where the manifest names an object without its kind: the mapping, the field in that with the name, the object."""
        return []

    def applied_after(self) -> Sequence[ObjectKey]:
        """Objects without which admission may refuse this one, so that those of them in the set are to be ready before."""
        return []

    def deleted_before(self, others: Iterable[Object]) -> Sequence[ObjectKey]:
        """Those of `others` that may be deleted only after this object."""
        del others
        return []

    def pauses(self, others: Iterable[Object]) -> Sequence[ObjectKey]:
        """Those of `others` in the set on which no controller acts once this object is applied, as its author wants it."""
        del others
        return []

    def is_held_up_by(self, live: Object, others: Iterable[Object]) -> bool:
        """Whether nothing but some of `others` keeps `live` from being ready: live ones that are not ready themselves."""
        del live, others
        return False


@dataclass(frozen=True)
class Causes:
    """Where it is said why an object is not ready, beside its own status."""

    objects: Sequence[ObjectKey] = ()
    """Objects that it refers to and waits for: the cause may be in their status alone."""
    cloud: CloudEntry | Children | None = None
    """
    The cloud in which its controller acts, or the objects of which one names it: controllers may report nowhere that it is
    closed to them. With a server whose failure the status does not explain.
    """
    silent_deletion: float = 0.0
    """Seconds for which its controller may be at work on a deletion without any write, if that is longer than usual."""
