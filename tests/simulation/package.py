# SPDX-License-Identifier: Apache-2.0
"""Generated packages: sets of objects that need each other, and the same set a version later."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object, copy, key_of

GROUP = "sim.example.com"
DEPENDS_ON = "config.kubernetes.io/depends-on"
REPLACE = {"k8s-cr-driver/replace": "true"}
KEEP = {"k8s-cr-driver/keep": "true"}


def make(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def namespace(name: str) -> Object:
    return make("v1", "Namespace", name)


def config_map(name: str, where: str, **data: str) -> Object:
    return make("v1", "ConfigMap", name, where, data=data)


def replaceable(manifest: Object) -> Object:
    """A ConfigMap whose data never change, so that a change replaces it."""
    return {**manifest, "immutable": True, "metadata": {**manifest["metadata"], "annotations": dict(REPLACE)}}


def crd() -> Object:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    version: Object = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    version["schema"] = {"openAPIV3Schema": schema}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return make("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"widgets.{GROUP}", spec=spec)


def widget(name: str, where: str, **spec: Any) -> Object:
    """`holds`: its controller puts a finalizer on it."""
    return make(f"{GROUP}/v1", "Widget", name, where, spec=spec)


def workload(kind: str, name: str, where: str, replicas: int, image: str) -> Object:
    marks = {"app": name}
    template = {"metadata": {"labels": marks}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec: Object = {"replicas": replicas, "selector": {"matchLabels": marks}, "template": template}
    if kind == "StatefulSet":
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    return make("apps/v1", kind, name, where, spec=spec)


def job(name: str, where: str, ttl: int | None) -> Object:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec = {"template": template, **({} if ttl is None else {"ttlSecondsAfterFinished": ttl})}
    return make("batch/v1", "Job", name, where, spec=spec)


def first(
    chance: random.Random, own: str, shared: str, features: frozenset[str], *, has_widgets: bool = False
) -> list[Object]:
    """
    A package of an instance whose own Namespace is `own`; `shared` is one that others bring, too.

    With `has_widgets` the cluster knows these already, and the package brings no CRD of them.
    """
    places = ["default"]
    objects: list[Object] = []
    for name, odds in ((own, 0.6), (shared, 0.4)):
        if chance.random() < odds:
            objects.append(namespace(name))
            places.append(name)

    def place() -> str:
        return chance.choice(places)

    objects += [config_map(f"map-{own}-{number}", place(), version="1") for number in range(chance.randint(1, 3))]
    if "immutable fields" in features:
        objects = [replaceable(obj) if obj["kind"] == "ConfigMap" and chance.random() < 0.5 else obj for obj in objects]
    if chance.random() < 0.6:
        objects += [] if has_widgets else [crd()]
        names = [f"widget-{own}-{number}" for number in range(chance.randint(0, 2))]
        objects += [widget(name, place(), size=1, holds=chance.random() < 0.3) for name in names]
    if chance.random() < 0.4:
        objects.append(workload("StatefulSet", f"db-{own}", place(), chance.randint(1, 2), "i:1"))
    if chance.random() < 0.3:
        objects.append(workload("Deployment", f"web-{own}", place(), chance.randint(1, 2), "i:1"))
    if chance.random() < 0.3:
        ttl = chance.choice((0, 5)) if "job ttl" in features else None
        objects.append(job(f"job-{own}", place(), ttl))
    if chance.random() < 0.3:
        objects.append(make("rbac.authorization.k8s.io/v1", "ClusterRole", f"role-{own}", rules=[]))
    return objects


def kept(chance: random.Random, objects: list[Object]) -> None:
    """Lets some objects outlive the instance."""
    for obj in objects:
        if obj["kind"] in ("ConfigMap", "Widget") and not obj.get("immutable") and chance.random() < 0.4:
            obj["metadata"]["annotations"] = dict(KEEP)


def gathered(chance: random.Random, objects: list[Object]) -> list[Object]:
    """All in the same Namespace, and one more, so that one may be the owner of others, or of the Namespace."""
    places = [where for obj in objects if (where := obj["metadata"].get("namespace"))]
    place = {"namespace": (places or ["default"])[0]}
    placed = [{**obj, "metadata": {**obj["metadata"], **place}} if "namespace" in obj["metadata"] else obj for obj in objects]
    roles = [make("rbac.authorization.k8s.io/v1", "ClusterRole", "role-more", rules=[])] if chance.random() < 0.3 else []
    return [*placed, config_map("map-more", place["namespace"], version="1"), *roles]


def few(chance: random.Random, objects: list[Object], count: int) -> list[Object]:
    """So many of them at most, with the Namespaces and the CRD that they need."""
    chosen = chance.sample(objects, min(count, len(objects)))
    places, kinds = {obj["metadata"].get("namespace") for obj in chosen}, {obj["kind"] for obj in chosen}
    return [
        obj
        for obj in objects
        if obj in chosen
        or (obj["kind"] == "Namespace" and obj["metadata"]["name"] in places)
        or (obj["kind"] == "CustomResourceDefinition" and "Widget" in kinds)
    ]


def neighbour(chance: random.Random, objects: list[Object], *, is_guest: bool) -> list[Object]:
    """A package that shares what it can with those `objects`; a guest has an object in a Namespace that it does not bring."""
    shared = [copy(obj) for obj in objects if obj["kind"] in ("Namespace", "CustomResourceDefinition")]
    for obj in shared:
        obj["metadata"].pop("annotations", None)
    brought = [obj for obj in shared if chance.random() < 0.5]
    found = [config_map("map-green", "team", version="1"), *brought]
    for obj in shared if is_guest else brought:
        where = obj["metadata"]["name"]
        found.append(config_map("guest-green", where, version="1") if obj["kind"] == "Namespace" else widget("green", "team"))
    return found


def guests(objects: list[Object]) -> list[Object]:
    """What users have in the Namespaces and of the CRDs that a package brings, and must never lose."""
    found = []
    for obj in objects:
        name = obj["metadata"]["name"]
        if obj["kind"] == "CustomResourceDefinition":
            found.append(widget("guest", "team", size=1))
        elif obj["kind"] == "Namespace":
            found.append(make("v1", "PersistentVolumeClaim", "guest", name, spec={"accessModes": ["ReadWriteOnce"]}))
            found.append(make("v1", "Secret", "sh.helm.release.v1.guest.v1", name, type="helm.sh/release.v1"))
    return found


def lookalikes(objects: list[Object]) -> list[Object]:
    """Claims of users whose names look like those of a package's StatefulSets."""
    return [
        make("v1", "PersistentVolumeClaim", f"data-{obj['metadata']['name']}-7", obj["metadata"]["namespace"], spec={})
        for obj in objects
        if obj["kind"] == "StatefulSet"
    ]


