# SPDX-License-Identifier: Apache-2.0
"""Discovery: the aggregated form with its ETag, and the older list per group and version."""

import hashlib
import json

from tests.fake_api.cluster import Cluster, Knobs
from tests.fake_api.errors import PageNotFound
from tests.fake_api.kinds import Kind
from tests.fake_api.objects import Object

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_VERBS = ["get", "patch", "update"]


def respond(cluster: Cluster, path: str, accept: str) -> tuple[Object, dict[str, str]] | None:
    """(body, headers) for a discovery path; None if `path` is not one. PageNotFound for an unknown group."""
    kinds = cluster.kinds()
    parts = path.strip("/").split("/")
    if parts in (["api"], ["apis"]):
        if _wants_aggregated(accept):
            body = _aggregated([kind for kind in kinds if bool(kind.group) == (parts == ["apis"])], cluster.knobs)
            etag = hashlib.sha512(json.dumps([cluster.id, body]).encode()).hexdigest().upper()
            return body, {"ETag": f'"{etag}"', "Content-Type": AGGREGATED, "Vary": "Accept",
                          "Cache-Control": "public"}
        return (_core_versions() if parts == ["api"] else _groups(kinds)), {}
    if parts[0] == "api" and len(parts) == 2:
        return _resources([kind for kind in kinds if not kind.group and kind.version == parts[1]], parts[1]), {}
    if parts[0] == "apis" and len(parts) == 2:
        return _group(kinds, parts[1]), {}
    if parts[0] == "apis" and len(parts) == 3:
        group, version = parts[1:]
        found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
        return _resources(found, f"{group}/{version}"), {}
    return None


def version(cluster: Cluster) -> Object:
    git = cluster.knobs.version
    major, minor, _ = git.lstrip("v").split(".", 2)
    return {"major": major, "minor": minor, "gitVersion": git, "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z", "goVersion": "go1.26", "compiler": "gc", "platform": "linux/amd64"}


def _wants_aggregated(accept: str) -> bool:
    wanted = [part.replace(" ", "") for part in accept.split(",")]
    return any("as=APIGroupDiscoveryList" in part and "v=v2;" in part + ";" for part in wanted)


def _versions(kinds: list[Kind]) -> dict[str, dict[str, list[Kind]]]:
    groups: dict[str, dict[str, list[Kind]]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return groups


def _aggregated(kinds: list[Kind], knobs: Knobs) -> Object:
    def version_entry(group: str, version: str, found: list[Kind]) -> Object:
        down = (group, version) in knobs.down
        kept = [] if down and knobs.forgets_down else found
        return {"version": version, "freshness": "Stale" if down else "Current",
                "resources": [_described(kind) for kind in kept]}

    items = []
    for group, versions in _versions(kinds).items():
        items.append({
            "metadata": {"name": group} if group else {},
            "versions": [version_entry(group, name, found) for name, found in versions.items()]})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _described(kind: Kind) -> Object:
    # Built-in kinds are listed without group and version, which then are those of the list.
    own = ({"group": kind.group, "version": kind.version, "kind": kind.kind} if kind.custom
           else {"group": "", "version": "", "kind": kind.kind})
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    described: Object = {"resource": kind.plural, "responseKind": own,
                         "scope": "Namespaced" if kind.namespaced else "Cluster",
                         "singularResource": kind.singular, "verbs": list(kind.verbs)}
    if kind.short_names:
        described["shortNames"] = list(kind.short_names)
    if kind.categories:
        described["categories"] = list(kind.categories)
    if kind.subresources:
        described["subresources"] = [
            {"subresource": name, "responseKind": scale if name == "scale" else own, "verbs": _SUBRESOURCE_VERBS}
            for name in kind.subresources]
    return described


def _core_versions() -> Object:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _group_entry(name: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{one}", "version": one} for one in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _groups(kinds: list[Kind]) -> Object:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
        _group_entry(name, list(versions)) for name, versions in _versions(kinds).items() if name]}


def _group(kinds: list[Kind], name: str) -> Object:
    versions = _versions(kinds).get(name)
    if not versions:
        raise PageNotFound
    return {"kind": "APIGroup", "apiVersion": "v1", **_group_entry(name, list(versions))}


def _resources(kinds: list[Kind], group_version: str) -> Object:
    if not kinds:
        raise PageNotFound
    rows: list[Object] = []
    for kind in kinds:
        row: Object = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
                       "kind": kind.kind, "verbs": list(kind.verbs)}
        if kind.short_names:
            row["shortNames"] = list(kind.short_names)
        if kind.categories:
            row["categories"] = list(kind.categories)
        rows.append(row)
        for name in kind.subresources:
            scaled = {"group": "autoscaling", "version": "v1", "kind": "Scale"} if name == "scale" else {
                "kind": kind.kind}
            rows.append({"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced,
                         **scaled, "verbs": _SUBRESOURCE_VERBS})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows}
