# SPDX-License-Identifier: Apache-2.0
"""By which texts a Service, an Ingress and the like lead to what is in another namespace, or within the cluster at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_INNER = frozenset({"svc", "pod"})
"""Labels below which a cluster's DNS has its Services and Pods, whatever its domain (Kubernetes DNS specification)."""
_PRIVATE = frozenset({"local", "localhost", "localdomain", "internal"})
"""Top domains that are no public ones: of clusters and clouds, with their metadata (RFC 6762, RFC 6761, ICANN)."""
_CONTROLLERS = ("ingress", "haproxy", "nginx", "traefik", "contour", "konghq", "gateway", "getambassador", "solo.io", "zalando")
"""Parts of the prefixes of annotations that ingress controllers obey."""
_COPIES = ("/replicate-from", "/reflects")
"""Annotations by which controllers copy a Secret or ConfigMap of another namespace."""
_REFERENCE = re.compile(r"(?<![\w./:-])([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/[a-z0-9][-a-z0-9.]{0,252}(?![\w/:-])")
_OF_TRAEFIK = "@kubernetescrd"
_NUMBER = re.compile(r"\d+|0x[0-9a-f]+")


def external_name(name: str, home: str, allowed: Iterable[str]) -> str:
    """Why a Service in the namespace `home` may not stand for the host `name`; "" if it may. `allowed`: patterns."""
    host = name.rstrip(".").lower()
    labels = host.split(".")
    if not host or any(fnmatchcase(host, one.lower()) for one in allowed):
        return ""
    places = [index for index, label in enumerate(labels) if index >= 2 and label in _INNER]
    if places:
        own = all(labels[index - 1] == home and labels[index] == "svc" for index in places)
        return "" if own else "leads to a Service of another namespace"
    if len(labels) == 1 or labels[-1] in _PRIVATE or _is_namespace(labels[-1]):
        return "leads to a host that is known in the cluster only"
    return "leads to an address, not to the name of a host" if _NUMBER.fullmatch(labels[-1]) or ":" in host else ""


def annotation(name: str, value: str, home: str) -> str:
    """What an annotation does that names objects of another namespace than `home`; "" if it does not."""
    prefix, _, rest = name.lower().partition("/")
    if not any(word in prefix for word in _CONTROLLERS) and not name.endswith(_COPIES):
        return ""
    if rest == "group.name":
        return "joins the load balancer of others"
    if rest.startswith("config-") and "haproxy" in prefix:
        return "configures a controller that others use"
    if value.strip().startswith("file:"):
        return "names a file of the controller"
    others = set(_REFERENCE.findall(value))
    if rest.endswith("namespace"):
        others.add(value.strip())
    if others - {home, ""}:
        return f"names an object of the namespace {min(others - {home, ''})}"
    of_traefik = [one.strip() for one in value.split(",") if one.strip().endswith(_OF_TRAEFIK)]
    return "" if all(one.startswith(f"{home}-") for one in of_traefik) else "names an object of another namespace"


def _is_namespace(label: str) -> bool:
    """Whether it is no top domain: these have letters only, but for those in Punycode. A resolver may add the cluster's."""
    return label in ("default", "") or (not label.isalpha() and not label.startswith("xn--") and not _NUMBER.fullmatch(label))
