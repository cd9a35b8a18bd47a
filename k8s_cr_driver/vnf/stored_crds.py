# SPDX-License-Identifier: Apache-2.0
"""The CRDs of an instance's kinds on the cluster: they define fields of its objects that no manifest shows."""

from __future__ import annotations

import copy

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import ApiError
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.keys import GroupKind, Object, split
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for

LOG = logs.logger(__name__)


class StoredCrds:
    """Each that may be read is read once in an operation."""

    def __init__(self, operation: Operation, client: Client) -> None:
        self._operation, self._client = operation, client
        self._read: dict[GroupKind, Object] = {}
        self._forbidden: set[GroupKind] = set()

    def of(self, kind: GroupKind) -> Object | None:
        """None for a kind that has none, or whose CRD may not be read."""
        resource = self._client.resources.find(kind)
        if resource is None or is_builtin(kind):
            return None
        if kind not in self._read:
            try:
                self._read[kind] = self._operation.persist(lambda: self._client.crd(resource))
                self._forbidden.discard(kind)
            except ApiError as error:
                if error.status not in (403, 404):
                    raise
                self._forbidden |= {kind} if error.status == 403 else set()
                LOG.warning("The CRD of %s cannot be read: its objects cannot be scaled, and keep their nulls: %s", kind, error)
                return None
        return self._read[kind]

    def scalable(self, obj: CustomResource) -> CustomResource:
        """The object with its CRD, if only that defines the field of the count, and the cluster has it; see `hides_count`."""
        kind, version = obj.key.group_kind, split(obj.manifest["apiVersion"])[1]
        resource = self._client.resources.find_any(kind, version)
        asks = obj.crd is None and not obj.replicas() and not is_builtin(kind)
        if resource is None or not asks or "scale" not in resource.subresources:
            return obj
        crd = self.of(kind)
        found = resource_for(obj.manifest, crd) if crd else copy.copy(obj)
        found.hides_count = kind in self._forbidden
        return found
