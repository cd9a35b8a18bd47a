# SPDX-License-Identifier: Apache-2.0
"""Discovery: which kinds a cluster serves, with their paths, scopes and verbs.

Aggregated discovery (KEP-3352, Kubernetes 1.27) takes two requests, and one if nothing has changed since the last time. A CRD
of the package describes its kind without a request, also before it is on the cluster. There is no list of supported kinds.
When the backend of an aggregated API is down, its kinds are unknown, which does not mean that their objects are deleted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from k8s_cr_driver.errors import ApiError, ConnectionFailed, TransportError
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.responses import understood
from k8s_cr_driver.objects import fields
from k8s_cr_driver.objects.crds import defined_by, served_versions
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ACCEPT = f"{_AGGREGATED},{_AGGREGATED.replace('v=v2', 'v=v2beta1')},application/json"
KINDS_LIMIT = 20_000
"""Kinds of a cluster, in each version."""
NAMES_LIMIT = 2_000
"""Characters of all names of a kind in one version: its group, plural, verbs, subresources, ..."""
VERSIONS_LIMIT = 2_000
"""Group versions whose kinds are unknown."""
KNOWN_LIMIT = 128
"""Endpoints whose discovery is kept in memory."""

_ALL_VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
_SCOPES = {"Namespaced": True, "Cluster": False}
"""Whether a kind is namespaced, by its scope in aggregated discovery."""


@dataclass(frozen=True)
class Resource:
    """One kind in one version, as the server serves it."""

    group_kind: GroupKind
    version: str
    plural: str
    namespaced: bool
    verbs: frozenset[str]
    subresources: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        return f"{self.group_kind.group}/{self.version}" if self.group_kind.group else self.version

    @property
    def crd_name(self) -> str:
        """The name that its CustomResourceDefinition has, if it has one."""
        return f"{self.plural}.{self.group_kind.group}"

    @property
    def is_unlisted(self) -> bool:
        """Whether the server stores its objects and cannot list them, so that nobody can follow them."""
        return "list" not in self.verbs and not self.verbs.isdisjoint({"get", "delete"})

    def path(self, namespace: str = "", name: str = "") -> str:
        """The collection's path, or with a name the object's; without a namespace the collection of all of them."""
        root = f"/apis/{self.api_version}" if self.group_kind.group else f"/api/{self.api_version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


class Resources:
    """The kinds of one cluster; later `add`s win, so that a package's CRD is believed over its older self."""

    def __init__(self, resources: Iterable[Resource] = (), down: Iterable[tuple[str, str]] = ()) -> None:
        self._of: dict[GroupKind, dict[str, Resource]] = {}
        self._served: set[GroupKind] = set()
        self.down = frozenset(down)
        """(group, version) of the aggregated APIs that cannot be asked for their kinds now."""
        self._take(resources)

    def __iter__(self) -> Iterator[Resource]:
        """Each kind once, in the version that the server prefers."""
        return (next(iter(versions.values())) for versions in self._of.values())

    def defined_by(self, names: Collection[str]) -> list[Resource]:
        """The kinds whose CRDs have one of these names."""
        return [one for one in self if one.crd_name in names] if names else []

    def is_served(self, of: GroupKind) -> bool:
        """Whether the cluster served the kind when it was asked, whatever a package is going to bring."""
        return of in self._served

    def find(self, of: GroupKind, version: str = "") -> Resource | None:
        """The kind in that version; without one in the version that the server prefers."""
        versions = self._of.get(of, {})
        return versions.get(version) if version else next(iter(versions.values()), None)

    def find_any(self, of: GroupKind, version: str) -> Resource | None:
        """The kind in that version; in the one that the server prefers if it does not serve that one."""
        return self.find(of, version) or self.find(of)

    def unknown_in(self, of: GroupKind, version: str = "") -> tuple[str, str] | None:
        """The (group, version) that is down and may have the kind, if the kind is not known from elsewhere."""
        asked = (api for api in sorted(self.down) if api[0] == of.group and version in ("", api[1]))
        return next(asked, None) if self.find(of, version) is None else None

    def refresh(self, newer: Resources) -> None:
        """Takes in what a later look has found more."""
        self._take(resource for versions in newer._of.values() for resource in versions.values())
        self.down = newer.down

    def _take(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            self._of.setdefault(resource.group_kind, {}).setdefault(resource.version, resource)
            self._served.add(resource.group_kind)

    def scope_of(self, of: GroupKind, version: str) -> bool | None:
        """Whether the kind lives in namespaces; None if the cluster does not serve it in that version."""
        resource = self.find(of, version)
        return resource.namespaced if resource else None

    def add_crd(self, crd: Object) -> None:
        """The kinds that a CRD manifest will serve."""
        for resource in _of_crd(crd):
            self._of.setdefault(resource.group_kind, {})[resource.version] = resource


def discover(connection: Connection, *, afresh: bool = False) -> Resources:
    """All kinds of a cluster, in the server's order of preference.

    One request if /apis is unchanged: the core group changes only with the version of the server, and then /apis does, too.
    `afresh`: ask for all kinds also then.
    """
    known = None if afresh else _KNOWN.get(connection.endpoint)
    named = _root(connection, "/apis", known.etag if known else "")
    if named is None and known is not None:
        return Resources(known.found, known.down)
    core = _root(connection, "/api", "")
    assert named is not None and core is not None, "they were asked for without an ETag"
    found, down = [*core.found, *named.found], core.down | named.down
    if named.etag and any(resource.group_kind == NAMESPACE for resource in core.found):  # else the response to /api is cut
        _KNOWN.put(connection.endpoint, _Discovered(found, down, named.etag))
    return Resources(found, down)


@dataclass(frozen=True)
class _Discovered:
    """The kinds below a root path; `down` are the (group, version) that cannot be asked, `etag` is "" for none."""

    found: list[Resource]
    down: frozenset[tuple[str, str]]
    etag: str


class _Known:
    """The last discovery of each endpoint and account, as long as it has an ETag, which aggregated discovery has."""

    def __init__(self) -> None:
        self._of: OrderedDict[Endpoint, _Discovered] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, endpoint: Endpoint) -> _Discovered | None:
        with self._lock:
            return self._of.get(endpoint)

    def put(self, endpoint: Endpoint, discovered: _Discovered) -> None:
        with self._lock:
            self._of[endpoint] = discovered
            self._of.move_to_end(endpoint)
            if len(self._of) > KNOWN_LIMIT:
                self._of.popitem(last=False)


