# SPDX-License-Identifier: Apache-2.0
"""
The entries of lcm-kubernetes-def-files -> bytes: paths of the package, and URLs where the operator allows them.

Nothing outside the package's folder is read. Errors show no URL's credentials and no query.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

import urllib3

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest

SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes of all manifest files of a package together."""


def read(root: Path, name: str, *, remote_hosts: Collection[str]) -> bytes:
    """
    What `name` holds, a path below `root`, the unpacked CSAR, or an https URL of one of `remote_hosts`.

    Raises InvalidPackage; InvalidRequest for a URL that has credentials, since entries are stored and shown.
    """
    try:
        url = urlsplit(name if "://" in name else "")
    except ValueError:
        raise InvalidRequest("lcm-kubernetes-def-files: an entry with :// is no URL; give paths in the package") from None
    if url.scheme.lower() not in ("http", "https"):
        if url.scheme or name.lower().startswith("file:"):
            raise InvalidPackage(f"{shown(name)}: only paths inside the package are allowed")
        return _of_package(root, name)
    if url.scheme.lower() != "https" or (url.hostname or "") not in remote_hosts:
        raise InvalidPackage(
            f"{shown(name)}: manifests at a URL are allowed only by https, and of the hosts that the operator names in "
            "[k8s_cr] allow_remote_manifests; put the file into the package"
        )
    if "@" in url.netloc:
        raise InvalidRequest(
            f"{shown(name)}: credentials in a URL of lcm-kubernetes-def-files would be stored with the VNF instance, and "
            "shown; put the file into the package, or serve it without authentication"
        )
    return _fetched(name)


def shown(name: str) -> str:
    """`name` without the credentials and the query that a URL may hold."""
    if "://" not in name:
        return name
    url = urlsplit(name)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def _of_package(root: Path, name: str) -> bytes:
    base = root.resolve()
    try:
        path = (base / name).resolve()
        if not path.is_relative_to(base):
            raise InvalidPackage(f"{name}: leads out of the package; name a path below the package's root")
        if not path.is_file():
            raise InvalidPackage(f"{name}: no such file in the package; check lcm-kubernetes-def-files")
        if path.stat().st_size > SIZE_LIMIT:
            raise InvalidPackage(f"{name}: is larger than {SIZE_LIMIT // 1024**2} MiB")
        return path.read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not a path"
        raise InvalidPackage(f"{name!r}: cannot be read: {reason}") from None


def _fetched(url: str) -> bytes:
    """The body of `url`; TLS is verified with the system's CAs. A redirect is refused: it may lead to any host."""
    timeout = urllib3.Timeout(connect=10, read=30)
    retries = urllib3.Retry(total=3, redirect=0, raise_on_redirect=False, backoff_factor=0.1)
    try:
        with urllib3.PoolManager(timeout=timeout, retries=retries) as http:
            response = http.request("GET", url, preload_content=False, redirect=False, headers={"Accept-Encoding": "identity"})
            content = response.read(SIZE_LIMIT + 1)
            response.close()
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        # Only these texts are sure not to hold the query of a URL.
        reason = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else type(error).__name__
        raise InvalidPackage(f"{shown(url)}: cannot be read: {reason}") from None
    if response.status != 200:
        raise InvalidPackage(f"{shown(url)}: the server responded with {response.status}; expected 200")
    return content
