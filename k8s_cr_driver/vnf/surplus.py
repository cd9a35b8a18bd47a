# SPDX-License-Identifier: Apache-2.0
"""Waits until the VNFCs that a scale in removes are deleted, where the status of the custom resource does not show it.

A controller can report its custom resource ready in the new generation before it has deleted anything: one that writes
the status from a queue of its own may find an older event there, and reports Available as soon as the desired shards are
present, whatever else is. So the Pods that the selector in such a status finds are counted before and after.
"""

from __future__ import annotations

import time

from k8s_cr_driver import logs
from k8s_cr_driver.engine.delete.replacer import NO_REPLACEMENT, Replacement
from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.resources import replicas
from k8s_cr_driver.vnf import vnfcs
from k8s_cr_driver.vnf.vdus import VduObjects

LOG = logs.logger(__name__)

GRACE = 30.0
"""Seconds after which the status is trusted: surplus Pods may have another reason."""


def until_deleted(client: Client, instance: str, scaled: VduObjects) -> Replacement:
    """
    For a run that sets the counts of the VDUs' objects in `scaled` (VDU id -> object); called before the run writes.

    With each replica that is removed, at least one VNFC is deleted.
    """
    selecting = {vdu: obj for vdu, obj in scaled.items() if (children := obj.children()) and children.by_selector}
    owners = vnfcs.owners(client, instance, selecting)
    less = {
        vdu: replicas.count(obj, owners[obj.key]) - replicas.count(obj) for vdu, obj in selecting.items() if obj.key in owners
    }
    shrinking = {vdu: selecting[vdu] for vdu, number in less.items() if number > 0}
    if not shrinking:
        return NO_REPLACEMENT
    before = vnfcs.children(client, owners, shrinking)
    most = {vdu: max(len(before[vdu]) - less[vdu], replicas.count(obj)) for vdu, obj in shrinking.items()}
    deadline = 0.0

    def surplus() -> list[Report]:
        nonlocal deadline
        deadline = deadline or time.monotonic() + GRACE
        found = vnfcs.members(client, instance, shrinking).children
        reports = [
            Report(shrinking[vdu].key, "Waiting", "Replicas", f"VDU {vdu} has {len(several)} VNFCs instead of {most[vdu]}")
            for vdu, several in found.items()
            if len(several) > most[vdu]
        ]
        if reports and time.monotonic() > deadline:
            LOG.warning("VNF instance %s: %s; its status is trusted all the same", instance, "; ".join(map(str, reports)))
            return []
        return reports

    return Replacement(unfinished=surplus)
