# SPDX-License-Identifier: Apache-2.0
"""Ready-made reactions that play the workload controllers and a kubelet whose pods are ready at once."""

import contextlib
from collections.abc import Callable
from functools import partial
from zlib import crc32

from tests.fake_api.hand import Hand
from tests.fake_api.objects import Object, copy, dig, now

MANAGER = "kube-controller-manager"
"""The field manager of the workload controllers."""


def run_workloads(api: Hand) -> None:
    """Deployments get a ReplicaSet, ReplicaSets and StatefulSets pods and claims, Jobs complete, pods run, claims are bound."""
    for kind, reaction in REACTIONS.items():
        api.cluster.reactions.append((kind, None, partial(reaction, api)))


def condition(type_: str, status: str = "True", reason: str = "Test", message: str = "") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": now()}


def owned(owner: Object, api_version: str, kind: str, name: str, **parts: object) -> Object:
    """A new object that `owner` controls, in its namespace."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                 "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": api_version, "kind": kind, **copy(parts), "metadata": {
        "name": name, "namespace": owner["metadata"]["namespace"], "ownerReferences": [reference],
        "labels": dig(parts, "spec", "template", "metadata", "labels") or parts.get("labels") or {}}}


def children(api: Hand, owner: Object, kind: str) -> list[Object]:
    uid = owner["metadata"]["uid"]
    return [obj for obj in api.objects(kind, owner["metadata"]["namespace"])
            if any(ref["uid"] == uid for ref in obj["metadata"].get("ownerReferences") or [])]


def _set(api: Hand, obj: Object, status: Object) -> None:
    metadata = obj["metadata"]
    current = api.stored(obj["kind"], metadata.get("namespace"), metadata["name"])
    if current is not None and "deletionTimestamp" not in current["metadata"] and current.get("status") != status:
        api.set_status(obj["kind"], metadata.get("namespace"), metadata["name"], status, manager=MANAGER)


def _deployment(api: Hand, obj: Object) -> None:
    if "deletionTimestamp" in obj["metadata"]:
        return
    revision = f"{obj['metadata']['name']}-{crc32(str(obj['spec']['template']).encode()):08x}"
    sets = {one["metadata"]["name"]: one for one in children(api, obj, "ReplicaSet")}
    current = sets.pop(revision, None)
    for old in sets.values():
        api.delete("ReplicaSet", old["metadata"]["namespace"], old["metadata"]["name"])
    count = obj["spec"]["replicas"]
    if current is None or current["spec"]["replicas"] != count:  # one of a former Deployment becomes this one's
        spec = {name: obj["spec"][name] for name in ("selector", "template")}
        made = owned(obj, "apps/v1", "ReplicaSet", revision, spec={**spec, "replicas": count})
        made["metadata"]["labels"] = {**made["metadata"]["labels"], "pod-template-hash": revision.rpartition("-")[2]}
        api.put(made)
    _set(api, obj, {
        "observedGeneration": obj["metadata"]["generation"], "replicas": count, "updatedReplicas": count,
        "readyReplicas": count, "availableReplicas": count,
        "conditions": _kept(obj, condition("Available"), condition("Progressing", reason="NewReplicaSetAvailable"))})


def _replicas(api: Hand, obj: Object) -> None:
    if "deletionTimestamp" in obj["metadata"]:
        return
    count, name = obj["spec"]["replicas"], obj["metadata"]["name"]
    pods = children(api, obj, "Pod")
    present = {pod["metadata"]["name"] for pod in pods}
    wanted = [f"{name}-{number}" for number in range(count)]
    if obj["kind"] == "ReplicaSet":
        kept = _kept_pods(pods, count)
        wanted = [*kept, *(pod for pod in wanted if pod not in kept)][:count]
    template = obj["spec"]["template"]
    for pod in wanted:
        if pod not in present:
            labels = dig(template, "metadata", "labels", default={})
            made = owned(obj, "v1", "Pod", pod, spec=template["spec"])
            made["metadata"]["labels"] = labels
            api.put(made)
    for pod in sorted(present - set(wanted)):
        with contextlib.suppress(LookupError):  # each deletion calls this controller again
            api.delete("Pod", obj["metadata"]["namespace"], pod)
    status = {"observedGeneration": obj["metadata"]["generation"], "replicas": count, "readyReplicas": count,
              "availableReplicas": count}
    if obj["kind"] == "StatefulSet":
        _claims(api, obj)
        status.update(currentReplicas=count, updatedReplicas=count, currentRevision="1", updateRevision="1")
    _set(api, obj, status)


def _kept_pods(pods: list[Object], count: int) -> list[str]:
    """The Pods that a ReplicaSet keeps of too many: those of the highest deletion cost, then the oldest."""
    def cost(pod: Object) -> int:
        annotations = pod["metadata"].get("annotations") or {}
        return int(annotations.get("controller.kubernetes.io/pod-deletion-cost", "0"))

    ordered = sorted(pods, key=lambda pod: (-cost(pod), pod["metadata"]["name"]))
    return [pod["metadata"]["name"] for pod in ordered[:count]]


def _claims(api: Hand, obj: Object) -> None:
    """A claim for each pod and template, which nobody owns, with the labels of the template and of the selector."""
    namespace, labels = obj["metadata"]["namespace"], dig(obj, "spec", "selector", "matchLabels", default={})
    for template in obj["spec"].get("volumeClaimTemplates") or []:
        for number in range(obj["spec"]["replicas"]):
            name = f"{template['metadata']['name']}-{obj['metadata']['name']}-{number}"
            if api.stored("PersistentVolumeClaim", namespace, name) is None:
                own = {**(template["metadata"].get("labels") or {}), **labels}
                metadata = {"name": name, "namespace": namespace, "labels": own}
                api.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
                         "spec": template["spec"]}, manager=MANAGER)


def _daemon_set(api: Hand, obj: Object) -> None:
    _set(api, obj, {"observedGeneration": obj["metadata"]["generation"], "desiredNumberScheduled": 1,
                    "currentNumberScheduled": 1, "updatedNumberScheduled": 1, "numberReady": 1, "numberAvailable": 1,
                    "numberMisscheduled": 0})


def _job(api: Hand, obj: Object) -> None:
    if not dig(obj, "status", "succeeded"):
        _set(api, obj, {"succeeded": 1, "startTime": now(), "completionTime": now(),
                        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]})


def _pod(api: Hand, obj: Object) -> None:
    if dig(obj, "status", "phase") == "Pending":
        names = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        states = [{"name": container["name"], "image": container.get("image", ""), "ready": True, "restartCount": 0,
                   "state": {"running": {"startedAt": now()}}} for container in dig(obj, "spec", "containers") or []]
        _set(api, obj, {"phase": "Running", "podIP": "10.244.0.10", "startTime": now(),
                        "conditions": [condition(name) for name in names], "containerStatuses": states})


def _kept(obj: Object, *conditions: Object) -> list[Object]:
    """The conditions as they are already, so that a write that changes nothing else changes nothing."""
    known = {one["type"]: one for one in dig(obj, "status", "conditions", default=[])}
    return [known.get(one["type"], one) for one in conditions]


REACTIONS: dict[str, Callable[[Hand, Object], None]] = {
    "Deployment": _deployment, "ReplicaSet": _replicas, "StatefulSet": _replicas, "DaemonSet": _daemon_set, "Job": _job,
    "Pod": _pod, "PersistentVolumeClaim": lambda api, obj: _set(api, obj, {"phase": "Bound"})}
"""What the controller of each kind does about an object that was written, once."""
