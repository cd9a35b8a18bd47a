# SPDX-License-Identifier: Apache-2.0
"""
kubeconfig -> Endpoint -> kubeconfig of our own making.

Only what stands in the file itself is read, as kubeadm and Cluster API write it: a kubeconfig that names other files, or a
program to run, is refused with the field that names them. So is every field that this driver does not honour: whoever passes
the file on, or connects by it, would do something else than kubectl.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from k8s_cr_driver.errors import InvalidRequest
from k8s_cr_driver.kube.auth import is_token
from k8s_cr_driver.kube.endpoint import Endpoint, is_plain
from k8s_cr_driver.objects import yaml_nodes
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.redaction import one_line

URL_LIMIT = 2_000
"""Characters of a server's URL."""
_OUTSIDE = ("certificate-authority", "client-certificate", "client-key", "tokenFile", "exec", "auth-provider")
_HARMLESS = {"extensions", "disable-compression", "namespace"}
_HONOURED = {
    "context": {"cluster", "user"} | _HARMLESS,
    "cluster": {"server", "certificate-authority-data", "insecure-skip-tls-verify"} | _HARMLESS,
    "user": {"token", "client-certificate-data", "client-key-data"} | _HARMLESS,
}
_SHOWN = 60
"""Characters of a name or a field that an error shows."""


def endpoint(path: Path, context: str | None = None) -> Endpoint:
    """The cluster of a context, the current one by default. Raises InvalidRequest, and OSError for an unreadable file."""
    return parse(path.read_bytes(), str(path), context)


def parse(content: str | bytes, path: str, context: str | None = None) -> Endpoint:
    """The same of a kubeconfig's content; `path` names it in errors, which show nothing of the content but names."""
    try:
        config = yaml_nodes.loaded(content)
        contexts = _named(path, config, "context")
        chosen = context or config.get("current-context")
        if chosen not in contexts:
            known = ", ".join(sorted(map(_shown, contexts))) or "none"
            raise InvalidRequest(f"{path}: there is no context '{_shown(chosen)}'; it has {known}")
        _check_fields(path, "context", chosen, contexts[chosen])
        cluster, user = (_entry(path, config, section, contexts[chosen][section]) for section in ("cluster", "user"))
        return Endpoint(
            url=_url(path, cluster["server"]),
            ca=_data(cluster, "certificate-authority-data"),
            verify=not _skips_verification(path, cluster),
            authorization=_authorization(path, user.get("token")),
            client_cert=_data(user, "client-certificate-data"),
            client_key=_data(user, "client-key-data"),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidRequest(f"{path}: is not a whole kubeconfig; compare it with: kubectl config view") from None


def written(endpoint: Endpoint, name: str, path: str) -> str:
    """
    A kubeconfig with what `endpoint` has, the same text for the same endpoint: one cluster `name`, one user, one context.

    Raises InvalidRequest, which names the original `path`, if the cluster's certificate is not to be verified.
    """
    if not endpoint.verify:
        raise InvalidRequest(
            f"{path}: cluster has insecure-skip-tls-verify, with which anybody on the way gets the credentials; give its CA as "
            "certificate-authority-data"
        )
    user, certificate = f"{name}-admin", _encoded("client-certificate-data", endpoint.client_cert)
    token = {"token": endpoint.authorization.removeprefix("Bearer ")} if endpoint.authorization else {}
    credentials = {**certificate, **_encoded("client-key-data", endpoint.client_key), **token}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": endpoint.url, **_encoded("certificate-authority-data", endpoint.ca)}}
        ],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": f"{user}@{name}", "context": {"cluster": name, "user": user}}],
        "current-context": f"{user}@{name}",
    }
    return yaml.safe_dump(content, width=1_000_000)


def _named(path: str, config: Object, section: str) -> dict[str, Object]:
    entries: list[Object] = list(config[f"{section}s"])
    found = {entry["name"]: entry[section] for entry in entries}
    if len(found) < len(entries):
        raise InvalidRequest(f"{path}: two {section}s have the same name; remove one")
    return found


def _entry(path: str, config: Object, section: str, name: str) -> Object:
    entry = _named(path, config, section)[name] or {}
    if outside := [key for key in _OUTSIDE if entry.get(key)]:
        raise InvalidRequest(
            f"{path}: {section} {_shown(name)} has {outside[0]}, which is not in the file itself. Use one with data and "
            "tokens, such as: kubectl config view --raw --flatten --minify"
        )
    _check_fields(path, section, name, entry)
    return entry


def _check_fields(path: str, section: str, name: str, entry: Mapping[str, object]) -> None:
    ignored: Iterable[str] = (key for key, value in entry.items() if value and key not in _HONOURED[section])
    if unknown := next(iter(ignored), ""):
        raise InvalidRequest(
            f"{path}: {section} {_shown(name)} has {_shown(unknown)}, which this driver does not support; use a kubeconfig "
            "without it"
        )


def _shown(name: object) -> str:
    """A name of others."""
    return one_line(str(name)[:_SHOWN])


def _url(path: str, server: str) -> str:
    if len(server) > URL_LIMIT or not is_plain(server):
        raise InvalidRequest(f"{path}: server is no plain URL, such as https://10.0.0.1:6443, without credentials")
    return server


def _skips_verification(path: str, cluster: Object) -> bool:
    skips = cluster.get("insecure-skip-tls-verify") or False
    if not isinstance(skips, bool):
        raise InvalidRequest(f"{path}: insecure-skip-tls-verify must be true or false, without quotes")
    return skips


def _authorization(path: str, token: object) -> str:
    text = str(token or "").strip()
    if not is_token(text):
        raise InvalidRequest(f"{path}: token has a character that no token has")
    return f"Bearer {text}" if text else ""


def _data(owner: Mapping[str, str], key: str) -> str:
    return base64.b64decode(owner.get(key, "")).decode()


def _encoded(key: str, text: str) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode()} if text else {}
