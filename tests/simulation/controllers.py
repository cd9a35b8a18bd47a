# SPDX-License-Identifier: Apache-2.0
"""The cluster's own life: workload controllers, a kubelet, Jobs with a time to live, and the controller of the packages' CRD.

Each looks at an object some time after it, or what it controls, was written, and does what the object as it is then asks
for, in the name of whose the object is.
"""

from __future__ import annotations

from functools import partial

from tests.fake_api import controllers, crds, deletion, errors
from tests.fake_api.hand import Hand
from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, dig, key_of
from tests.simulation.entries import CONTROLLER, WIDGETS, Actor
from tests.simulation.package import GROUP
from tests.simulation.servers import Servers

HOLD = f"{GROUP}/hold"


class Controllers:
    """All of them; `heard` is told of every write."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._hand = servers, Hand(servers.cluster)
        self._pending: set[tuple[Resource, Key]] = set()
        servers.cluster.knobs.establish_crds = False
        servers.listeners.append(self.heard)

    def heard(self, resource: Resource, obj: Object) -> None:
        self._look_later(resource, key_of(obj))
        for reference in obj["metadata"].get("ownerReferences") or []:
            if owner := self._servers.store.by_uid(reference["uid"]):
                self._look_later(*owner)
            else:
                self._servers.cluster.later(partial(deletion.collect, self._servers.cluster, resource, key_of(obj)))

    def _look_later(self, resource: Resource, key: Key) -> None:
        if resource in _LOOKS and (resource, key) not in self._pending:
            self._pending.add((resource, key))
            self._servers.scheduler.after(self._servers.weather.controller(), partial(self._look, resource, key))

    def _look(self, resource: Resource, key: Key) -> None:
        self._pending.discard((resource, key))
        live = self._servers.store.get(resource, key)
        if live is None:
            return
        owner = self._servers.ledger.entries[live["metadata"]["uid"]].owner
        actor = Actor(owner, f"{CONTROLLER} of {resource[1]}", is_direct=False)
        try:
            self._servers.acting(actor, partial(_LOOKS[resource], self, live))
        except (errors.ApiError, LookupError):  # such as a Namespace on its way out
            self._look_later(resource, key)

    def workload(self, live: Object) -> None:
        controllers.REACTIONS[live["kind"]](self._hand, live)

    def job(self, live: Object) -> None:
        """Complete, and removed when its time to live is over."""
        self.workload(live)
        ttl = live["spec"].get("ttlSecondsAfterFinished")
        if dig(live, "status", "succeeded") and ttl is not None:
            uid = live["metadata"]["uid"]
            self._servers.scheduler.after(ttl, lambda: self._servers.cluster.later(partial(self._expire, uid)))

    def _expire(self, uid: str) -> None:
        if found := self._servers.store.by_uid(uid):
            deletion.delete(self._servers.cluster, *found, "Background")

    def crd(self, live: Object) -> None:
        if "deletionTimestamp" not in live["metadata"] and not dig(live, "status", "conditions"):
            crds.establish(self._servers.cluster, live["metadata"]["name"])

    def widget(self, live: Object) -> None:
        name, where = live["metadata"]["name"], live["metadata"]["namespace"]
        if "deletionTimestamp" in live["metadata"]:
            if HOLD in live["metadata"].get("finalizers", []):
                self._hand.release("Widget", where, name, [HOLD])
            return
        if dig(live, "spec", "holds") and HOLD not in live["metadata"].get("finalizers", []):
            self._hand.edit("Widget", where, name, _hold, manager=CONTROLLER)
        status = {"observedGeneration": live["metadata"]["generation"], "conditions": [_READY]}
        if live.get("status") != status:
            self._hand.set_status("Widget", where, name, status)


_READY = {"type": "Ready", "status": "True", "reason": "AsWanted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def _hold(live: Object) -> None:
    live["metadata"].setdefault("finalizers", []).append(HOLD)


_LOOKS = {
    ("apps", "deployments"): Controllers.workload,
    ("apps", "replicasets"): Controllers.workload,
    ("apps", "statefulsets"): Controllers.workload,
    ("batch", "jobs"): Controllers.job,
    ("", "pods"): Controllers.workload,
    ("", "persistentvolumeclaims"): Controllers.workload,
    ("apiextensions.k8s.io", "customresourcedefinitions"): Controllers.crd,
    WIDGETS: Controllers.widget,
}
