# SPDX-License-Identifier: Apache-2.0
"""
The entries of lcm-kubernetes-def-files -> bytes: paths of the package, and https URLs where the caller fetches them.

Nothing outside the package's folder is read here. The content of a URL must have the hash that TOSCA.meta gives for it, if it
gives one. Errors show no URL's credentials and no query.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.package import tosca_meta

SIZE_LIMIT = 32 * 1024 * 1024
"""Bytes of all manifest files of a package together."""

Fetch = Callable[[str], bytes]
"""URL -> its content; InvalidPackage or InvalidRequest if that cannot be, or is not to be read."""


def no_url(url: str) -> bytes:
    """The `Fetch` where no URL is read."""
    raise InvalidPackage(f"{shown(url)}: manifests at a URL are not read here; put the file into the package")


def read(root: Path, name: str, *, fetch: Fetch) -> bytes:
    """
    What `name` holds, a path below `root`, the unpacked CSAR, or an https URL.

    Raises InvalidPackage; InvalidRequest for a URL that has credentials, since entries are stored and shown.
    """
    try:
        url = urlsplit(name if is_url(name) else "")
    except ValueError:
        raise InvalidRequest("lcm-kubernetes-def-files: an entry with :// is no URL; give paths in the package") from None
    if url.scheme.lower() not in ("http", "https"):
        if url.scheme or name.lower().startswith("file:"):
            raise InvalidPackage(f"{shown(name)}: only paths inside the package are allowed")
        return _of_package(root, name)
    if url.scheme.lower() != "https":
        raise InvalidPackage(f"{shown(name)}: manifests at a URL are allowed only by https; put the file into the package")
    if "@" in url.netloc:
        raise InvalidRequest(
            f"{shown(name)}: credentials in a URL of lcm-kubernetes-def-files would be stored with the VNF instance, and "
            "shown; put the file into the package, or serve it without authentication"
        )
    content = fetch(name)
    tosca_meta.check_hash(root, name, content)
    return content


def is_url(name: str) -> bool:
    """Whether an entry is none of the package."""
    return "://" in name


def shown(name: str) -> str:
    """`name` without the credentials and the query that a URL may hold."""
    if not is_url(name):
        return name
    try:
        url = urlsplit(name)
    except ValueError:
        return "an entry that is no URL"
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


def inside(folder: Path, path: str) -> Path | None:
    """The file with that path below a folder, None if there is none."""
    try:
        file = (folder / path).resolve()
        return file if file.is_relative_to(folder.resolve()) and file.is_file() else None
    except (OSError, ValueError, RuntimeError):  # it is too long, has a null character, or a cycle of links
        return None


def text_inside(folder: Path, path: str, limit: int) -> str:
    """The text of a file of the package, of at most `limit` bytes. Raises InvalidPackage."""
    file = inside(folder, path)
    if file is None or file.stat().st_size > limit:
        raise InvalidPackage(f"{path}: is no file in the package, or has more than {limit:,} bytes")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise InvalidPackage(f"{path}: cannot be read; the package must have this file as text") from None
