# SPDX-License-Identifier: Apache-2.0
"""Do the Machines come of the spec that their owner has now?

An owner is available before its rollout has begun: it reports the new generation, and the conditions of Machines that
nobody has compared with it yet. It is available, too, with fewer Machines than its spec says: a control plane as long as
etcd has its quorum. What the Machines are made of decides, and how many are available.
"""

from __future__ import annotations

from k8s_cr_driver.capi import contract, versions
from k8s_cr_driver.objects.fields import integer, mapping
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.resources.health.model import STATUS_OLDER_THAN_SPEC, waiting


def rolled_out(live: Object, health: Health, version: str) -> Health:
    """WAITING instead of `health` if that one is done, but there are Machines of another version or template, or too few.

    A status that is not news yet may be trusted later, but not then.
    """
    if health.state is not State.READY and health.reason != STATUS_OLDER_THAN_SPEC:
        return health
    if others := [one for one in contract.versions_reached(live) if not versions.has_reached(one, version)]:
        return waiting("Upgrading", f"it has Machines of version {', '.join(others)} instead of {version}")
    updated, wanted = contract.updated_replicas(live), integer(live, "status", "replicas")
    if updated is not None and wanted is not None and updated < wanted:
        return waiting("RollingOut", f"{updated} of its {wanted} Machines are made of the latest template")
    if unavailable := integer(live, "status", "unavailableReplicas"):
        return waiting("ReplicasNotReady", f"{unavailable} of its Machines are unavailable")
    if short := _short(live):
        return waiting("ReplicasNotReady", "; ".join(short))
    return health


def _short(live: Object) -> list[str]:
    """Which counts in the status are not that of the spec."""
    wanted, counts = integer(live, "spec", "replicas"), contract.replica_counts(mapping(live, "status"))
    return [f"{name} is {count} of {wanted}" for name, count in counts.items() if wanted is not None and count != wanted]
