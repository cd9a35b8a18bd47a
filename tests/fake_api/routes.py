# SPDX-License-Identifier: Apache-2.0
"""From a path to a kind and names, and from a method to the verb that RBAC knows."""

import re
from functools import lru_cache
from typing import NamedTuple

from tests.fake_api import errors
from tests.fake_api.cluster import Cluster
from tests.fake_api.kinds import Kind

_PATH = re.compile(
    r"^/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[^/]+))?)?$")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class Target(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    subresource: str


def route(cluster: Cluster, path: str) -> Target:
    """What `path` names; ApiError 404 or PageNotFound if nothing is served there."""
    parts = _parts(path)
    if parts is None:
        raise errors.PageNotFound
    group, version, namespace, plural, name, sub = parts
    if namespace and not group and cluster.find(group, version, plural) is None:
        # /api/v1/namespaces/<name>/status is the subresource of the Namespace itself.
        plural, name, namespace, sub = "namespaces", namespace, "", plural
    kind = cluster.find(group, version, plural)
    if kind is None and not cluster.is_built_in(group, version):
        raise errors.PageNotFound
    if kind is None or (name and kind.namespaced != bool(namespace)) or (namespace and not kind.namespaced):
        raise errors.no_such_path()
    if sub and sub not in kind.subresources:
        raise errors.no_such_path()
    return Target(kind, namespace, name, sub)


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, str, str, str, str, str] | None:
    """Group, version, namespace, plural, name and subresource, as the path has them."""
    found = _PATH.match(path)
    if not found:
        return None
    core, group, version, namespace, plural, name, sub = (text or "" for text in found.groups())
    return group, version or core, namespace, plural, name, sub


def verb(method: str, named: bool, watch: bool) -> str:
    """The RBAC verb of a request; ApiError 405 for another method."""
    if method == "GET":
        return "watch" if watch else "get" if named else "list"
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    if method not in _VERBS or named == (method == "POST"):
        raise errors.method_not_allowed()
    return _VERBS[method]
