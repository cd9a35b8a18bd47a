# SPDX-License-Identifier: Apache-2.0
"""What would become of an instance's objects: deleted, or released with the reason why they stay.

A Namespace or CRD is looked into as a terminate does, and only with requests that read. Between the announcement and the
deletion others may still change the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from k8s_cr_driver.cli.cluster import Cluster, Instance
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.objects.crds import defined_by, is_refused
from k8s_cr_driver.objects.keys import NAMESPACE, Object, ObjectKey, key_of
from k8s_cr_driver.ownership.context import WriteContext
from k8s_cr_driver.ownership.delete import IN_USE
from k8s_cr_driver.ownership.guests import Guests
from k8s_cr_driver.ownership.inventory import Inventory
from k8s_cr_driver.ownership.labels import SHARED
from k8s_cr_driver.ownership.orphans import find_orphans
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for


class Fate(NamedTuple):
    """What becomes of one object: `verb` is delete or release, `why` says why it stays, or what a Namespace takes along."""

    verb: str
    key: ObjectKey
    why: str


class Fates:
    """Of the objects `lives` of one instance; those in `wanted` are applied and stay. `delete_guests`: as in a terminate."""

    def __init__(
        self,
        cluster: Cluster,
        instance: Instance,
        lives: Mapping[ObjectKey, Object],
        wanted: Collection[ObjectKey] = (),
        *,
        delete_guests: bool = False,
    ) -> None:
        self._lives, self._wanted = dict(lives), wanted
        inventory = Inventory(cluster.connection, instance.namespace, instance.id)
        inventory.content = instance.content
        self._context = WriteContext(cluster.client, inventory, delete_guests=delete_guests)
        if not wanted:
            self._lives |= {key_of(orphan): orphan for orphan in self._orphans()}
        self._released = {key: why for key, live in self._lives.items() if (why := instance.why_it_stays(key, live))}
        self._staying = self._released.keys() | set(wanted)
        self._guests = Guests(self._context, going=self._lives.keys() - self._staying)

    def all(self) -> list[Fate]:
        """In the order of the keys; with claims that a terminate deletes together with their StatefulSet."""
        return [self._of(key) for key in sorted(self._lives) if key not in self._wanted]

    def _of(self, key: ObjectKey) -> Fate:
        why = self._released.get(key, "") or (self._why_it_stays(key) if key.group_kind in SHARED else "")
        return Fate("release", key, why) if why else Fate("delete", key, self._guests.taken_with(key))

    def _why_it_stays(self, key: ObjectKey) -> str:
        try:
            live = self._read(key)
            if live is None:
                return ""
            if self._is_used(key, live):
                return IN_USE
            return redact(self._guests.reason(live))
        except DriverError as error:
            return f"if it cannot be examined: {redact(str(error))}"

    def _is_used(self, key: ObjectKey, live: Object) -> bool:
        if key.group_kind == NAMESPACE:
            return any(one.namespace == key.name for one in self._staying)
        return not is_refused(live) and any(one.group_kind == defined_by(live) for one in self._staying)

    def _orphans(self) -> list[Object]:
        whole = [self._read(key) for key, live in self._lives.items() if _may_leave_orphans(live)]
        return [orphan for _, orphan in find_orphans(self._context, [live for live in whole if live is not None])]

    def _read(self, key: ObjectKey) -> Object | None:
        """The whole object: lists have metadata only."""
        resource = self._context.resources.find(key.group_kind)
        return self._context.client.read(resource, key) if resource else None


def _may_leave_orphans(live: Object) -> bool:
    return type(resource_for(live)).orphans is not CustomResource.orphans
