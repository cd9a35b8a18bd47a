# SPDX-License-Identifier: Apache-2.0
"""
An operator that owns objects of an instance: it sets an ownerReference whenever it looks, as operators do.

It goes on with it while the owner is finalized. The garbage collector then deletes what it owns, unless that is released.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from tests.fake_api import errors
from tests.fake_api.hand import Hand
from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object
from tests.simulation.entries import CONTROLLER, Actor
from tests.simulation.package import GROUP, config_map, named
from tests.simulation.servers import Servers

HOLD = f"{GROUP}/operator"
_PERIODS = (0.5, 2.0, 5.0)
"""Seconds between two looks."""
_DELAYS = (0.0, 3.0, 15.0)
"""Seconds for which it finalizes an owner; 0 if it has no finalizer."""


class Operator:
    """`features` say whether there is one."""

    def __init__(self, servers: Servers, features: frozenset[str]) -> None:
        self._servers, self._hand, self._random = servers, Hand(servers.cluster), servers.scheduler.random
        self._actor = Actor(CONTROLLER, "an operator", is_direct=False)
        self.is_there = "owners" in features
        self.owners: list[tuple[Resource, Key]] = []
        self._owned: list[tuple[Resource, Key]] = []
        self._released: set[str] = set()

    def begin(self, objects: list[Object]) -> None:
        """Chooses an owner and what it owns from those of a package: in one Namespace, or Namespaces and CRDs."""
        names = [named(obj) for obj in objects if obj["metadata"].get("namespace") and obj["kind"] != "Job"]
        roles = [named(obj) for obj in objects if obj["kind"] == "ClusterRole"]
        containers = [named(obj) for obj in objects if obj["kind"] in ("Namespace", "CustomResourceDefinition")]
        if not self.is_there:
            return
        chance = self._random
        if roles and containers and chance.random() < 0.5:
            owner, self._owned = roles[0], [chance.choice(containers)]
        elif len(names) > 1:
            owner, *self._owned = chance.sample(names, min(len(names), chance.choice((2, 2, 3))))
        else:
            return
        self.owners.append(owner)
        self._between = bool(owner[1][0]) and chance.random() < 0.3
        self._period, self._delay = chance.choice(_PERIODS), chance.choice(_DELAYS)
        self._look()

    def _look(self) -> None:
        with contextlib.suppress(errors.ApiError, LookupError):
            self._servers.acting(self._actor, self._own)
        self._servers.scheduler.after(self._random.expovariate(1 / self._period), self._look)

    def _own(self) -> None:
        found = self.owners[0]
        owner = self._servers.store.get(*found)
        if owner is None:
            return
        if "deletionTimestamp" in owner["metadata"]:
            self._release_later(owner)
        elif self._delay and HOLD not in owner["metadata"].get("finalizers", []):
            self._edit(found, lambda live: live["metadata"].setdefault("finalizers", []).append(HOLD))
        if self._between:
            owner = self._made(owner)
        for resource, key in self._owned:
            live = self._servers.store.get(resource, key)
            uid = owner["metadata"]["uid"]
            if live and uid not in [reference["uid"] for reference in live["metadata"].get("ownerReferences", [])]:
                self._edit((resource, key), partial(_add_owner, owner=owner))
                self._servers.ledger.owned.owns(uid, live, self._servers.scheduler.now)

    def _made(self, owner: Object) -> Object:
        """What it makes for an owner, and lets own the others in its place."""
        between = config_map("between", owner["metadata"]["namespace"])
        _add_owner(between, owner)
        return self._servers.store.get(*named(between)) or self._hand.put(between, manager="operator")

    def _release_later(self, owner: Object) -> None:
        uid = owner["metadata"]["uid"]
        if uid not in self._released:
            self._released.add(uid)
            self._servers.scheduler.after(self._delay, lambda: self._servers.acting(self._actor, partial(self._release, uid)))

    def _release(self, uid: str) -> None:
        if found := self._servers.store.by_uid(uid):
            live = self._servers.store.get(*found)
            assert live is not None
            self._hand.release(live["kind"], found[1][0], found[1][1], [HOLD])

    def _edit(self, found: tuple[Resource, Key], change: Callable[[Object], object]) -> None:
        _, (namespace, name) = found
        live = self._servers.store.get(*found)
        assert live is not None
        self._hand.edit(live["kind"], namespace, name, change, manager="operator")


def _add_owner(live: Object, owner: Object) -> None:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    reference |= {name: owner["metadata"][name] for name in ("name", "uid")}
    live["metadata"].setdefault("ownerReferences", []).append(reference)
