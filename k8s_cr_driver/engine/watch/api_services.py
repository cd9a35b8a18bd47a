# SPDX-License-Identifier: Apache-2.0
"""
Kinds that discovery cannot list because the server of an aggregated API is down.

Such kinds still exist, and so do the instance's objects of them: treating them as unknown would leave objects behind.
So discovery is repeated until the deadline, and the error then names the APIService.
"""

from __future__ import annotations

from collections.abc import Iterable

from k8s_cr_driver.engine.report.not_ready import NotReady, Report
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resources, discover
from k8s_cr_driver.objects.keys import GroupKind, ObjectKey
from k8s_cr_driver.resources.health import State

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
