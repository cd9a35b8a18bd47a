"""Objects and their children -> VNFCs, as plain dicts.

A VDU's object has children (Pods of a Deployment, Machines of a MachineDeployment): each is one VNFC. An object without
such children has one VNFC for each replica, under names that stay the same from one look to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from k8s_cr_driver.connection import Connection
from k8s_cr_driver.discovery import Resource, Resources
from k8s_cr_driver.errors import ApiError, Refused, passes
from k8s_cr_driver.keys import Object, labels
from k8s_cr_driver.resources.base import Children, CustomResource


@dataclass(frozen=True)
class Vnfc:
    """One VNFC (SOL003 clause 5.5.3.5): `id` is its name on the cluster, `kind` that of the VDU's object."""

    id: str
    vdu: str
    kind: str
    created: str = ""
    """creationTimestamp."""
    metadata: dict[str, str] = field(default_factory=dict)


def count(obj: CustomResource, live: Object | None = None) -> int:
    """The replicas that the object names (one where it names none)."""
    value: object = live or obj.manifest
    for step in obj.replicas() or ():
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else 1


def collect(connection: Connection, resources: Resources, vdus: Mapping[str, CustomResource]) -> list[Vnfc]:
    """The VNFCs of all VDUs (VDU id -> its object), newest first; one LIST for each kind and namespace of children."""
    wanted = {vdu: obj.children() for vdu, obj in vdus.items()}
    lists = {
        place: _list(connection, resources, [child for child in wanted.values() if child and _place(child) == place])
        for place in {_place(child) for child in wanted.values() if child}
    }
    found: list[Vnfc] = []
    for vdu, obj in vdus.items():
        children = wanted[vdu]
        if children is None:
            found += [Vnfc(f"{obj.key.name}-{index}", vdu, obj.key.kind) for index in range(count(obj))]
        else:
            found += [
                Vnfc(
                    child["metadata"]["name"],
                    vdu,
                    obj.key.kind,
                    child["metadata"].get("creationTimestamp", ""),
                    obj.child_metadata(child),
                )
                for child in lists[_place(children)]
                if _is_child(child, children)
            ]
    return sorted(found, key=lambda vnfc: (vnfc.created, vnfc.id), reverse=True)


def _place(children: Children) -> tuple[str, str, str]:
    return (*children.kind, children.namespace)


def _list(connection: Connection, resources: Resources, children: Iterable[Children]) -> list[Object]:
    several = list(children)
    resource: Resource | None = resources.find(several[0].kind, several[0].version)
    if resource is None:
        raise Refused(f"The cluster does not know {several[0].kind}, whose objects are the VNFCs of a VDU.")
    selectors = {child.selector for child in several}
    query = [("labelSelector", selectors.pop())] if len(selectors) == 1 else []
    try:
        return connection.request("GET", resource.path(several[0].namespace), query=query).get("items") or []
    except ApiError as error:
        if passes(error):
            raise
        raise Refused(f"The VNFCs cannot be listed: {error}") from None


def _is_child(child: Object, children: Children) -> bool:
    """Pods that have ended or are on their way out are no VNFCs any more."""
    metadata = child["metadata"]
    ended = (child.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    own = labels(child)
    return (
        not metadata.get("deletionTimestamp")
        and not ended
        and children.name in ("", metadata["name"])
        and all(own.get(key) == value for key, value in children.labels.items())
    )