_KNOWN = _Known()


def _root(connection: Connection, root: str, etag: str) -> _Discovered | None:
    """What a root path lists; None if it is unchanged since `etag`."""
    response = connection.get_if_changed(root, _ACCEPT, etag)
    if response is None:
        return None
    body, etag = response
    found: list[Resource] = []
    down: set[tuple[str, str]] = set()
    with understood(f"GET {root}"):
        if body["kind"] in ("APIVersions", "APIGroupList"):
            url = connection.endpoint.url
            raise ConnectionFailed(f"{url} has no aggregated discovery (GET {root}): Kubernetes 1.27 or later is needed.")
        if body["kind"] != "APIGroupDiscoveryList":
            raise ValueError(body["kind"])
        found += islice(_aggregated(body, down), KINDS_LIMIT + 1)
        if len(found) > KINDS_LIMIT or len(down) > VERSIONS_LIMIT:
            raise ValueError("more kinds than any cluster has")
        for names in map("".join, [*map(_names, found), *down]):  # all of them are text
            if len(names) > NAMES_LIMIT or not names.isprintable():
                raise ValueError("they are in log lines and errors, and remembered")
        if not found:
            raise ValueError("an API server has kinds")  # remembered, this would hide them until /apis changes
    return _Discovered(found, frozenset(down), etag)


def _names(resource: Resource) -> list[str]:
    return [*resource.group_kind, resource.version, resource.plural, *resource.verbs, *resource.subresources]


def serves(connection: Connection, resource: Resource) -> bool:
    """Whether the server lists the resource now, by one request for its group and version, and after a 404 one for the root."""
    group = resource.group_kind.group
    path = f"/apis/{group}/{resource.version}" if group else f"/api/{resource.version}"
    try:
        found = connection.request("GET", path)
    except ApiError as error:
        if error.status != 404:
            raise
        return _lists_version(connection, group, resource.version)
    with understood(f"GET {path}"):
        return any(entry["name"] == resource.plural for entry in found.get("resources") or [])


def _lists_version(connection: Connection, group: str, version: str) -> bool:
    """Whether the root lists a group version; TransportError if there is no root: a load balancer without an API server."""
    root = "/apis" if group else "/api"
    try:
        found = connection.request("GET", root)
    except ApiError as error:
        if error.status != 404:
            raise
        raise TransportError(f"GET {root}: 404, which no API server responds") from None
    with understood(f"GET {root}"):
        named = [one["groupVersion"] for listed in found.get("groups") or [] for one in listed["versions"]]
        return f"{group}/{version}" in named or (not group and version in found["versions"])


def _aggregated(response: Object, down: set[tuple[str, str]]) -> Iterator[Resource]:
    for group in response.get("items") or []:
        name = (group.get("metadata") or {}).get("name") or ""
        for version in group.get("versions") or []:
            if version.get("freshness") == "Stale":  # with the kinds of before, or after a restart with none
                down.add((name, version["version"]))
            for entry in version.get("resources") or []:
                kind = (entry.get("responseKind") or {}).get("kind")
                if kind and entry["scope"] not in _SCOPES:  # its objects would be looked for in no namespace
                    down.add((name, version["version"]))
                elif kind:
                    yield Resource(
                        GroupKind(name, kind),
                        version["version"],
                        entry["resource"],
                        _SCOPES[entry["scope"]],
                        frozenset(entry.get("verbs") or ()),
                        frozenset(sub["subresource"] for sub in entry.get("subresources") or ()),
                    )


def _of_crd(crd: Object) -> Iterator[Resource]:
    for name, version in served_versions(crd).items():
        yield Resource(
            defined_by(crd),
            name,
            str(fields.field(crd, "spec", "names", "plural") or ""),
            fields.field(crd, "spec", "scope") == "Namespaced",
            _ALL_VERBS,
            frozenset(fields.mapping(version, "subresources")),
        )
