# SPDX-License-Identifier: Apache-2.0
"""Health rules of the built-in kinds that run containers.

A rollout is done when every replica runs the latest template and is available. What the kubelet and the controllers
try again for ever (an image pull, a crash loop, a rollout past its progress deadline) is waiting, with the
container's own reason: the deadline of the operation decides, as a passing error is none.
"""

from __future__ import annotations

import math
import re
from typing import Any

from k8s_cr_driver.objects.fields import entries, field, integer, text
from k8s_cr_driver.resources.health.conditions import explain, is_trouble, status_of
from k8s_cr_driver.resources.health.freshness import unobserved
from k8s_cr_driver.resources.health.model import Health, failed, ready, suspended, waiting

STARTING = ("ContainerCreating", "PodInitializing")
"""Reasons of a container that waits for its turn."""
NOT_SEEN = waiting("NoStatus", "its controller has not looked at it yet")
_REVISION = "deployment.kubernetes.io/revision"
"""The annotation that a Deployment gets with its first ReplicaSet."""
_PERCENTAGE = re.compile(r"([0-9]{1,5})%")


def _conditions(live: dict[str, Any], status: str, *names: str) -> list[dict[str, Any]]:
    found = entries(live, "status", "conditions")
    return [c for c in found if c.get("type") in names and status_of(c) == status]


def _count(live: dict[str, Any], name: str) -> int:
    return integer(live, "status", name) or 0


def _wanted(live: dict[str, Any]) -> int:
    wanted = integer(live, "spec", "replicas")
    return 1 if wanted is None else wanted


def _observed(live: dict[str, Any]) -> Health | None:
    if integer(live, "status", "observedGeneration") is None:
        return NOT_SEEN
    return unobserved(live)


def _short(wanted: int, **counts: int) -> Health | None:
    """WAITING if one of the counts has not reached the wanted number."""
    short = [f"{have} of {wanted} replicas are {name}" for name, have in counts.items() if have < wanted]
    return waiting("ReplicasNotReady", "; ".join(short)) if short else None


def _surplus(live: dict[str, Any], wanted: int) -> Health | None:
    """WAITING if replicas of an older template, or from before a scale in, are still there."""
    there = _count(live, "replicas")
    return waiting("SurplusReplicas", f"{there} replicas are there, {wanted} are wanted") if there > wanted else None


def _because(health: Health, causes: list[dict[str, Any]]) -> Health:
    """The same state with the cause that a condition names in front."""
    if not causes:
        return health
    reason, message = explain(causes)
    return Health(health.state, reason, f"{message}; {health.message}", any(map(is_trouble, causes)))


def _paused(live: dict[str, Any]) -> Health:
    """No rollout is started, but the Deployment is scaled all the same."""
    if missing := _count(live, "unavailableReplicas"):
        return waiting("Unavailable", f"spec.paused is true, and {missing} replicas are not available")
    there, wanted, updated = _count(live, "replicas"), _wanted(live), _count(live, "updatedReplicas")
    is_rolled_out = there or _has_revision(live)  # one that is created so has no replicas
    most = wanted if updated else wanted + _surge(live, wanted)  # what a rollout of two former templates may have left
    is_scaled = there < wanted or (updated in (0, there) and there > most)  # else surplus ones are of a rollout
    if there != wanted and is_rolled_out and is_scaled:  # the first status after a scale has the count from before
        return waiting("Replicas", f"spec.paused is true, and {there} replicas are there, {wanted} are wanted")
    return suspended("Paused", "spec.paused is true: no rollout is started")


def _has_revision(live: dict[str, Any]) -> bool:
    """Whether its controller has given it a revision; a manifest that was exported may have that of another one."""
    manifests = [entry for entry in entries(live, "metadata", "managedFields") if entry.get("operation") == "Apply"]
    is_applied = any(field(one, "fieldsV1", "f:metadata", "f:annotations", f"f:{_REVISION}") is not None for one in manifests)
    return bool(field(live, "metadata", "annotations", _REVISION)) and not is_applied


def _surge(live: dict[str, Any], wanted: int) -> int:
    """The Pods that a rollout may have beside the wanted ones: a number, or a percentage of these, rounded up."""
    surge = field(live, "spec", "strategy", "rollingUpdate", "maxSurge")
    if isinstance(surge, str) and (share := _PERCENTAGE.fullmatch(surge)):
        return math.ceil(wanted * int(share[1]) / 100)
    return surge if isinstance(surge, int) else 0


def deployment(live: dict[str, Any]) -> Health:
    """A Deployment is ready when all replicas are up to date and available and no old one is left."""
    if field(live, "spec", "paused") is True:
        return unobserved(live) or _paused(live)
    if unseen := _observed(live):
        return unseen
    wanted = _wanted(live)
    counts = {"updated": _count(live, "updatedReplicas"), "available": _count(live, "availableReplicas")}
    if unfinished := _short(wanted, **counts) or _surplus(live, wanted):
        causes = _conditions(live, "true", "ReplicaFailure") + _conditions(live, "false", "Progressing")
        return _because(unfinished, causes)
    return ready("Available", f"{wanted} of {wanted} replicas are available")


