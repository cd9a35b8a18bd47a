# SPDX-License-Identifier: Apache-2.0
"""The server's state and knobs: stored objects, served kinds, what tests switch.

Writes run inside `Cluster.writing()`: one at a time; reactions of the test to them run after the outermost one has
released the lock and before its response is sent.
"""

import itertools
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType

from tests.fake_api import kinds
from tests.fake_api.kinds import Kind, Resource
from tests.fake_api.objects import Object, group_of
from tests.fake_api.store import Store

Reaction = Callable[[Object], None]
Work = Callable[[], None]
_IDS = itertools.count()
DEFAULT_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass
class Knobs:
    """What a test switches; `denied` entries are (verb, group, plural, namespace or "*"), `*` matches all.

    `down` are (group, version) of aggregated APIs whose servers do not answer; an API server that was restarted since
    `forgets_down` what kinds they had.
    """

    establish_crds: bool = True
    refuse_crd_names: set[str] = field(default_factory=set)
    send_initial_events: bool = True
    ignore_initial_events: bool = False
    """As the server of an aggregated API that does not know the option: the objects come without a bookmark at their end."""
    down: set[tuple[str, str]] = field(default_factory=set)
    forgets_down: bool = True
    grace_period: int = 0
    """Seconds of every deletion; what has no finalizers goes at once all the same."""
    hold_namespaces: set[str] = field(default_factory=set)
    stalled_crds: set[str] = field(default_factory=set)
    """Names of CRDs whose deletion the finalizer controller does not take up again before their metadata change."""
    tokens: set[str] | None = None
    user: str = "system:serviceaccount:default:tester"
    denied: set[tuple[str, str, str, str]] = field(default_factory=set)
    version: str = "v1.36.3"


class Cluster:
    def __init__(self) -> None:
        self.id = next(_IDS)
        """No ETag of another cluster is one of this, which may have its port."""
        self.store = Store()
        self.knobs = Knobs()
        self.reactions: list[tuple[str, str | None, Reaction]] = []
        self.later: Callable[[Work], None] = _at_once
        """How the server's own controllers (garbage, namespaces, CRDs) come to do what a write leaves to them."""
        self._kinds = {resource: dict(versions) for resource, versions in _built_in().items()}
        self._named: dict[str, list[Kind]] = {}
        """By name, of those that were asked for since others are served."""
        self._writing = _Writing(self)

    def copy(self) -> "Cluster":
        """A cluster of its own with the same objects and kinds; knobs and reactions are as on a new one."""
        twin = Cluster()
        with self.store.lock:
            twin.store = self.store.copy()
            twin._kinds = {resource: dict(versions) for resource, versions in self._kinds.items()}
        return twin

    def serve(self, resource: Resource, served: list[Kind]) -> None:
        """Replace the served versions of a resource; none at all withdraws it. Its streams end."""
        with self.store.lock:
            self._kinds.pop(resource, None)
            self._named.clear()
            if served:
                self._kinds[resource] = {kind.version: kind for kind in served}
            self.store.end_streams(resource)

    def serve_only(self, names: Collection[str]) -> None:
        """Withdraw all other kinds."""
        served = {resource: {version: kind for version, kind in versions.items() if kind.kind in names}
                  for resource, versions in self._kinds.items()}
        self._kinds = {resource: versions for resource, versions in served.items() if versions}
        self._named.clear()

    def kinds(self) -> list[Kind]:
        with self.store.lock:
            return [kind for versions in self._kinds.values() for kind in versions.values()]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, plural), {}).get(version)

    def is_built_in(self, group: str, version: str) -> bool:
        with self.store.lock:
            several = [versions.get(version) for (named, _), versions in self._kinds.items() if named == group]
        return any(kind is not None and not kind.custom for kind in several)

    def served(self, resource: Resource) -> list[Kind]:
        return list(self._kinds.get(resource, {}).values())

    def by_kind(self, kind: str, api_version: str | None = None) -> Kind:
        """The kind by its name, for tests; LookupError if it is not served or not unique."""
        with self.store.lock:
            if kind not in self._named:
                self._named[kind] = [one for one in self.kinds() if one.kind == kind]
            found = [one for one in self._named[kind] if api_version in (None, one.api_version)]
        groups = {one.group for one in found}
        if len(groups) != 1:
            raise LookupError(f"{len(groups)} kinds {kind!r} in {api_version or 'any group'} are served")
        return found[0]

    def kind_of(self, obj: Object) -> Kind:
        return self.by_kind(obj["kind"], obj["apiVersion"])

    def writing(self) -> "_Writing":
        return self._writing

    def written(self, obj: Object) -> None:
        """Note a write for the reactions that a test has registered."""
        if self.reactions:
            self._writing.now.objects.append(obj)

    def react(self, objects: list[Object]) -> None:
        for obj in objects:
            for kind, group, reaction in list(self.reactions):
                if obj["kind"] == kind and group in (None, group_of(obj["apiVersion"])):
                    reaction(obj)


@cache
def _built_in() -> dict[Resource, dict[str, Kind]]:
    found: dict[Resource, dict[str, Kind]] = {}
    for kind in kinds.built_in():
        found.setdefault(kind.resource, {})[kind.version] = kind
    return found


class _Written(threading.local):
    """By one thread in the outermost of its nested `writing()`, of which there are `depth`."""

    depth = 0

    def __init__(self) -> None:
        self.objects: list[Object] = []


class _Writing:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.now = cluster, _Written()

    def __enter__(self) -> None:
        self._cluster.store.lock.acquire()
        self.now.depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.now.depth -= 1
        self._cluster.store.lock.release()
        if not self.now.depth:
            written, self.now.objects = self.now.objects, []
            if error is None:
                self._cluster.react(written)


def _at_once(work: Work) -> None:
    work()
