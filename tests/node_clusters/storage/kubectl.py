# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes of a cluster, as kubectl shows, applies and deletes them."""

from __future__ import annotations

import dataclasses
import json

from k8s_cr_driver.node_clusters.storage.facts import Live
from k8s_cr_driver.node_clusters.storage.persistent_volumes import ANNOTATION


class Cluster:
    """Call it as kubectl is called. `volumes` are those that there are; a spec's NFS server is immutable."""

    def __init__(self) -> None:
        self.volumes: dict[str, Live] = {}
        self.pods: list[str] = []
        self.calls: list[tuple[str, ...]] = []
        self.phase = "Available"
        """Of what is applied."""

    def __call__(self, what: str, *argv: str, stdin: str = "", within: float = 120.0) -> str:
        self.calls.append(argv)
        match argv:
            case ("get", "persistentvolumes", *_):
                return "".join(map(_row, self.volumes.values()))
            case ("get", "pods", *_):
                return "".join(f"{row}\n" for row in self.pods)
            case ("apply", *_):
                self._apply(json.loads(stdin))
            case ("delete", "persistentvolume", name, *_):
                if self.volumes[name].claim:
                    self.volumes[name] = dataclasses.replace(self.volumes[name], is_deleted=True)
                else:
                    del self.volumes[name]
            case ("patch", "persistentvolume", name, *_):
                assert self.volumes[name].is_deleted
                del self.volumes[name]
            case _:
                raise AssertionError(argv)
        return ""

    def claim(self, name: str, claim: str) -> None:
        self.volumes[name] = dataclasses.replace(self.volumes[name], claim=claim, phase="Bound")

    def release(self, name: str) -> None:
        self.volumes[name] = dataclasses.replace(self.volumes[name], claim="", phase="Available")

    def _apply(self, manifest: dict[str, dict[str, dict[str, str]]]) -> None:
        name, nfs = str(manifest["metadata"]["name"]), manifest["spec"]["nfs"]
        there = self.volumes.get(name)
        assert there is None or (there.server, there.path) == (nfs["server"], nfs["path"]), "it is immutable"
        digest = manifest["metadata"]["annotations"][ANNOTATION]
        self.volumes[name] = Live(name, self.phase, server=nfs["server"], path=nfs["path"], digest=digest)


def _row(one: Live) -> str:
    namespace, _, claim = one.claim.partition("/")
    deleted = "2026-01-01T00:00:00Z" if one.is_deleted else ""
    return "\t".join((one.name, one.phase, deleted, namespace, claim, one.server, one.digest, one.path)) + "\n"
