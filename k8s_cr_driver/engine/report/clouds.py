# SPDX-License-Identifier: Apache-2.0
"""
What an OpenStack cloud says where the status of an object says nothing.

A controller that cannot open its cloud may write nothing more, and a server that failed may have no more than that in the
status. So the cloud is asked: of an object that waits, and that nobody writes to, whether its credentials open it, of a failed
server why.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.keys import CloudEntry, Object
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.silence import NOBODY_ACTS, is_unwritten, remedy, unless_silent
from k8s_cr_driver.resources.hooks import Children
from k8s_cr_driver.resources.registry import resource_for

LOOK_EVERY = 30.0
"""Seconds between two looks at one cloud, or at one server."""
LOOKS = 5
"""Clouds and servers that one run looks at: a look may take `openstack.WITHIN` seconds, also after the deadline."""


@dataclass(frozen=True)
class _Seen:
    at: float
    text: str
    is_cause: bool


class Clouds:
    """The looks of one run. For many threads, of which one looks at a time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[CloudEntry, _Seen] = {}
        self._lock = threading.Lock()

    def health(self, obj: CustomResource, live: Object) -> Health:
        """The health of an object that is not ready, with the cause that its cloud gives."""
        said = obj.health(live)
        health = unless_silent(live, said, obj.causes(live).silent_deletion)
        if health.settled:
            return health
        is_silent = health.reason == NOBODY_ACTS or (not health.trouble and is_unwritten(live))
        where = self._where(obj, live, is_silent=is_silent)
        seen = self._look(where) if where else None
        if seen and seen.is_cause:
            return replace(health, message=f"{seen.text}; {health.message}", trouble=True)
        if health.reason != NOBODY_ACTS:
            return health
        return replace(health, message=f"{health.message}; {seen.text if seen else remedy(live, said)}")

    def _where(self, obj: CustomResource, live: Object, *, is_silent: bool) -> CloudEntry | None:
        found = obj.causes(live).cloud
        if isinstance(found, CloudEntry):
            return found if is_silent or found.server else None
        if found is None or not is_silent:
            return None
        named = (resource_for(one).causes(one).cloud for one in self._listed(found))
        return next((one for one in named if isinstance(one, CloudEntry)), None)

    def _listed(self, several: Children) -> list[Object]:
        resource = self._client.resources.find(several.kind, several.version)
        try:
            return self._client.list(resource, several.namespace, several.selector) if resource else []
        except DriverError:
            return []

    def _look(self, where: CloudEntry) -> _Seen | None:
        with self._lock:
            known = self._seen.get(where)
            if known and time.monotonic() - known.at < LOOK_EVERY:
                return known
            if known is None and len(self._seen) == LOOKS:
                return _Seen(0, f"the {where} was not asked", is_cause=False)
            self._seen[where] = self._asked(where, known)
            return self._seen[where]

    def _asked(self, where: CloudEntry, known: _Seen | None) -> _Seen:
        """What is `known` stays if the Secret cannot be read, for which there is hardly time after the deadline."""
        from k8s_cr_driver.kube import openstack  # keystoneauth1 is slow to import

        try:
            fault = openstack.check(self._client.connection, where)
        except openstack.NotAsked as error:
            return known or _Seen(time.monotonic(), str(error), is_cause=False)
        except DriverError as error:
            return _Seen(time.monotonic(), str(error), is_cause=True)
        opens = f"its credentials open the {where}: the cause is in the log of the controller"
        return _Seen(time.monotonic(), f"Nova: {fault}" if fault else opens, is_cause=bool(fault))
