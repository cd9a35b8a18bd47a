"""
Kinds of which the cluster cannot tell now, because the server of an aggregated API is down.

They are neither unknown nor gone: what an instance has of them is still there. So discovery is asked again until the
deadline, whose error names the APIService.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.engine.not_ready import NotReady, Report
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.errors import Stopped
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resources, discover
from k8s_cr_driver.objects.keys import GroupKind, ObjectKey
from k8s_cr_driver.resources.health import State

ASK_EVERY = 2.0
"""Seconds between two discoveries."""


def await_kinds(operation: Operation, client: Client, wanted: Iterable[tuple[GroupKind, str]]) -> None:
    """Until the cluster can tell of each (kind, version); NotReady at the deadline. Refreshes the client's resources."""
    asked = set(wanted)
    while lacking := reports(client.resources, asked):
        if operation.stop.is_set():
            raise Stopped("The operation was stopped; retry or rollback takes it up again.")
        if operation.remaining() == 0:
            raise NotReady("The cluster cannot tell of kinds that are needed:", lacking)
        operation.stop.wait(min(ASK_EVERY, operation.remaining()))
        client.resources.refresh(operation.persist(lambda: discover(client.connection)))


def reports(resources: Resources, asked: Iterable[tuple[GroupKind, str]]) -> list[Report]:
    """One for each APIService without which the cluster cannot tell of some (kind, version); "" is any version."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for kind, version in asked:
        if api := resources.unknown_in(kind, version):
            kinds.setdefault(api, set()).add(kind.kind)
    return [
        Report(
            ObjectKey("apiregistration.k8s.io", "APIService", "", f"{version}.{group}"),
            State.WAITING.value,
            "Unavailable",
            f"the server of {group}/{version} does not answer, so nothing can be said of {', '.join(sorted(names))}; mend "
            "it, or delete the APIService if that API is gone for good with all its objects",
        )
        for (group, version), names in sorted(kinds.items())
    ]
