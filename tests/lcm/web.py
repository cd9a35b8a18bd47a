# SPDX-License-Identifier: Apache-2.0
"""The objects of the VDU `Web`, and the controller of its Deployment on the fake API server; without Tacker."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from typing import Any

from tests.fake_api import FakeApi, controllers
from tests.instance import crontab, crontab_crd, obj

RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def deployment(replicas: int = 1) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return obj("apps/v1", "Deployment", "web", spec=spec)


def selecting(api: FakeApi, size: int) -> list[dict[str, Any]]:
    """A CRD and a CronTab, the object of the VDU `Web`, whose status selects the pods of `deployment` at once."""
    crd, manifest = crontab_crd(selector={"type": "string"}), crontab("tab")
    [version] = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] = {"type": "integer"}
    paths = dict.fromkeys(("specReplicasPath", "statusReplicasPath"), ".spec.size")
    version["subresources"]["scale"] = {**paths, "labelSelectorPath": ".status.selector"}
    manifest["spec"]["size"] = size
    manifest["metadata"]["annotations"] = {"k8s-cr-driver/vdu": "Web"}

    def select(live: dict[str, Any]) -> None:
        if not live.get("status"):
            api.set_status("CronTab", "default", "tab", {"selector": "app=web"})

    api.react("CronTab", select)
    return [crd, manifest]


def remove_pods(api: FakeApi, is_stale: Callable[[dict[str, Any]], bool]) -> None:
    """Of several writers of their Deployment at once each does it."""
    for pod in filter(is_stale, api.objects("Pod", "default")):
        with contextlib.suppress(LookupError):
            api.delete("Pod", "default", pod["metadata"]["name"])


def run_web(api: FakeApi) -> None:
    """The Deployment `web` gets its Pods at once, through a ReplicaSet, each under a name of its own.

    One in another namespace than `default` has none, and is ready without.
    """

    def roll_out(live: dict[str, Any]) -> None:
        metadata = live["metadata"]
        if metadata["namespace"] != "default":
            if (live.get("status") or {}).get("observedGeneration") != metadata["generation"]:
                conditions = [{"type": "Available", "status": "True"}]
                ready = {"observedGeneration": metadata["generation"], "conditions": conditions}
                with contextlib.suppress(LookupError):  # it is deleted
                    api.set_status("Deployment", metadata["namespace"], metadata["name"], ready)
            return
        if api.find("ReplicaSet", "default", "web") is None:
            api.put(controllers.owned(live, "apps/v1", "ReplicaSet", "web", spec=live["spec"]))
        owner = controllers.owned(api.get("ReplicaSet", "default", "web"), "v1", "Pod", "", spec=live["spec"])["metadata"]
        wanted = 0 if live["metadata"].get("deletionTimestamp") else live["spec"]["replicas"]
        containers = live["spec"]["template"]["spec"]["containers"]
        remove_pods(api, lambda pod: pod["spec"]["containers"][0]["image"] != containers[0]["image"])
        pods = api.names("Pod", "default")
        for _ in range(wanted - len(pods)):
            pod = obj("v1", "Pod", f"web-5d8f7c-{uuid.uuid4().hex[:5]}", spec={"containers": containers}, status=RUNNING)
            api.put({**pod, "metadata": {**owner, **pod["metadata"]}})
        while len(pods := api.names("Pod", "default")) > wanted:
            with contextlib.suppress(LookupError):
                api.delete("Pod", "default", pods[-1])
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        status = {"observedGeneration": live["metadata"]["generation"], **counts}
        status["conditions"] = [{"type": "Available", "status": "True"}]
        current = api.find("Deployment", "default", "web")
        if current is not None and current.get("status") != status:
            api.set_status("Deployment", "default", "web", status)

    def roll_out_again(_: dict[str, Any]) -> None:
        live = api.find("Deployment", "default", "web")
        if live is not None:
            roll_out(live)

    api.react("Deployment", roll_out)
    api.react("ReplicaSet", roll_out_again)
