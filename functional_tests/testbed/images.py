# SPDX-License-Identifier: Apache-2.0
"""Container images made without a registry: one layer, on nothing, that holds a static program.

An image is a docker-archive in the cache, named by the hash of what it holds; equal input gives equal archives.
"""

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from builds import cache

# What image references without a registry or a tag mean.
DEFAULT_REGISTRY, DEFAULT_FOLDER, DEFAULT_TAG = "docker.io", "library", "latest"


def folder() -> Path:
    """Where the archives are."""
    path = cache.folder() / "images"
    path.mkdir(parents=True, exist_ok=True)
    return path


def archive(names: Sequence[str], entrypoint: str, files: Mapping[str, Path], user: str = "") -> Path:
    """A docker-archive of one image with all of `names`, of `files` (path in the image -> file of the host).

    `entrypoint` is "" if containers name the program themselves. `user` is the numeric user that they run as; root by
    default.
    """
    references = [reference(name) for name in names]
    parts = [json.dumps([references, entrypoint, user])]
    parts += [f"{path} {source} {source.stat().st_size} {source.stat().st_mtime_ns}" for path, source in files.items()]
    target = folder() / f"{cache.digest(*map(str.encode, parts))}.tar"
    if not target.exists():
        descriptor, unfinished = tempfile.mkstemp(dir=folder(), suffix=".unfinished")
        with os.fdopen(descriptor, "wb") as output:
            _write(output, references, entrypoint, files, user)
        os.rename(unfinished, target)
    return target


def reference(name: str) -> str:
    """The full reference that a short image name stands for, as container runtimes read it."""
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"{DEFAULT_REGISTRY}/{DEFAULT_FOLDER}/{name}"
    elif not ("." in first or ":" in first or first == "localhost"):
        name = f"{DEFAULT_REGISTRY}/{name}"
    return name if ":" in name.rpartition("/")[2] else f"{name}:{DEFAULT_TAG}"


def _write(output: IO[bytes], references: list[str], entrypoint: str, files: Mapping[str, Path], user: str) -> None:
    with tempfile.TemporaryFile() as layer:
        with tarfile.open(fileobj=layer, mode="w") as tar:
            for path, source in files.items():
                with source.open("rb") as program:
                    _add(tar, path.lstrip("/"), program, source.stat().st_size)
        size = layer.tell()
        layer.seek(0)
        diff_id = _sha256(layer)
        environment = ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        config = {
            "architecture": _ARCHITECTURES[os.uname().machine],
            "os": "linux",
            "config": {"Entrypoint": [entrypoint] if entrypoint else None, "Env": environment, "User": user},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        }
        manifest = [{"Config": "config.json", "RepoTags": references, "Layers": ["layer.tar"]}]
        with tarfile.open(fileobj=output, mode="w") as tar:
            for file, content in (("config.json", config), ("manifest.json", manifest)):
                text = json.dumps(content).encode()
                _add(tar, file, io.BytesIO(text), len(text))
            layer.seek(0)
            _add(tar, "layer.tar", layer, size)


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def _sha256(file: IO[bytes]) -> str:
    total = hashlib.sha256()
    while block := file.read(1 << 20):
        total.update(block)
    return total.hexdigest()


def _add(tar: tarfile.TarFile, path: str, content: IO[bytes], size: int) -> None:
    member = tarfile.TarInfo(path)
    member.size, member.mode = size, 0o755
    tar.addfile(member, content)
