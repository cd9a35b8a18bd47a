# SPDX-License-Identifier: Apache-2.0
"""The cluster as the tests read it, past Tacker and the driver; and the controllers and users that they play."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from .objects import Object, Place
from .testbed.processes import until

INSTANCE = "tacker_vnf_instance_id"
INVENTORY = "k8s-cr-driver/inventory"
USED_BY = "used-by.k8s-cr-driver/"
CRDS = "apiextensions.k8s.io/v1"

# Seconds; a Namespace waits longest: its controller comes back ever later while a group of the API does not answer.
GONE_WITHIN = 120.0
# Seconds, for a conversion webhook.
SERVED_WITHIN = 60.0

_TRANSIENT = {"Event", "Lease"}
_MERGE = "application/merge-patch+json"
# KEP-3352: all kinds in one answer.
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class GroupKind(NamedTuple):
    """One version of a kind; `folder` is the path of all its objects."""

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool
    verbs: list[str]

    def path(self, namespace: str | None = None, name: str = "") -> str:
        group = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        place = f"/namespaces/{namespace}" if namespace and self.is_namespaced else ""
        return f"{group}{place}/{self.plural}" + (f"/{name}" if name else "")


class Cluster:
    """With all permissions, or with those of `user`. Objects are named as "Kind namespace/name" or "Kind name"."""

    def __init__(self, kubeconfig: Path, user: str = "") -> None:
        self.api: client.ApiClient = config.new_client_from_config(str(kubeconfig))
        self._headers = {"Impersonate-User": user} if user else {}
        self._kinds: dict[tuple[str, str], GroupKind] = {}

    def close(self) -> None:
        self.api.close()

    # --- reading ----------------------------------------------------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str | None = None, api_version: str = "v1") -> Object | None:
        """The object; None if there is none, or no such kind."""
        try:
            return self._call("GET", self._kind(api_version, kind).path(namespace, name))
        except (ApiException, KeyError) as error:
            if isinstance(error, ApiException) and error.status != 404:
                raise
            return None

    def all(self, kind: str, namespace: str | None = None, selector: str = "", api_version: str = "v1") -> list[Object]:
        return self._listed(self._kind(api_version, kind), selector, namespace)

    def of(self, instance: str) -> list[str]:
        """What belongs to the VNF instance, but for its inventory."""
        return sorted({name_of(live) for live in (*self._labelled(f"{INSTANCE}={instance}"), *self._shared([instance]))})

    def leftovers(self, instances: list[str]) -> list[str]:
        """What VNF instances have on the cluster, their inventories included."""
        return sorted(map(name_of, self._belongings(instances)))

    def contents(self, place: Place) -> dict[str, str]:
        """What users put into a place, the CRDs of its group included, with the uid of each."""
        kinds = ("ConfigMap", "Secret", "Service", "ServiceAccount", "Pod")
        found = [live for kind in kinds for live in self.all(kind, place.name)]
        found += self.all("Deployment", place.name, api_version="apps/v1")
        crds = self.all("CustomResourceDefinition", api_version=CRDS)
        found += [live for live in crds if live["spec"]["group"] == place.group]
        return {name_of(live): live["metadata"]["uid"] for live in found}

    def names(self) -> set[str]:
        """Of all objects that no other owns, but for those that the cluster itself makes all the time."""
        self._discover()
        kinds = [kind for kind in self._kinds.values() if "list" in kind.verbs and kind.kind not in _TRANSIENT]
        found = [live for kind in kinds for live in self._listed(kind, "") if not live["metadata"].get("ownerReferences")]
        return {name_of(live) for live in found}

    # --- what users and controllers do --------------------------------------------------------------------------------

    def create(self, manifest: Object) -> Object:
        kind = self._kind(manifest["apiVersion"], manifest["kind"])
        return self._call("POST", kind.path(manifest["metadata"].get("namespace")), manifest)

    def apply(self, manifest: Object, manager: str) -> Object:
        """Server-side apply by force, as that field manager."""
        metadata = manifest["metadata"]
        path = self._kind(manifest["apiVersion"], manifest["kind"]).path(metadata.get("namespace"), metadata["name"])
        return self._call("PATCH", f"{path}?fieldManager={manager}&force=true", manifest, "application/apply-patch+yaml")

    def delete(self, kind: str, name: str, namespace: str | None = None, api_version: str = "v1") -> None:
        """Returns when it is deleted; also one that did not exist."""
        if self.get(kind, name, namespace, api_version) is None:
            return
        self._call("DELETE", self._kind(api_version, kind).path(namespace, name))
        if not until(lambda: self.get(kind, name, namespace, api_version) is None, GONE_WITHIN):
            raise TimeoutError(f"{kind} {name} is not gone {GONE_WITHIN:g} s after it was deleted")

    def orphan(self, kind: str, name: str, namespace: str, api_version: str) -> None:
        """`kubectl delete --cascade=orphan`: what it controls stays. Returns when it is deleted."""
        path = self._kind(api_version, kind).path(namespace, name)
        self._call("DELETE", path, {"propagationPolicy": "Orphan"})
        if not until(lambda: self.get(kind, name, namespace, api_version) is None, GONE_WITHIN):
            raise TimeoutError(f"{kind} {name} is not gone {GONE_WITHIN:g} s after it was deleted")

    @contextmanager
    def holding(self, *manifests: Object) -> Iterator[list[Object]]:
        """Objects of a user, who deletes them at the end, whatever has become of them."""
        try:
            yield [self.create(manifest) for manifest in manifests]
        finally:
            for manifest in reversed(manifests):
                metadata = manifest["metadata"]
                self.delete(manifest["kind"], metadata["name"], metadata.get("namespace"), manifest["apiVersion"])

    def release(self, kind: str, name: str, namespace: str | None = None, api_version: str = "v1") -> None:
        """Removes its finalizers, as their controllers would; it may be gone at once."""
        path = self._kind(api_version, kind).path(namespace, name)
        self._call("PATCH", path, {"metadata": {"finalizers": None}}, _MERGE)

    def set_status(self, kind: str, name: str, namespace: str, api_version: str, **status: Any) -> None:
        """As its controller would."""
        path = self._kind(api_version, kind).path(namespace, name)
        self._call("PATCH", f"{path}/status", {"status": status}, _MERGE)

    def change(self, kind: str, name: str, namespace: str | None = None, api_version: str = "v1", /, **fields: Any) -> None:
        """As a user would who edits these fields of it."""
        path = self._kind(api_version, kind).path(namespace, name)
        self._call("PATCH", f"{path}?fieldManager=a-user", fields, _MERGE)

    def scale(self, kind: str, name: str, namespace: str, api_version: str, count: int) -> None:
        """Through the subresource, as `kubectl scale` does."""
        path = self._kind(api_version, kind).path(namespace, name)
        self._call("PATCH", f"{path}/scale", {"spec": {"replicas": count}}, _MERGE)

    def wipe(self, instances: list[str]) -> None:
        """Removes what VNF instances have left, whatever holds it."""
        for live in self._belongings(instances):
            metadata = live["metadata"]
            path = self._kind(live["apiVersion"], live["kind"]).path(metadata.get("namespace"), metadata["name"])
            try:
                if live["kind"] != "Namespace" and metadata.get("finalizers"):
                    self._call("PATCH", path, {"metadata": {"finalizers": None}}, _MERGE)
                self._call("DELETE", path)
            except ApiException as error:
                if error.status != 404:
                    raise

    # ------------------------------------------------------------------------------------------------------------------

    def _belongings(self, instances: list[str]) -> list[Object]:
        if not instances:
            return []
        among = f"in ({','.join(instances)})"
        inventories = self.all("ConfigMap", selector=f"{INVENTORY} {among}")
        return [*self._labelled(f"{INSTANCE} {among}"), *self._shared(instances), *inventories]

    def _shared(self, instances: list[str]) -> list[Object]:
        """Namespaces and CRDs that some of these use."""
        found = self.all("Namespace") + self.all("CustomResourceDefinition", api_version=CRDS)
        return [live for live in found if any(f"{USED_BY}{instance}" in _labels(live) for instance in instances)]

    def _labelled(self, selector: str) -> Iterator[Object]:
        self._discover()
        for kind in self._kinds.values():
            if "list" in kind.verbs and kind.kind != "Event":
                yield from self._listed(kind, selector)

    def _listed(self, kind: GroupKind, selector: str, namespace: str | None = None) -> list[Object]:
        query = f"?labelSelector={quote(selector)}" if selector else ""
        items = self._items(kind.path(namespace) + query)
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in items]

    def _items(self, path: str) -> list[Object]:
        """Of a list; of a kind whose conversion webhook starts or ends, as other tests make it do, a little later."""
        end = time.monotonic() + SERVED_WITHIN
        while True:
            try:
                items: list[Object] = self._call("GET", path)["items"]
                return items
            except ApiException as error:
                if error.status == 404:  # its CRD has gone meanwhile
                    return []
                if error.status < 500 or time.monotonic() > end:
                    raise
            time.sleep(1)

    def _kind(self, api_version: str, kind: str) -> GroupKind:
        """KeyError if the cluster has none."""
        if (api_version, kind) not in self._kinds:
            self._discover()
        return self._kinds[api_version, kind]

    def _discover(self) -> None:
        """One version of each kind that is listed, the one that the server prefers; the rest by their names only."""
        self._kinds.clear()
        for root in ("/api", "/apis"):
            for group in self._call("GET", root, accept=_DISCOVERY)["items"]:
                for version in group["versions"][:1]:
                    name = "/".join(filter(None, (group["metadata"].get("name"), version["version"])))
                    for one in version["resources"]:
                        kind = one["responseKind"]["kind"]
                        scope = one["scope"] == "Namespaced"
                        self._kinds[name, kind] = GroupKind(name, kind, one["resource"], scope, one["verbs"])

    def _call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", accept: str = "application/json"
    ) -> Object:
        headers = {"Content-Type": content_type, "Accept": accept, **self._headers}
        answer = self.api.call_api(method, self.api.configuration.host + path, headers, body)
        content = answer.read()
        if not 200 <= answer.status <= 299:
            raise ApiException(answer.status, content.decode())
        found: Object = json.loads(content)
        return found


def name_of(live: Object) -> str:
    metadata = live["metadata"]
    return f"{live['kind']} {'/'.join(filter(None, (metadata.get('namespace'), metadata['name'])))}"


def _labels(live: Object) -> dict[str, str]:
    return live["metadata"].get("labels") or {}
