# SPDX-License-Identifier: Apache-2.0
"""The verbs of a life: what the driver does for each, through its session, and what has to be so when it is COMPLETED."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf.scale_in import Choice
from k8s_cr_driver.vnf.session import Session
from tests.fake_api.objects import Object, copy

SCALABLE = ("Deployment", "StatefulSet")
MOST_REPLICAS = 3


@dataclass(frozen=True)
class Verb:
    """
    `desired` is the whole package afterwards; `do` is what the driver does with its session.

    `promised`: the objects of it that are applied, and must be there. `do` may give the uids of objects that must be gone,
    or going, when it is over.
    A verb that `may_fail` leaves the package as it was when the cluster refuses it, and nothing has to be undone.
    """

    name: str
    desired: list[Object]
    do: Callable[[Session], set[str] | None]
    promised: list[Object]
    prunes: bool = True
    keeps_autoscaled: bool = True
    yields: bool = False
    may_fail: bool = False
    is_first: bool = False
    by_inventory: bool = False
    """Whether nothing but the inventory says what there is to delete."""


def instantiate(objects: list[Object]) -> Verb:
    def do(session: Session) -> None:
        session.reconcile(session.place(copy(objects)), prune=Prune(), first=True)

    return Verb("instantiate", objects, do, objects, is_first=True)


def undo_instantiate(objects: list[Object]) -> Verb:
    def do(session: Session) -> None:
        session.recover_inventory(copy(objects))
        session.reconcile([], prune=Prune())

    return Verb("rollback of instantiate", [], do, [], by_inventory=not objects)


def change(objects: list[Object], *, yields: bool = False) -> Verb:
    def do(session: Session) -> None:
        session.reconcile(session.place(copy(objects)), prune=Prune())

    return Verb("change", objects, do, objects, yields=yields)


def terminate() -> Verb:
    def do(session: Session) -> None:
        session.reconcile([], prune=Prune())

    return Verb("terminate", [], do, [])


def heal(chance: random.Random, objects: list[Object]) -> Verb:
    """Of all VNFCs, or of some that are chosen; with recreate the objects of VDUs without Pods are replaced, too."""
    everything, recreate = chance.random() < 0.5, chance.random() < 0.5
    healed = [obj for obj in objects if obj["kind"] in (*SCALABLE, "Widget")]
    picked = [obj for obj in healed if everything or chance.random() < 0.7]
    luck, chosen = chance.random(), dict[str, set[str]]()

    def do(session: Session) -> set[str]:
        placed = session.place(copy(objects))
        vdus = _vdus(placed, picked)
        if not chosen:
            found = session.vnfcs(vdus)
            chosen.update({vdu: {one.name for one in found if one.vdu == vdu and (everything or luck < 0.5)} for vdu in vdus})
        wanted = placed if everything else list(vdus.values())
        replacement = session.replacement(vdus, chosen, wanted, everything=everything, recreate=recreate)
        session.reconcile(wanted, prune=None, replacement=replacement)
        return {live["metadata"]["uid"] for _, several in replacement.to_delete for live in several}

    promised = objects if everything else picked
    return Verb("heal", objects, do, promised, prunes=False, may_fail=True)


def scale(chance: random.Random, objects: list[Object]) -> Verb | None:
    """Out or in, by one workload's count; None if the package has no workload."""
    workloads = [obj for obj in objects if obj["kind"] in SCALABLE]
    if not workloads:
        return None
    before = chance.choice(workloads)
    count = chance.choice([n for n in range(MOST_REPLICAS + 1) if n != before["spec"]["replicas"]])
    scaled = copy(before)
    scaled["spec"]["replicas"] = count
    is_in = count < before["spec"]["replicas"]
    return _scale("scale in" if is_in else "scale out", [scaled if obj is before else obj for obj in objects], scaled, is_in)


def undo_scale(objects: list[Object], scaled: Verb) -> Verb:
    """To the count of before."""
    (workload,) = scaled.promised
    (before,) = [obj for obj in objects if (obj["kind"], obj["metadata"]) == (workload["kind"], workload["metadata"])]
    return _scale("rollback of scale", objects, before, is_in=False, yields=True)


def _scale(name: str, objects: list[Object], scaled: Object, is_in: bool, *, yields: bool = False) -> Verb:
    def do(session: Session) -> None:
        vdus = session.with_explicit_counts(_vdus(session.place(copy(objects)), [scaled]))
        choice = None
        if is_in:
            found = session.vnfcs(vdus)
            choice = Choice({vdu: {one.name for one in found[: len(found) - replicas.count(obj)]} for vdu, obj in vdus.items()})
        session.scale(vdus, choice)

    return Verb(name, objects, do, [scaled], prunes=False, keeps_autoscaled=yields, yields=yields)


def _vdus(placed: Sequence[CustomResource], objects: list[Object]) -> dict[str, CustomResource]:
    """VDU id, which is here the name of its object -> the object."""
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    return {obj.key.name: obj for obj in placed if (obj.key.kind, obj.key.name) in names}
