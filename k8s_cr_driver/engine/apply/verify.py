# SPDX-License-Identifier: Apache-2.0
"""
The last look at an object that reports ready: what its own status cannot say is read.

A cluster can report that it is ready before its API server responds, and with a kubeconfig of a former endpoint: a read with
its kubeconfig is to succeed. Its status also follows that of objects which its controller makes of it, and is as before for a
moment when these have changed, or are to be changed: they are to have what it asks for, and to be ready themselves. Both are
tried each time that the status comes to say that the object is ready. In SCALE it also is to have the count that was applied:
others may set it again at any time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import ApiError, DriverError, passes
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.workload import check_kubeconfig
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.model import CRD_DECIDES, failed, waiting
from k8s_cr_driver.resources.registry import health_of_made
from k8s_cr_driver.writes.write_errors import reset_count

NOT_OPENED = "KubeconfigNotOpened"
"""Reason of an object that is ready but for its kubeconfig, which has not opened a cluster."""
PARTS_NOT_READY = "PartsNotReady"
"""Reason of an object that is ready but for an object that its controller has made of it."""
COUNT_RESET = "CountReset"
"""Reason of an object that is ready with another count than SCALE has applied."""


@dataclass
class _Try:
    """The tries since an object has come to report that it is ready."""

    node: Desired
    why_not: Health | None
    failures: int = 0


class LastLook:
    """`judged` is called with an object when its health has changed."""

    def __init__(self, run: Run, judged: Callable[[Desired], None]) -> None:
        self._loop, self._context, self._client, self._judged = run.loop, run.context, run.client, judged
        self._tries: dict[ObjectKey, _Try] = {}

    def health(self, node: Desired, live: Object) -> Health:
        """The object's health, or what of it was not seen yet."""
        health, obj = node.obj.health(live), node.obj
        if health.settled and not self._context.keep_autoscaled:
            autoscaler = self._context.autoscalers.get(node.key, "")
            if why := reset_count(obj, live, self._context.instance, autoscaler):
                return failed(COUNT_RESET, why)
        if health.state is not State.READY or not (obj.kubeconfig() or obj.made(live)):
            self._tries.pop(node.key, None)
            return health
        if node.key not in self._tries:
            self._tries[node.key] = _Try(node, waiting("NotSeen", "it reports ready; what it describes is being read"))
            self._look(self._tries[node.key])
        return self._tries[node.key].why_not or health

    def _look(self, attempt: _Try) -> None:
        if self._is_current(attempt) and attempt.node.live is not None:
            request = functools.partial(_why_not, self._client, attempt.node.obj, attempt.node.live)
            self._loop.send(request, functools.partial(self._end, attempt), functools.partial(self._failed, attempt))

    def _failed(self, attempt: _Try, error: DriverError) -> None:
        self._end(attempt, waiting(PARTS_NOT_READY, str(error), trouble=True))

    def _end(self, attempt: _Try, why_not: Health | None) -> None:
        attempt.why_not = why_not
        if why_not:
            attempt.failures += 1
            self._loop.after(backoff.delay(attempt.failures), self._look, attempt)
        if self._is_current(attempt):
            self._judged(attempt.node)

    def _is_current(self, attempt: _Try) -> bool:
        return self._tries.get(attempt.node.key) is attempt


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


UNREADABLE: Object = {}
"""Stands for a CRD that RBAC forbids to read: it declares nothing, and is not read again."""


class CrdReads:
    """
    Reads the CRD of a kind, once: its annotations say when its objects are ready, and it declares whether a status, a sign of
    readiness in it, or an end can be expected.

    A kind is asked for whose objects have no rule that decides before those, or that cannot be judged without a schema. `read`
    is called with each of the objects `by_kind` whose CRD has been read.
    """

    def __init__(
        self, run: Run, by_kind: Mapping[GroupKind, Sequence[Desired]], read: Callable[[Desired], None]
    ) -> None:
        self._loop, self._client, self._by_kind, self._read = run.loop, run.client, by_kind, read
        self._asked: set[GroupKind] = set()

    def ask(self, node: Desired) -> None:
        kind = node.key.group_kind
        if kind not in self._asked and not is_builtin(kind):
            self._asked.add(kind)
            self._request(node.resource, 1)

    def is_awaited(self, node: Desired) -> bool:
        return node.obj.crd is None and node.key.group_kind in self._asked

    def _request(self, resource: Resource, tries: int) -> None:
        kind = resource.group_kind

        def failed(error: DriverError) -> None:
            if passes(error):
                self._loop.after(backoff.delay(tries), self._request, resource, tries + 1)
            else:
                self._keep(kind, UNREADABLE)

        self._loop.send(functools.partial(self._client.crd, resource), functools.partial(self._keep, kind), failed)

    def _keep(self, kind: GroupKind, crd: Object) -> None:
        for node in self._by_kind[kind]:
            node.obj.crd = crd
            self._read(node)
