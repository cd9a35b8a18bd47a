# SPDX-License-Identifier: Apache-2.0
"""
Reads the CRD of a kind, once: it declares whether a status, a sign of readiness in it, or an end can be expected.

Only a kind whose objects cannot be judged without that is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import DriverError, passes
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import GroupKind, Object

UNREADABLE: Object = {}
"""Stands for a CRD that RBAC forbids to read: it declares nothing, and is not read again."""


class CrdReads:
    """`read` is called with each of the objects `by_kind` whose CRD has been read."""

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
                self._loop.after(backoff.delay(tries), functools.partial(self._request, resource, tries + 1))
            else:
                self._keep(kind, UNREADABLE)

        self._loop.send(functools.partial(self._client.crd, resource), functools.partial(self._keep, kind), failed)

    def _keep(self, kind: GroupKind, crd: Object) -> None:
        for node in self._by_kind[kind]:
            node.obj.crd = crd
            self._read(node)