def depend(chance: random.Random, objects: list[Object]) -> None:
    """Lets some objects wait for one before them."""
    for index, obj in enumerate(objects[1:], 1):
        other = objects[chance.randrange(index)]
        is_changed_later = obj["kind"] == "Job"  # a Job whose manifest changes runs again
        if chance.random() < 0.2 and not is_changed_later and other["kind"] not in ("Namespace", "CustomResourceDefinition"):
            group, where = other["apiVersion"].rpartition("/")[0], other["metadata"].get("namespace", "")
            steps = [group, *(["namespaces", where] if where else []), other["kind"], other["metadata"]["name"]]
            obj["metadata"].setdefault("annotations", {})[DEPENDS_ON] = "/".join(steps)


def second(
    chance: random.Random,
    before: list[Object],
    own: str,
    features: frozenset[str],
    owners: Collection[tuple[Resource, Key]] = (),
) -> list[Object]:
    """The next version of a package: some objects go, `owners` mostly, some change, one is new."""
    objects = [copy(obj) for obj in before if not _goes(chance, obj, features, is_owner=named(obj) in owners)]
    for obj in objects:
        annotations = obj["metadata"].pop("annotations", {})
        if lasting := {name: text for name, text in annotations.items() if name != DEPENDS_ON}:
            obj["metadata"]["annotations"] = lasting
        if obj["kind"] == "ConfigMap" and chance.random() < 0.5:
            obj["data"] = {"version": "2", "more": "yes"}
        elif obj["kind"] == "Widget" and chance.random() < 0.5:
            obj["spec"]["size"] = 2
        elif obj["kind"] in _with_images(features) and chance.random() < 0.5:
            obj["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    fresh = config_map(f"new-{own}-{chance.randrange(10**6)}", "default", version="2")
    return [*objects, fresh]


def _with_images(features: frozenset[str]) -> tuple[str, ...]:
    """The kinds whose image changes; a Job is replaced then."""
    return ("Deployment", "StatefulSet", "Job") if "immutable fields" in features else ("Deployment", "StatefulSet")


def _goes(chance: random.Random, obj: Object, features: frozenset[str], *, is_owner: bool) -> bool:
    """Containers of objects that stay are left out only with that feature."""
    if obj["kind"] in ("Namespace", "CustomResourceDefinition"):
        return "dropped containers" in features and chance.random() < 0.5
    return chance.random() < (0.7 if is_owner else 0.3)


def named(manifest: Object) -> tuple[Resource, Key]:
    return _RESOURCES[manifest["kind"]], key_of(manifest)


_RESOURCES: dict[str, Resource] = {
    "Namespace": ("", "namespaces"),
    "ConfigMap": ("", "configmaps"),
    "CustomResourceDefinition": ("apiextensions.k8s.io", "customresourcedefinitions"),
    "Widget": ("sim.example.com", "widgets"),
    "StatefulSet": ("apps", "statefulsets"),
    "Deployment": ("apps", "deployments"),
    "Job": ("batch", "jobs"),
    "ClusterRole": ("rbac.authorization.k8s.io", "clusterroles"),
}
