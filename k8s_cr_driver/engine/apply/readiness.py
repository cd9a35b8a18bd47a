# SPDX-License-Identifier: Apache-2.0
"""
Whether a desired object is ready: by its status, and by what its own status cannot say, which is read.

A cluster can report that it is ready before its API server responds, and with a kubeconfig of a former endpoint: a read with
its kubeconfig is to succeed. Its status also follows that of objects which its controller makes of it, and is as before for a
moment when these have changed, or are to be changed: they are to have what it asks for, and to be ready themselves. Both are
tried each time that the status comes to say that the object is ready. In SCALE it also is to have the count that was applied:
others may set it again at any time.

The CRD of a kind is read once: its annotations say when its objects are ready, and it declares whether a status, a sign of
readiness in it, or an end can be expected. It is read for objects that have no rule which decides before those, or that cannot
be judged without a schema.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.apply.forced_rollback import StuckPods
from k8s_cr_driver.engine.report.diagnosis import Seen, warning_since
from k8s_cr_driver.engine.run.loop import Run, Steps
from k8s_cr_driver.engine.run.nodes import Desired, spec_version, version
from k8s_cr_driver.errors import ApiError, DriverError
from k8s_cr_driver.kube import backoff, timing
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.workload import check_kubeconfig
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.resources.base import CustomResource, is_ruled
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.freshness import ACCEPTED, last_written
from k8s_cr_driver.resources.health.model import CRD_DECIDES, RUNNING, STATUS_OLDER_THAN_SPEC, failed, waiting
from k8s_cr_driver.resources.registry import health_of_made
from k8s_cr_driver.writes.write_errors import reset_count

NOT_OPENED = "KubeconfigNotOpened"
"""Reason of an object that is ready but for its kubeconfig, which has not opened a cluster."""
PARTS_NOT_READY = "PartsNotReady"
"""Reason of an object that is ready but for an object that its controller has made of it."""
COUNT_RESET = "CountReset"
"""Reason of an object that is ready with another count than SCALE has applied."""
_NOT_SEEN = waiting("NotSeen", "it reports ready; what it describes is being read")
_UNREADABLE: Object = {}
"""Stands for a CRD that RBAC forbids to read: it declares nothing, and is not read again."""

Look = Steps[Iterable[Desired]]
"""Reads something, and returns the objects that are to be assessed again."""


class Verdict(NamedTuple):
    """`looks` are to be started."""

    is_ready: bool
    looks: Sequence[Look]


@dataclass
class _Unseen:
    """Since an object has come to report that it is ready: what of it is not seen yet."""

    why: Health | None = _NOT_SEEN
    is_looked_for: bool = False
    failures: int = 0


@dataclass
class _Age:
    """Whether the status of an object speaks of its spec as it is now. Its `old_status` is that of before our last write."""

    accepted: str = ""
    """The `spec_version` of the object whose status counts as current, whatever times and values say of its age."""
    aging: str = ""
    """resourceVersion of the object whose status is waited for to be old enough."""
    warning: str = ""
    """A Warning event since our last write about the object or what is below it, while its status is older than that."""
    awaits_old_status: bool = False
    """Our last write has changed the spec, and the status of then is not known yet in the version that is watched."""

    def accept(self, node: Desired, live: Object) -> None:
        """It does: it was seen to change, or stays as it is for long."""
        node.obj.old_status, self.accepted = ACCEPTED, spec_version(live)


class Assessor:
    """Assesses the desired objects of one run."""

    def __init__(self, run: Run, desired: DesiredSet) -> None:
        self._loop, self._context, self._set = run.loop, run.context, desired
        self._pods = StuckPods(run)
        self._unseen: dict[ObjectKey, _Unseen] = {}
        self._ages = {key: _Age() for key in desired.nodes}
        self._asked: set[GroupKind] = set()

    def written(self, node: Desired, live: Object, *, is_changed: bool, is_comparable: bool) -> None:
        """Our write has returned `live`, and has changed its spec or not. `is_comparable`: in the version that is watched."""
        node.obj.old_status = live.get("status") if is_changed and is_comparable else None
        self._ages[node.key].awaits_old_status = is_changed and not is_comparable

    def observe(self, node: Desired, live: Object) -> bool:
        """Keeps a newer state, and what it says of the age of its status; False if `live` is older than what is known."""
        if not node.observe(live):
            return False
        age = self._ages[node.key]
        if node.obj.old_status is ACCEPTED and spec_version(live) != age.accepted:
            node.obj.old_status = None
        if age.awaits_old_status:
            age.awaits_old_status = False
            node.obj.old_status = live.get("status") if version(live) == node.written else None
        elif node.obj.old_status is not None and node.obj.old_status != live.get("status"):
            age.accept(node, live)
        return True

    def assess(self, node: Desired, live: Object) -> Verdict:
        """Sets the health of the object."""
        looks: list[Look] = []
        health, age = self._health(node, live, looks), self._ages[node.key]
        if health.reason != STATUS_OLDER_THAN_SPEC:
            age.warning = ""
        elif age.warning:
            health = waiting(health.reason, f"{age.warning}; {health.message}", trouble=True)
        node.judge(health)
        awaits_crd = self._awaits_crd(node, live, looks)
        is_ready = health.settled and not awaits_crd
        if not is_ready:
            self._pods.watch(node, live)
            if health.reason == STATUS_OLDER_THAN_SPEC and age.aging != version(live):
                age.aging = version(live)
                looks.append(self._grow_old(node, age, version(live)))
        return Verdict(is_ready, looks)

    def _health(self, node: Desired, live: Object, looks: list[Look]) -> Health:
        """The object's health, or what of it was not seen yet."""
        health, obj = node.obj.health(live), node.obj
        if health.settled and not self._context.keep_autoscaled:
            autoscaler = self._context.autoscalers.get(node.key, "")
            if why := reset_count(obj, live, self._context.instance, autoscaler):
                return failed(COUNT_RESET, why)
        if health.state is not State.READY or not (obj.kubeconfig() or obj.made(live)):
            self._unseen.pop(node.key, None)
            return health
        unseen = self._unseen.setdefault(node.key, _Unseen())
        if unseen.why and not unseen.is_looked_for:
            unseen.is_looked_for = True
            looks.append(self._see(node, unseen))
        return unseen.why or health

    async def _see(self, node: Desired, unseen: _Unseen) -> Iterable[Desired]:
        if unseen.failures:
            await self._loop.pause(backoff.delay(unseen.failures))
        if self._unseen.get(node.key) is unseen and node.live is not None:
            try:
                unseen.why = await self._loop.call(_why_not, self._context.client, node.obj, node.live)
            except DriverError as error:
                unseen.why = waiting(PARTS_NOT_READY, str(error), trouble=True)
        unseen.failures, unseen.is_looked_for = unseen.failures + 1, False
        return [node] if self._unseen.get(node.key) is unseen else []

    def _awaits_crd(self, node: Desired, live: Object, looks: list[Look]) -> bool:
        """Whether the verdict depends on a CRD that is being read."""
        obj, kind, reason = node.obj, node.key.group_kind, node.health.reason
        if obj.crd is not None:
            return False
        may_be_ruled = not is_ruled(obj, live)
        if (may_be_ruled or reason in CRD_DECIDES) and kind not in self._asked and not is_builtin(kind):
            self._asked.add(kind)
            looks.append(self._read_crd(node))
        return kind in self._asked and (may_be_ruled or reason == RUNNING)

    async def _read_crd(self, node: Desired) -> Iterable[Desired]:
        try:
            crd = await self._loop.repeat(self._context.client.crd, node.resource)
        except DriverError:
            crd = _UNREADABLE
        several = self._set.by_kind[node.key.group_kind]
        for one in several:
            one.obj.crd = crd
        return several

    async def _grow_old(self, node: Desired, age: _Age, seen: str) -> Iterable[Desired]:
        """A controller whose status does not change for our change writes nothing, so there is no sign that it has seen it.

        What the status says decides then, unless the controller has said since by Warning events that it cannot do it.
        """
        client, warning = self._context.client, None
        while warning is None:
            await self._loop.pause(timing.TIMING.silence)
            if node.live is None or not _is_unchanged(node, seen):
                break
            since = last_written(node.live, self._context.manager)
            try:
                seen_now, warned = Seen.of(node), timing.TIMING.warned
                warning = await self._loop.call(warning_since, client, seen_now, since, warned) if since else ""
            except DriverError:
                continue
        age.aging = "" if age.aging == seen else age.aging
        if warning is None or node.live is None or not _is_unchanged(node, seen):
            return []
        age.warning = warning
        if not warning:
            age.accept(node, node.live)
        return [node]


