# SPDX-License-Identifier: Apache-2.0
"""The `scale` subresource: an autoscaling/v1 Scale view of an object that has replicas."""

from tests.fake_api import errors
from tests.fake_api.kinds import Kind, Scale
from tests.fake_api.objects import Object, copy, dig, put


def of(kind: Kind, obj: Object) -> Object:
    """The Scale of an object."""
    paths = _paths(kind)
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": dig(obj, *paths.status, default=0) if paths.status else 0}
    selector = dig(obj, *paths.selector) if paths.selector else None
    if isinstance(selector, dict):
        labels = selector.get("matchLabels", selector)
        selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    if selector:
        status["selector"] = selector
    return {"kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {name: obj["metadata"][name] for name in names if name in obj["metadata"]},
            "spec": {"replicas": dig(obj, *paths.spec, default=0)}, "status": status}


def applied(kind: Kind, obj: Object, scale: Object) -> Object:
    """The object with the replicas of a Scale that was put or patched."""
    replicas = dig(scale, "spec", "replicas", default=0)
    if not isinstance(replicas, int) or replicas < 0:
        raise errors.invalid("autoscaling", "Scale", obj["metadata"]["name"], [errors.cause(
            "FieldValueInvalid", f"Invalid value: {replicas}: must be greater than or equal to 0", "spec.replicas")])
    new: Object = copy(obj)
    put(new, _paths(kind).spec, replicas)
    new["metadata"]["resourceVersion"] = dig(scale, "metadata", "resourceVersion", default="")
    return new


def config(kind: Kind, obj: Object, scale: Object) -> Object:
    """What an apply of a Scale means as an apply of the object itself."""
    wanted: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": scale.get("metadata") or {}}
    replicas = dig(scale, "spec", "replicas")
    if replicas is not None:
        put(wanted, _paths(kind).spec, replicas)
    wanted["apiVersion"] = kind.api_version
    return wanted


def _paths(kind: Kind) -> Scale:
    assert kind.scale is not None
    return kind.scale
