# SPDX-License-Identifier: Apache-2.0
"""By which hosts and annotations an object leads to what is in another namespace, or within the cluster at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

_INNER = frozenset({"svc", "pod"})
"""Labels below which a cluster's DNS has its Services and Pods, whatever its domain (Kubernetes DNS specification)."""
_PRIVATE = frozenset({"local", "localhost", "localdomain", "internal"})
"""Top domains that are no public ones: of clusters and clouds, with their metadata (RFC 6762, RFC 6761, ICANN)."""
_CONTROLLERS = (
    *("ingress", "haproxy", "nginx", "traefik", "contour", "konghq", "gateway", "getambassador", "solo.io", "zalando"),
    *("apisix", "higress"),
)
"""Parts of the prefixes of annotations that ingress controllers obey."""
_COPIES = ("/replicate-from", "/reflects", "/clonerequest")
"""Ends of annotations by which controllers copy a Secret, a ConfigMap or a volume of another namespace."""
_PUSHES = ("/replicate-to", "/reflection-auto-", "/sync-contexts")
"""Parts of those by which they write copies into other namespaces or clusters; so do those that end in `/sync`."""
_REFERENCE = re.compile(r"(?<![\w./:-])([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/[a-z0-9][-a-z0-9.]{0,252}(?![\w/:-])")
_RESOURCE = re.compile(r"(?<!\w)secret:(//)?", re.IGNORECASE)
"""Begins the URI of a Secret, which is no host (HAProxy Ingress)."""
_AUTHORITY = re.compile(r"://([^\s/?#$\"'`<>,;]*)")
"""Of a URL, up to a variable of nginx: what stands before one is judged as a whole host."""
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


def annotation(name: str, value: str, home: str, allowed: Iterable[str]) -> str:
    """
    What an annotation does that reaches beyond the namespace `home`; "" if it does not.

    Controllers obey those with a prefix only, and send requests to their URLs: `allowed` are patterns of further hosts.
    """
    name, value = name.lower(), _RESOURCE.sub(" ", value)
    prefix, slash, rest = name.partition("/")
    if (rest == "sync" or any(part in name for part in _PUSHES)) and value.strip().lower() != "false":
        return "writes copies into other namespaces"
    if slash and (reason := next(filter(None, (external_name(host, home, allowed) for host in _hosts(value))), "")):
        return reason
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


def _hosts(value: str) -> Iterator[str]:
    """Of the URLs in a text, without ports. What stands before an @ or a backslash is one, too: parsers differ there."""
    for authority in _AUTHORITY.findall(value):
        for part in re.split(r"[@\\]", authority):
            address = re.match(r"\[([^\]]*)", part)
            yield address[1] if address else part.partition(":")[0]


def _is_namespace(label: str) -> bool:
    """Whether it is no top domain: these have letters only, but for those in Punycode. A resolver may add the cluster's."""
    return label in ("default", "") or (not label.isalpha() and not label.startswith("xn--") and not _NUMBER.fullmatch(label))
