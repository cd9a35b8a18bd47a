# SPDX-License-Identifier: Apache-2.0
"""From a request to the verb that serves it, whatever carries the request: a socket, or a call in this process."""

from typing import Any

from tests.fake_api import access, errors, routes, verbs
from tests.fake_api.cluster import Cluster
from tests.fake_api.objects import Object


def call(cluster: Cluster, method: str, path: str, query: dict[str, str], body: Any, content_type: str,
         user_agent: str) -> verbs.Call:
    """The routed request; ApiError or PageNotFound for what is not served, not allowed, or no verb of the kind."""
    target = routes.route(cluster, path)
    watch = query.get("watch", "").lower() in ("true", "1")
    verb = routes.verb(method, bool(target.name), watch)
    access.authorize(cluster.knobs, verb, target.kind.group, target.kind.plural, target.subresource,
                     target.namespace or (target.name if target.kind.plural == "namespaces" else ""), target.name)
    if verb not in target.kind.verbs:
        raise errors.method_not_allowed()
    return verbs.Call(cluster, target.kind, target.namespace, target.name, target.subresource, query, body,
                      content_type, user_agent)


def execute(call: verbs.Call, method: str) -> tuple[int, Object]:
    """(code, body) of a call that is not a watch."""
    if method == "GET":
        return verbs.read(call) if call.name else verbs.list_(call)
    with call.cluster.writing():
        if method == "POST":
            return verbs.create(call)
        if method == "PUT":
            return verbs.update(call)
        if method == "PATCH":
            return verbs.patch(call)
        return verbs.delete(call) if call.name else verbs.delete_collection(call)
