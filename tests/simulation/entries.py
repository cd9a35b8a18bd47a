# SPDX-License-Identifier: Apache-2.0
"""What a ledger notes: the objects, whoever acts, and the runs of workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key

STATEFUL_SETS: Resource = ("apps", "statefulsets")
CLAIMS: Resource = ("", "persistentvolumeclaims")
JOBS: Resource = ("batch", "jobs")
NAMESPACES: Resource = ("", "namespaces")
WIDGETS: Resource = ("sim.example.com", "widgets")
CRDS: Resource = ("apiextensions.k8s.io", "customresourcedefinitions")
SHARED: tuple[Resource, ...] = (NAMESPACES, CRDS)
"""The last of several instances that bring it deletes it, whoever of them made it."""
PROTECTED: tuple[Resource, ...] = (("", "pods"), CLAIMS, ("", "secrets"))
"""What of users never goes with a Namespace; the rest in it goes with it. Their widgets never go with the CRD."""

CONTROLLER = "controller"
USER = "user"
NO_ONE = "no one"


@dataclass(frozen=True)
class Actor:
    """`owner`: the instance that a worker works for, USER or CONTROLLER; `is_direct`: by a request of its own."""

    owner: str
    name: str
    is_direct: bool = True

    def __str__(self) -> str:
        return self.name if self.is_direct else f"{self.name}'s cascade"


NOBODY = Actor(CONTROLLER, "the cluster")


@dataclass
class Entry:
    """What is known of one object, by its uid."""

    resource: Resource
    key: Key
    owner: str
    controller: Entry | None = None
    """What has made it for its owner."""
    touched: float = -1000.0
    """When somebody other than the owner last wrote or deleted it."""
    reclaimable_by: str = ""
    """The instance of which this is an object that somebody else has made again, labels and all."""
    made_by_others: float = -1000.0
    """When somebody else made it, if it is reclaimable."""
    is_unnamed: bool = False
    """Whether it is reclaimable, and the inventory that named it was lost: nothing but a copied label says whose it is."""
    held_others: bool = False
    """Whether it is a Namespace or CRD that has had such an object, or a widget of a user that has gone with its Namespace."""
    marker: Actor | None = None
    """Who has begun its deletion."""
    is_taken: bool = False
    """Whether an owner takes it along, that an operator has set too late for anybody to release it."""
    is_kept: bool = False
    """Whether it is to outlive its owner."""
    released_by: str = ""
    """The worker that has released it; a later one does not know it."""
    is_labelled: bool = False
    """Whether it has the label of its owner."""
    is_claimed: bool = False
    """Whether it is a claim that a worker has labelled, so that it is found without its StatefulSet."""
    adopted_by: set[str] = field(default_factory=set)
    is_posthumous: bool = False
    """Whether a request made it that was still on its way when its worker crashed."""
    is_late: bool = False
    """Whether a request made it that was still on its way when a user had deleted the inventory, and a rollback had looked."""

    @property
    def is_marked_by_others(self) -> bool:
        """Whether others have begun its deletion."""
        return self.marker is not None and self.marker.owner != self.owner

    def holds(self, other: Entry) -> bool:
        """Whether it is the Namespace of the other object, or the CRD of its kind."""
        if self.resource == CRDS:
            return other.resource == WIDGETS
        return self.resource == NAMESPACES and other.key[0] == self.key[1]

    def __str__(self) -> str:
        return f"{self.resource[1]} {'/'.join(filter(None, self.key))}"


@dataclass(frozen=True)
class Run:
    """One worker's run of a verb; `wanted`: what the package has afterwards, `brought`: what of that it had not before."""

    instance: str
    wanted: frozenset[tuple[Resource, Key]]
    brought: frozenset[tuple[Resource, Key]]


def is_inventory(entry: Entry) -> bool:
    return entry.key[1] == f"k8s-cr-driver-{entry.owner}"
