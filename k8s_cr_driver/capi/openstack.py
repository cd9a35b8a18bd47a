# SPDX-License-Identifier: Apache-2.0
"""
The kinds of Cluster API's provider for OpenStack (CAPO), of its v1beta1 and v1alpha1.

If their controller cannot open the cloud, it writes no status, condition, Event or finalizer, and a machine does not report
what its server reports. So these kinds name their cloud, and a machine its server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from k8s_cr_driver.capi import contract
from k8s_cr_driver.capi.machines import MachineOwner
from k8s_cr_driver.objects.fields import field, mapping, text
from k8s_cr_driver.objects.keys import CloudEntry, GroupKind, Object, ObjectKey, SecretEntry, as_selector, key_of, labels
from k8s_cr_driver.resources.health import Health
from k8s_cr_driver.resources.health.model import waiting
from k8s_cr_driver.resources.health.silence import is_unwritten
from k8s_cr_driver.resources.hooks import Causes, Children

GROUP = f"infrastructure.{contract.GROUP}"
CLUSTERS = GroupKind(GROUP, "OpenStackCluster")
IDENTITY = ("spec", "identityRef")
"""Path of the reference to the credentials."""
CLOUDS_YAML = "clouds.yaml"
"""Key of their Secret."""
ORC = "openstack.k-orc.cloud"
"""API group of the OpenStack Resource Controller."""
SERVER_DELETION = 300.0
"""Seconds for which CAPO waits, without a write, until Nova has deleted a server (`timeoutInstanceDelete`)."""
RESOLVED = {
    "serverGroup": ("status", "resolved", "serverGroupID"),
    "image": ("status", "resolved", "imageID"),
    "flavor": ("status", "resolved", "flavorID"),
}
"""Field in the spec of a server -> where its status has the id that the cloud has for that."""


def _cloud(live: Object) -> CloudEntry | None:
    """The cloud that `spec.identityRef` names; None for an OpenStackClusterIdentity, whose Secret is its administrator's."""
    identity = mapping(live, *IDENTITY)
    name = text(identity, "name")
    if not name or text(identity, "type") not in ("", "Secret"):
        return None
    secret = SecretEntry(key_of(live).namespace, name, CLOUDS_YAML)
    return CloudEntry(secret, text(identity, "cloudName"), text(identity, "region"))


class OpenStackCluster(MachineOwner):
    group, kind = CLUSTERS

    def causes(self, live: Object) -> Causes:
        return Causes(contract.referred(live), _cloud(live))


class OpenStackFloatingIPPool(OpenStackCluster):
    kind = "OpenStackFloatingIPPool"


class OpenStackMachine(MachineOwner):
    group, kind = GROUP, "OpenStackMachine"

    def causes(self, live: Object) -> Causes:
        """The server of the same name. What the machine itself reports stays as it was before that was created."""
        return Causes([self.key._replace(kind="OpenStackServer")], self._cloud(live), SERVER_DELETION)

    @staticmethod
    def _cloud(live: Object) -> CloudEntry | Children | None:
        """Its own, or that of its cluster; None with conditions: then it waits for other objects."""
        cluster = labels(live).get(contract.CLUSTER_NAME_LABEL, "")
        if contract.conditions(live):
            return None
        if mapping(live, *IDENTITY) or not cluster:
            return _cloud(live)
        return Children(CLUSTERS, "", key_of(live).namespace, as_selector({contract.CLUSTER_NAME_LABEL: cluster}))


class OpenStackServer(MachineOwner):
    group, kind = GROUP, "OpenStackServer"

    def assess(self, live: Object) -> Health:
        """Nothing but `status.resolved` reports that the cloud has no such flavor or image."""
        health = super().assess(live)
        if health.settled or contract.conditions(live) or not mapping(live, "status"):
            return health
        missing = [name for name, path in RESOLVED.items() if mapping(live, "spec").get(name) and not field(live, *path)]
        if not missing:
            return health
        is_awaited = missing == ["image"] and bool(self.causes(live).objects)
        trouble = is_unwritten(live) and not is_awaited
        return waiting("NotResolved", f"not found in the cloud so far: {_named(live, missing)}", trouble=trouble)

    def causes(self, live: Object) -> Causes:
        """An image may be an object of the OpenStack Resource Controller. CAPO does not report the fault that Nova records."""
        image, cloud = text(live, "spec", "image", "imageRef", "name"), _cloud(live)
        if cloud and text(live, "status", "instanceState") == "ERROR":
            cloud = cloud._replace(server=text(live, "status", "instanceID"))
        images = [ObjectKey(ORC, "Image", key_of(live).namespace, image)] if image else []
        return Causes(images, cloud, SERVER_DELETION)


def _named(server: Object, several: Iterable[str]) -> str:
    """Fields of the spec with their values: `spec.flavor m1.large`."""
    spec = mapping(server, "spec")
    values = ((name, spec[name] if isinstance(spec[name], str) else json.dumps(spec[name])) for name in several)
    return ", ".join(f"spec.{name} {value}" for name, value in values)
