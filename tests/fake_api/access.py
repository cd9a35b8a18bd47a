# SPDX-License-Identifier: Apache-2.0
"""Who may do what: bearer tokens (401) and denied verbs (403), worded as the server words them."""

from tests.fake_api import errors
from tests.fake_api.cluster import Knobs


def authenticate(knobs: Knobs, authorization: str | None) -> None:
    """ApiError 401 unless the bearer token is one of `knobs.tokens` (None accepts everybody)."""
    if knobs.tokens is not None:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or token not in knobs.tokens:
            raise errors.unauthorized()


def denied(knobs: Knobs, verb: str, group: str, plural: str, namespace: str) -> bool:
    """A rule for a namespace denies there only; `*` denies everywhere; `` denies requests over all namespaces."""
    return bool(knobs.denied) and any(v in ("*", verb) and g in ("*", group) and p in ("*", plural) and n in ("*", namespace)
               for v, g, p, n in knobs.denied)


def authorize(knobs: Knobs, verb: str, group: str, plural: str, subresource: str, namespace: str, name: str) -> None:
    """ApiError 403 where a denied rule matches; a subresource is named `pods/status` in rules."""
    resource = f"{plural}/{subresource}" if subresource else plural
    if denied(knobs, verb, group, resource, namespace):
        where = f"in the namespace {errors.quoted(namespace)}" if namespace else "at the cluster scope"
        raise errors.forbidden(
            group, plural, name, f"User {errors.quoted(knobs.user)} cannot {verb} resource {errors.quoted(resource)} "
                                 f"in API group {errors.quoted(group)} {where}")
