# SPDX-License-Identifier: Apache-2.0
"""
The requests of objects: list, read, create, apply, release, delete.

Each is one request (a list one for each page) and raises ApiError or TransportError. Objects are plain manifests; whose an
object is, and whether it may be written, is the matter of `writes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from k8s_cr_driver.errors import ApiError, Contended, InvalidRequest, Said
from k8s_cr_driver.kube.connection import APPLY, MERGE, Connection
from k8s_cr_driver.kube.discovery import Resource, Resources, serves
from k8s_cr_driver.kube.lists import pages
from k8s_cr_driver.kube.responses import checked, entries
from k8s_cr_driver.objects.keys import CRD, Object, ObjectKey, bare, key_of

ONLY_NEW = "1"
"""A resourceVersion that no stored object has: an apply with it creates, or gets a 409 and writes nothing."""

CRDS = Resource(CRD, "v1", "customresourcedefinitions", False, frozenset({"get", "list"}))


def _none(key: ObjectKey) -> bool:
    del key
    return False


def _whole(live: Object) -> Object | None:
    return live


@dataclass(frozen=True)
class Client:
    """One cluster: the connection, and the kinds that it serves. For many threads."""

    connection: Connection
    resources: Resources = field(default_factory=Resources)
    is_adopted: Callable[[ObjectKey], bool] = _none
    """Whether the writer has adopted the object; the audit log says so of each write."""

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        selector: str = "",
        accept: str = "application/json",
        keep: Callable[[Object], Object | None] = _whole,
    ) -> list[Object]:
        """The objects of a kind that a label selector finds, in one namespace or in all.

        `keep` returns what is kept of each object of a page before the next page is read, None for nothing.
        """
        path, query = resource.path(namespace), [("labelSelector", selector)] if selector else []
        found: list[Object] = []
        for page in pages(self.connection, path, query, accept):
            listed = entries(page, resource.api_version, resource.group_kind, f"LIST {path}")
            found += [kept for live in listed if (kept := keep(live)) is not None]
        return found

    def list_if_served(
        self,
        resource: Resource,
        namespace: str = "",
        selector: str = "",
        accept: str = "application/json",
        keep: Callable[[Object], Object | None] = _whole,
    ) -> Sequence[Object]:
        """As `list`; no objects if the kind is not served any more, Contended if discovery still lists it after a 404."""
        try:
            return self.list(resource, namespace, selector, accept, keep)
        except ApiError as error:
            if error.status != 404:
                raise
        if serves(self.connection, resource):
            raise Contended(f"{resource.plural} were not found, though the cluster serves them")
        return []

    def read(self, resource: Resource, key: ObjectKey) -> Object:
        """The object as it is; ApiError 404 if there is none."""
        response = self.on_object("GET", resource, key)
        return checked(response, resource.group_kind, f"GET {resource.path(key.namespace, key.name)}")

    def find(self, resource: Resource | None, key: ObjectKey) -> Object | None:
        """The object as it is; None if there is none, if the kind is not served, or if it may not be read."""
        if resource is None or "get" not in resource.verbs:
            return None
        try:
            return self.read(resource, key)
        except ApiError as error:
            if error.status in (403, 404):
                return None
            raise

    def on_object(self, method: str, resource: Resource, key: ObjectKey, body: Any = None, **options: Any) -> Object:
        """
        The response to a GET, PATCH or DELETE of one object; ApiError 404 only if the object or its kind does not exist.

        A load balancer without an API server, or an API server that starts, responds 404 to every path. The 404 of an object
        names it in the `details` of its Status; any other one, as of a webhook that denies the request, is Contended while
        discovery lists the kind. Without a name the path is that of the collection, all of which a DELETE deletes; a name with
        a slash leads to a subresource.
        """
        if not key.name or "/" in key.name:
            raise InvalidRequest(f"{key}: {method} without a name that an object can have")
        try:
            path, adopted = resource.path(key.namespace, key.name), self.is_adopted(key)
            return self.connection.request(method, path, body=body, adopted=adopted, **options)
        except ApiError as error:
            is_named = error.subject == (resource.plural, key.name) and Said.DENIED not in error.said
            if error.status == 404 and not is_named and serves(self.connection, resource):
                raise Contended(f"{key}: a 404 that is not of this object: {error.message}") from None
            raise

    def read_again(self, resource: Resource, live: Object) -> Object:
        """The object `live` as it is now; ApiError 404 if it no longer exists, also if another one has its name."""
        key = key_of(live)
        found = self.read(resource, key)
        if found["metadata"]["uid"] != live["metadata"]["uid"]:
            attempt, subject = f"GET {resource.path(key.namespace, key.name)}", (resource.plural, key.name)
            raise ApiError(attempt, 404, "NotFound", "another object has its name", subject=subject)
        return found

    def crd(self, resource: Resource) -> Object:
        """The CRD of a kind; ApiError 404 for a kind that has none."""
        return self.read(CRDS, ObjectKey(*CRD, "", resource.crd_name))

    def create(self, resource: Resource, manifest: Object, manager: str) -> Object:
        """Creates the object if there is none of its name; ApiError 409 if there is, and nothing is written.

        Kinds without the verb `patch` (TokenReview, ...) are posted.
        """
        if "patch" not in resource.verbs:
            return self._post(resource, manifest, manager)
        body = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": ONLY_NEW}}
        return self.apply(resource, body, manager, force=False)

    def try_creation(self, resource: Resource, manifest: Object, manager: str, live: Object) -> None:
        """Has the API server judge a creation in place of `live`, as a dry run; ApiError if it would refuse it.

        A POST fails because the name is taken only after validation and admission (apiserver, registry.Store.Create).
        """
        try:
            self._post(resource, manifest, manager, dryRun="All", live=live)
        except ApiError as error:
            if error.reason != "AlreadyExists" or Said.DENIED in error.said:
                raise

    def apply(
        self,
        resource: Resource,
        manifest: Object,
        manager: str,
        *,
        force: bool,
        dry_run: bool = False,
        live: Object | None = None,
    ) -> Object:
        """Server-side apply (KEP-555) of the whole manifest; ApiError 409 with causes is a field conflict.

        No error has values of `live`, the object as it was read: a webhook gets both.
        """
        key = key_of(manifest)
        query = [("fieldManager", manager), ("force", json.dumps(force)), ("fieldValidation", "Strict")]
        query += [("dryRun", "All")] if dry_run else []
        path = resource.path(key.namespace, key.name)
        options: dict[str, Any] = {"content_type": APPLY, "adopted": self.is_adopted(key), "live": live}
        response = self.connection.request("PATCH", path, query=query, body=manifest, **options)
        return checked(response, resource.group_kind, f"PATCH {path}", stored=False)

    def set_count(self, resource: Resource, live: Object, path: Sequence[str], count: int, manager: str) -> Object:
        """Writes the count at `path` alone, by a merge patch; ApiError 409 if the object is no longer as `live`."""
        fields: Any = count
        for step in reversed(path):
            fields = {step: fields}
        body = {**fields, "metadata": _preconditions(live)}
        response = self._on_live("PATCH", resource, live, body, query=[("fieldManager", manager)], content_type=MERGE)
        return checked(response, resource.group_kind, f"PATCH {resource.plural} {key_of(live).name}")

    def release(self, resource: Resource, live: Object, manager: str) -> Object:
        """Gives up all fields that only `manager` owns; the object stays. ApiError 409 if it is no longer as `live`.

        Without the uid an apply would create an object that no longer exists, empty.
        """
        found = live["metadata"]
        body = bare(key_of(live), resource.api_version, uid=found["uid"], resourceVersion=found["resourceVersion"])
        return self.apply(resource, body, manager, force=False, live=live)

    def delete(
        self,
        resource: Resource,
        live: Object,
        *,
        propagation: str,
        grace_period: int | None = None,
    ) -> Object:
        """Asks for the deletion of exactly `live`; ApiError 409 if it is another object by now, or has changed since its
        resourceVersion, if it has one. Returns the object, with a deletionTimestamp if it still exists, or a Status.

        `propagation` is Foreground, Background or Orphan; `grace_period` are seconds, None for the object's own.
        """
        body: dict[str, Any] = {"propagationPolicy": propagation, "preconditions": _preconditions(live)}
        if grace_period is not None:
            body["gracePeriodSeconds"] = grace_period
        return self._on_live("DELETE", resource, live, body)

    def try_deletion(self, resource: Resource, live: Object) -> None:
        """Has the API server judge the deletion of `live`, as a dry run; ApiError if it would refuse that."""
        try:
            self._on_live("DELETE", resource, live, {"dryRun": ["All"], "preconditions": _preconditions(live)})
        except ApiError as error:
            is_judged = error.status not in (404, 409) or Said.DENIED in error.said
            if is_judged and Said.NO_DRY_RUN not in error.said:
                raise

    def patch_metadata(self, resource: Resource, live: Object, manager: str, **metadata: Any) -> Object:
        """A merge patch; ApiError 409 if the object does not have the uid, or the resourceVersion, among `metadata`."""
        query, key = [("fieldManager", manager)], key_of(live)
        response = self._on_live("PATCH", resource, live, {"metadata": metadata}, query=query, content_type=MERGE)
        return checked(response, resource.group_kind, f"PATCH {resource.path(key.namespace, key.name)}")

    def _on_live(self, method: str, resource: Resource, live: Object, body: Object, **options: Any) -> Object:
        """ApiError without values of the object: a webhook gets all of it, also if they are not sent."""
        return self.on_object(method, resource, key_of(live), body, live=live, **options)

    def _post(
        self, resource: Resource, manifest: Object, manager: str, live: Object | None = None, **options: str
    ) -> Object:
        query = [("fieldManager", manager), ("fieldValidation", "Strict"), *options.items()]
        namespace = key_of(manifest).namespace
        body = manifest
        if resource.group_kind.group == "authorization.k8s.io":  # its reviews refuse all metadata but a namespace
            body = {**body, "metadata": {"namespace": namespace} if namespace else {}}
        return self.connection.request("POST", resource.path(namespace), query=query, body=body, live=live)


def _preconditions(live: Object) -> Object:
    return {name: live["metadata"][name] for name in ("uid", "resourceVersion") if name in live["metadata"]}
