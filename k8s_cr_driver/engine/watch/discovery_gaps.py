# SPDX-License-Identifier: Apache-2.0
"""
Kinds of the instance that discovery does not list, or no longer, though the instance may still have objects of them.

An API server that starts or lags does not know of all CRDs yet, a CRD may serve no version, and the server of an aggregated
API may be down. So discovery is read again, and CRDs and APIServices are listed, which come from etcd. Only a kind that none
of them can define has no objects. The others are looked for again until they are served.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.engine.report.not_ready import NotReady, Report
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import ApiError, DriverError, passes
from k8s_cr_driver.kube.client import CRDS, Client
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource, Resources, discover
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of
from k8s_cr_driver.resources.health import State

LOG = logs.logger(__name__)

DISCOVER_EVERY = 2.0
"""Seconds between two discoveries."""


def await_kinds(operation: Operation, client: Client, desired: Iterable[tuple[GroupKind, str]]) -> None:
    """Waits until discovery lists each (kind, version) and refreshes the client's resources; NotReady at the deadline."""
    kinds = set(desired)
    while unavailable := reports(client.resources, kinds):
        operation.check_stopped()
        if operation.remaining() == 0:
            raise NotReady("Kinds that are needed are unavailable:", unavailable)
        operation.stop.wait(min(DISCOVER_EVERY, operation.remaining()))
        client.resources.refresh(operation.persist(lambda: discover(client.connection)))


def reports(resources: Resources, asked: Iterable[tuple[GroupKind, str]]) -> list[Report]:
    """One for each APIService that is down and serves one of the (kind, version) in `asked`; version "" is any."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for kind, version in asked:
        if api := resources.unknown_in(kind, version):
            kinds.setdefault(api, set()).add(kind.kind)
    return [
        Report(
            ObjectKey("apiregistration.k8s.io", "APIService", "", f"{version}.{group}"),
            State.WAITING.value,
            "Unavailable",
            f"the server of {group}/{version} does not respond, so {', '.join(sorted(names))} cannot be listed; repair "
            "it, or delete the APIService if that API and all its objects no longer exist",
        )
        for (group, version), names in sorted(kinds.items())
    ]


API_SERVICES = Resource(
    GroupKind("apiregistration.k8s.io", "APIService"), "v1", "apiservices", False, frozenset({"get", "list"})
)
AGGREGATED = "!kube-aggregator.kubernetes.io/automanaged"
"""Selects the APIServices of aggregated APIs: the API server labels those that it makes for its own groups and for CRDs."""


Reasons = Mapping[GroupKind, Report | None]
"""Why kinds that are not served may have objects; None: the server of their API is down."""


class Unserved:
    """`kinds`: those that may have objects."""

    def __init__(self, run: Run) -> None:
        self._loop, self._client, self._resources = run.loop, run.client, run.resources
        self._reasons: dict[GroupKind, Report | None] = {}
        self._undefined: set[GroupKind] = set()
        self._pause = 0.0

    @property
    def kinds(self) -> frozenset[GroupKind]:
        return frozenset(self._reasons)

    def reports(self) -> list[Report]:
        """One for each API that is down, and for each other kind."""
        down = reports(self._resources, ((kind, "") for kind in self._reasons))
        return down + [reason for _, reason in sorted(self._reasons.items()) if reason is not None]

    def add(self, kind: GroupKind, *, again: bool = False) -> bool:
        """
        Notes a kind that discovery does not list, unless this run knows that nothing defines it; with `again` it looks again.

        Returns whether it is the only one, so that the looks are to begin.
        """
        if (kind in self._undefined and not again) or kind in self._reasons:
            return False
        is_down, is_first = self._resources.unknown_in(kind) is not None, not self._reasons
        if is_first:
            self._pause = DISCOVER_EVERY if is_down else 0.0
        self._reasons[kind] = None if is_down else _report(_any(kind), kind, "has not been looked for yet")
        return is_first

    async def look(self) -> tuple[Sequence[Resource], Collection[GroupKind]]:
        """After a while: what discovery lists by now of the kinds, and those that nothing defines."""
        await self._loop.pause(self._pause)
        self._pause, kinds = DISCOVER_EVERY, self.kinds
        try:
            newer, reasons = await self._loop.call(_look_for, self._client, kinds)
        except DriverError as error:
            if not passes(error):
                self._loop.refuse(error)
            return (), ()
        self._resources.refresh(newer)
        served = [resource for resource in newer if resource.group_kind in kinds]
        undefined = sorted(kinds.difference(reasons, (one.group_kind for one in served)))
        if undefined:
            LOG.info("No CRD and no APIService defines %s, so there are no such objects", ", ".join(map(str, undefined)))
            self._undefined.update(undefined)
        later = {kind: reason for kind, reason in self._reasons.items() if kind not in kinds}
        self._reasons = {**later, **reasons}
        return served, undefined


def _look_for(client: Client, kinds: Collection[GroupKind]) -> tuple[Resources, Reasons]:
    """What discovery lists now, and of those of `kinds` that it does not list the ones that may have objects."""
    newer = discover(client.connection, afresh=True)
    unserved = [kind for kind in sorted(kinds) if not newer.is_served(kind)]
    reasons: dict[GroupKind, Report | None] = {kind: None for kind in unserved if newer.unknown_in(kind)}
    if unlisted := [kind for kind in unserved if kind not in reasons]:
        crds, services = _listed(client, CRDS), _listed(client, API_SERVICES, AGGREGATED)
        for kind in unlisted:
            if reason := _reason(client, newer, kind, crds, services):
                reasons[kind] = reason
    return newer, reasons


def _listed(client: Client, resource: Resource, selector: str = "") -> Sequence[Object] | None:
    """The metadata of all such objects; None if the account may not list them."""
    try:
        return client.list_if_served(resource, "", selector, METADATA_LIST)
    except ApiError as error:
        if error.status != 403:
            raise
        return None


def _reason(
    client: Client, newer: Resources, kind: GroupKind, crds: Sequence[Object] | None, services: Sequence[Object] | None
) -> Report | None:
    """Why a kind may have objects; None if nothing defines it."""
    if crds is None or services is None:
        missing = CRDS.plural if crds is None else API_SERVICES.plural
        return _report(_any(kind), kind, f"may have objects: allow the driver to list {missing}, which say whether it has")
    served = {one.plural for one in newer if one.group_kind.group == kind.group}
    for key in _of_group(kind.group, crds):
        if key.name.partition(".")[0] not in served and _defines(client, key, kind):
            return _report(key, kind, "has objects as long as this CRD exists: serve a version of it, or delete it with them")
    for key in _of_group(kind.group, services):
        return _report(key, kind, "may have objects as long as this APIService exists: repair its server, or delete it")
    return None


def _of_group(group: str, named: Iterable[Object]) -> Iterator[ObjectKey]:
    """CRDs are named PLURAL.GROUP, and APIServices VERSION.GROUP."""
    return (key for key in map(key_of, named) if key.name.partition(".")[2] == group)


def _defines(client: Client, crd: ObjectKey, kind: GroupKind) -> bool:
    """Whether a CRD defines the kind; True if it may not be read."""
    try:
        return defined_by(client.read(CRDS, crd)) == kind
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return error.status == 403


def _any(kind: GroupKind) -> ObjectKey:
    return ObjectKey(*kind, "", "*")


def _report(key: ObjectKey, kind: GroupKind, state: str) -> Report:
    return Report(key, State.WAITING.value, "NotServed", f"discovery does not list {kind}, which {state}")