def _is_unchanged(node: Desired, seen: str) -> bool:
    """Whether nobody has written the object since it was `seen` with a status that is older than its spec."""
    return node.live is not None and version(node.live) == seen and node.health.reason == STATUS_OLDER_THAN_SPEC


def _why_not(client: Client, obj: CustomResource, live: Object) -> Health | None:
    """What of the object is not ready. Raises DriverError."""
    made, found = obj.made(live), made_of(client, obj, live)
    for part in itertools.chain.from_iterable(found.values() if made and made.are_awaited else ()):
        health = health_of_made(part)
        if not health.settled and health.reason not in CRD_DECIDES:
            return waiting(PARTS_NOT_READY, f"{key_of(part)}: {health.reason}: {health.message}")
    if made and (why := made.missing(found)):
        return waiting(PARTS_NOT_READY, why)
    if where := obj.kubeconfig():
        try:
            check_kubeconfig(client.connection, where)
        except DriverError as error:
            what = f"the kubeconfig in {where} does not open the cluster: {error}"
            return waiting(NOT_OPENED, what, trouble=True)
    return None


def made_of(client: Client, obj: CustomResource, live: Object) -> dict[GroupKind, list[Object]]:
    """The objects that a controller has made of `live`, by kind; without the kinds that RBAC forbids to list."""
    found: dict[GroupKind, list[Object]] = {}
    made = obj.made(live)
    for children in made.several if made else ():
        resource = client.resources.find(children.kind, children.version)
        try:
            if resource is not None:
                found[children.kind] = list(client.list_if_served(resource, children.namespace, children.selector))
        except ApiError as error:
            if error.status != 403:
                raise
    return found
