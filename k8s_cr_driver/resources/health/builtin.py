# SPDX-License-Identifier: Apache-2.0
"""Health rules of the kinds that are built into Kubernetes, by (group, kind).

Kinds of these groups without a rule (ConfigMap, Role, Ingress, ...) are ready once stored: they have no status, or one
that nobody has to write (an Ingress gets an address only from some controllers), or that reports on others (a
HorizontalPodAutoscaler on its target and on the cluster's metrics, and in autoscaling/v1 not even that).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from k8s_cr_driver.objects.fields import entries, field, sequence, text
from k8s_cr_driver.objects.quantities import is_less
from k8s_cr_driver.resources.health import workloads
from k8s_cr_driver.resources.health.conditions import explain, is_trouble, status_of
from k8s_cr_driver.resources.health.freshness import unobserved
from k8s_cr_driver.resources.health.model import Health, failed, ready, suspended, waiting

Rule = Callable[[dict[str, Any]], Health]

# Where the volume controller asks a provisioner for a volume it says so; a claim of a class with
# volumeBindingMode WaitForFirstConsumer is asked for only when a Pod that uses it is scheduled
PROVISIONING = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
_RESIZE_ERRORS = ("ControllerResizeError", "NodeResizeError", "ModifyVolumeError")
"""Conditions of a claim whose change has failed: k8s.io/api/core/v1, PersistentVolumeClaimConditionType."""


def condition(live: dict[str, Any], name: str) -> dict[str, Any]:
    """The last condition of a type; an empty one if there is none."""
    found = [c for c in entries(live, "status", "conditions") if c.get("type") == name]
    return found[-1] if found else {}


def requires(live: dict[str, Any], *names: str) -> Health:
    """READY if all these conditions are True."""
    for name in names:
        found = condition(live, name)
        if not found:
            return waiting("NoStatus", f"the condition {name} is not there yet")
        if status_of(found) != "true":
            return waiting(*explain([found]), trouble=is_trouble(found))
    return ready(names[0])


def service(live: dict[str, Any]) -> Health:
    """A Service of type LoadBalancer is ready when it has an address, any other when it is stored."""
    if field(live, "spec", "type") != "LoadBalancer" or sequence(live, "status", "loadBalancer", "ingress"):
        return ready("Stored")
    return waiting("NoAddress", "no load balancer has given the Service an address yet")


def volume_claim(live: dict[str, Any]) -> Health:
    """A PersistentVolumeClaim is ready when bound and of its size, at rest while it waits for the first Pod to use it.

    The object does not contain the binding mode of its class. Its annotations show whether a volume was requested; if not,
    and it can be provisioned at all, nothing happens before a Pod uses it. Such a Pod is itself not ready until then.
    """
    phase = text(live, "status", "phase")
    if phase == "Bound":
        return _unchanged(live) or ready("Bound")
    if phase == "Lost":
        return failed("Lost", f"its volume {field(live, 'spec', 'volumeName')} does not exist any more")
    if not phase:
        return waiting("NoStatus", "the volume controller has not looked at the claim yet")
    annotations = field(live, "metadata", "annotations")
    if any(field(annotations, name) for name in PROVISIONING):
        return waiting("Provisioning", "a volume was asked for and is not there yet")
    if field(live, "spec", "volumeName") or field(live, "spec", "storageClassName") == "":
        return waiting("Pending", "no volume that fits the claim is available")
    return suspended("WaitForFirstConsumer", "no volume is asked for before a Pod uses the claim")


def _unchanged(live: dict[str, Any]) -> Health | None:
    """WAITING if a bound claim has not got the size, or the class of attributes, that it was changed to.

    That a file system grows may wait for the next start of a Pod (FileSystemResizePending): the volume has its size by then.
    """
    if errors := [one for name in _RESIZE_ERRORS if status_of(one := condition(live, name)) == "true"]:
        return waiting(*explain(errors), trouble=True)
    resize = text(live, "status", "allocatedResourceStatuses", "storage")
    modify = text(live, "status", "modifyVolumeStatus", "status")
    for said in (resize, modify):
        if said.endswith("Infeasible"):
            return waiting(said, "its driver cannot give the volume what the claim was changed to", trouble=True)
    if modify in ("Pending", "InProgress"):
        return waiting(modify, "the attributes of its volume are being changed")
    has, wants = field(live, "status", "capacity", "storage"), field(live, "spec", "resources", "requests", "storage")
    awaits_pod = resize.startswith("Node") or status_of(condition(live, "FileSystemResizePending")) == "true"
    if awaits_pod or not is_less(has, wants):
        return None
    return waiting("Resizing", f"its volume has {has}, {wants} are wanted")


def volume(live: dict[str, Any]) -> Health:
    """A PersistentVolume is ready when it can be claimed, or is."""
    phase = text(live, "status", "phase")
    if phase in ("Available", "Bound", "Released"):
        return ready(phase)
    if phase == "Failed":
        return failed("Failed", text(live, "status", "message"))
    return waiting(phase or "NoStatus", "the volume is not available yet")


def namespace(live: dict[str, Any]) -> Health:
    """A Namespace is ready when active."""
    phase = text(live, "status", "phase")
    return ready("Active") if phase == "Active" else waiting(phase or "NoStatus", "the namespace is not active")


def definition(live: dict[str, Any]) -> Health:
    """A CustomResourceDefinition is ready when its kinds are served; taken names are final."""
    names = condition(live, "NamesAccepted")
    if status_of(names) == "false":
        return failed(*explain([names]))
    return requires(live, "Established", "NamesAccepted")


def api_service(live: dict[str, Any]) -> Health:
    """An APIService is ready when available."""
    return requires(live, "Available")


def node(live: dict[str, Any]) -> Health:
    """A Node is ready when its kubelet says so."""
    return requires(live, "Ready")


def disruption_budget(live: dict[str, Any]) -> Health:
    """A PodDisruptionBudget is ready when its controller could count; whether it allows a disruption is no matter."""
    allowed = condition(live, "DisruptionAllowed")
    if not live.get("status"):
        return waiting("NoStatus", "the disruption controller has not looked at the budget yet")
    if allowed.get("reason") == "SyncFailed":
        return waiting(*explain([allowed]), trouble=True)
    return unobserved(live) or ready("Observed")


def certificate_request(live: dict[str, Any]) -> Health:
    """A CertificateSigningRequest is ready when it has its certificate; denied and failed are final."""
    for final in ("Denied", "Failed"):
        if status_of(condition(live, final)) == "true":
            return failed(*explain([condition(live, final)]))
    if field(live, "status", "certificate"):
        return ready("Issued")
    if status_of(condition(live, "Approved")) == "true":
        return waiting("Approved", "approved, but not signed yet")
    return waiting("Pending", "nobody has approved the request yet")


RULES: Mapping[tuple[str, str], Rule] = {
    ("", "Namespace"): namespace,
    ("", "Node"): node,
    ("", "PersistentVolume"): volume,
    ("", "PersistentVolumeClaim"): volume_claim,
    ("", "Pod"): workloads.pod,
    ("", "ReplicationController"): workloads.replica_set,
    ("", "Service"): service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition,
    ("apiregistration.k8s.io", "APIService"): api_service,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("certificates.k8s.io", "CertificateSigningRequest"): certificate_request,
    ("policy", "PodDisruptionBudget"): disruption_budget,
}
