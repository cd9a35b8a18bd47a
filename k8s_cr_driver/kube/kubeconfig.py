# SPDX-License-Identifier: Apache-2.0
"""
kubeconfig -> Endpoint.

Only what stands in the file itself is read, as kubeadm and Cluster API write it: a kubeconfig that names other files, or a
program to run, is refused with the field that names them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object

_OUTSIDE = ("certificate-authority", "client-certificate", "client-key", "tokenFile", "exec", "auth-provider")


def endpoint(path: Path, context: str | None = None) -> Endpoint:
    """The cluster of a context, the current one by default. Raises InvalidRequest, and OSError for an unreadable file."""
    return parse(path.read_bytes(), str(path), context)


def parse(content: str | bytes, path: str, context: str | None = None) -> Endpoint:
    """The same of a kubeconfig's content; `path` names it in errors, which show nothing of the content."""
    try:
        config = yaml.safe_load(content)
        contexts = _named(config, "context")
        chosen = context or config.get("current-context")
        if chosen not in contexts:
            known = ", ".join(sorted(contexts)) or "none"
            raise InvalidRequest(f"{path}: there is no context {chosen!r}; it has {known}")
        cluster, user = (_entry(path, config, section, contexts[chosen][section]) for section in ("cluster", "user"))
        return Endpoint(
            url=cluster["server"],
            ca=_data(cluster, "certificate-authority-data"),
            verify=not cluster.get("insecure-skip-tls-verify", False),
            authorization=f"Bearer {user['token']}" if user.get("token") else "",
            client_cert=_data(user, "client-certificate-data"),
            client_key=_data(user, "client-key-data"),
        )
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidRequest(f"{path}: is not a whole kubeconfig; compare it with: kubectl config view") from None


def _named(config: Object, section: str) -> dict[str, Object]:
    entries: Iterable[Object] = config[f"{section}s"]
    return {entry["name"]: entry[section] for entry in entries}


def _entry(path: str, config: Object, section: str, name: str) -> Object:
    entry = _named(config, section)[name] or {}
    if outside := [key for key in _OUTSIDE if entry.get(key)]:
        raise InvalidRequest(
            f"{path}: {section} {name} has {outside[0]}, which is not in the file itself. Use one with data and "
            "tokens, such as: kubectl config view --raw --flatten --minify"
        )
    return entry


def _data(owner: Mapping[str, str], key: str) -> str:
    return base64.b64decode(owner.get(key, "")).decode()