def replica_set(live: dict[str, Any]) -> Health:
    """A ReplicaSet or ReplicationController is ready when all replicas are available."""
    if unseen := _observed(live):
        return unseen
    wanted = _wanted(live)
    if unfinished := _short(wanted, available=_count(live, "availableReplicas")) or _surplus(live, wanted):
        return _because(unfinished, _conditions(live, "true", "ReplicaFailure"))
    return ready("Available", f"{wanted} of {wanted} replicas are available")


def stateful_set(live: dict[str, Any]) -> Health:
    """A StatefulSet is ready when all replicas are available and those above the partition run the latest revision."""
    if unseen := _observed(live):
        return unseen
    wanted = _wanted(live)
    counts = {"ready": _count(live, "readyReplicas"), "available": _count(live, "availableReplicas")}
    if unfinished := _short(wanted, **counts) or _surplus(live, wanted):
        return unfinished
    strategy = field(live, "spec", "updateStrategy")
    # Once a rollout is through, the current revision is the updated one and updatedReplicas is no longer counted
    rolling = field(live, "status", "currentRevision") != field(live, "status", "updateRevision")
    if rolling and field(strategy, "type") != "OnDelete":
        partition = integer(strategy, "rollingUpdate", "partition") or 0
        if unfinished := _short(wanted - partition, updated=_count(live, "updatedReplicas")):
            return unfinished
    return ready("Available", f"{wanted} of {wanted} replicas are available")


def daemon_set(live: dict[str, Any]) -> Health:
    """A DaemonSet is ready when every node that should run it has an available Pod of the latest template."""
    if unseen := _observed(live):
        return unseen
    wanted = _count(live, "desiredNumberScheduled")
    counts = {"available": _count(live, "numberAvailable")}
    if field(live, "spec", "updateStrategy", "type") != "OnDelete":
        counts["updated"] = _count(live, "updatedNumberScheduled")
    return _short(wanted, **counts) or ready("Available", f"available on {wanted} nodes")


def job(live: dict[str, Any]) -> Health:
    """A Job is ready when complete; its Failed condition is final."""
    if final := _conditions(live, "true", "Failed"):
        return failed(*explain(final))
    if _conditions(live, "true", "Complete"):
        return ready("Complete")
    if field(live, "spec", "suspend") is True:
        return suspended("Suspended", "spec.suspend is true")
    if not live.get("status"):
        return NOT_SEEN
    counts = ", ".join(f"{_count(live, name)} {name}" for name in ("active", "succeeded", "failed"))
    return _because(waiting("Running", f"Pods: {counts}"), _conditions(live, "true", "FailureTarget"))


def cron_job(live: dict[str, Any]) -> Health:
    """A CronJob is ready when stored: what its Jobs do later is not a matter of its own readiness."""
    if field(live, "spec", "suspend") is True:
        return suspended("Suspended", "spec.suspend is true")
    return ready("Stored")


def pod(live: dict[str, Any]) -> Health:
    """A Pod is ready when its Ready condition is True or it has succeeded; the phase Failed is final."""
    phase = text(live, "status", "phase")
    if phase == "Succeeded":
        return ready("Succeeded")
    if phase == "Failed":
        reason, message = _container_trouble(live) or ("", "")
        said = (text(live, "status", "reason"), text(live, "status", "message"))
        return failed(said[0] or reason or "Failed", said[1] or message)
    if _conditions(live, "true", "Ready"):
        return ready("Ready")
    if trouble := _container_trouble(live):
        return waiting(*trouble, trouble=True)
    unmet = _conditions(live, "false", "PodScheduled", "Initialized", "ContainersReady", "Ready")
    if unmet:
        return waiting(*explain(unmet), trouble=any(map(is_trouble, unmet)))
    return waiting(phase or "NoStatus", "no condition is known yet")


def _container_trouble(live: dict[str, Any]) -> tuple[str, str] | None:
    """Reason and message of the first container that waits for something other than its turn, or has failed."""
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in entries(live, "status", name):
            waits = field(container, "state", "waiting")
            ended = field(container, "state", "terminated") or field(container, "lastState", "terminated")
            reason = text(waits, "reason")
            judged = [text(waits, "message")]
            if integer(ended, "exitCode"):
                judged.append(f"last exit code {field(ended, 'exitCode')} {text(ended, 'reason')}".rstrip())
                reason = reason or text(ended, "reason")
            if reason and reason not in STARTING:
                return reason, f"container {container.get('name')}: {reason}: " + "; ".join(filter(None, judged))
    return None
