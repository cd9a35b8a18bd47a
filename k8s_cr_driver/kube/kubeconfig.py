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

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.auth import is_token
from k8s_cr_driver.kube.endpoint import Endpoint, is_plain
from k8s_cr_driver.objects import yaml_nodes
from k8s_cr_driver.objects.keys import Object

URL_LIMIT = 2_000
"""Characters of a server's URL."""
_OUTSIDE = ("certificate-authority", "client-certificate", "client-key", "tokenFile", "exec", "auth-provider")


def endpoint(path: Path, context: str | None = None) -> Endpoint:
    """The cluster of a context, the current one by default. Raises InvalidRequest, and OSError for an unreadable file."""
    return parse(path.read_bytes(), str(path), context)


def parse(content: str | bytes, path: str, context: str | None = None) -> Endpoint:
    """The same of a kubeconfig's content; `path` names it in errors, which show nothing of the content."""
    try:
        config = yaml_nodes.loaded(content)
        contexts = _named(config, "context")
        chosen = context or config.get("current-context")
        if chosen not in contexts:
            known = ", ".join(sorted(contexts)) or "none"
            raise InvalidRequest(f"{path}: there is no context {chosen!r}; it has {known}")
        cluster, user = (_entry(path, config, section, contexts[chosen][section]) for section in ("cluster", "user"))
        return Endpoint(
            url=_url(path, cluster["server"]),
            ca=_data(cluster, "certificate-authority-data"),
            verify=not cluster.get("insecure-skip-tls-verify", False),
            authorization=_authorization(path, user.get("token")),
            client_cert=_data(user, "client-certificate-data"),
            client_key=_data(user, "client-key-data"),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
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


def _url(path: str, server: str) -> str:
    if len(server) > URL_LIMIT or not is_plain(server):
        raise InvalidRequest(f"{path}: server is no plain URL, such as https://10.0.0.1:6443, without credentials")
    return server


def _authorization(path: str, token: object) -> str:
    text = str(token or "").strip()
    if not is_token(text):
        raise InvalidRequest(f"{path}: token has a character that no token has")
    return f"Bearer {text}" if text else ""


def _data(owner: Mapping[str, str], key: str) -> str:
    return base64.b64decode(owner.get(key, "")).decode()
