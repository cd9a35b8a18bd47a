# SPDX-License-Identifier: Apache-2.0
"""Which versions and templates a change of the package may give to what is on the cluster, and which of its objects wait."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from k8s_cr_driver.capi import contract, paused, versions
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of
from k8s_cr_driver.resources.hooks import Changes


@dataclass(frozen=True)
class ClusterChanges(Changes):
    """Of a Cluster with a topology."""

    manifest: Object

    def error(self, live: Object | None, desired: Sequence[Object]) -> str:
        error = versions.downgrade_error if self._upgrades_in_chain(desired) else versions.change_error
        return self._version_error([text(live, *contract.TOPOLOGY_VERSION)], error)

    def error_of_made(self, made: Mapping[GroupKind, Sequence[Object]], desired: Sequence[Object]) -> str:
        """Machines may not have reached the version yet that a change before this one has asked for."""
        if self._upgrades_in_chain(desired):
            return ""
        control_planes = itertools.chain.from_iterable(made[kind] for kind in made if kind not in contract.WORKERS)
        former = ([contract.version_in(one), *contract.versions_reached(one)] for one in control_planes)
        return self._version_error(itertools.chain.from_iterable(former), versions.skip_error)

    def _upgrades_in_chain(self, known: Iterable[Object]) -> bool:
        """Cluster API goes through the minor versions itself, if the ClusterClass says how."""
        classes = {key for _, _, key in contract.class_names(self.manifest)}
        return any(key_of(one) in classes and contract.upgrades_in_chain(one) for one in known)

    def _version_error(self, former: Iterable[str], error: Callable[[str, str], str]) -> str:
        after = text(self.manifest, *contract.TOPOLOGY_VERSION)
        why = next(filter(None, (error(before, after) for before in former)), "")
        return why and f"spec.topology.version {why}"


@dataclass(frozen=True)
class ControlPlaneChanges(Changes):
    manifest: Object

    def error(self, live: Object | None, desired: Sequence[Object]) -> str:
        """Machines may not have reached the version yet that a change before this one has asked for.

        Those of a cloud that upgrades by itself may be ahead of it, which is no downgrade.
        """
        after = text(self.manifest, *contract.VERSION)
        skips = (versions.skip_error(reached, after) for reached in contract.versions_reached(live or {}))
        why = versions.change_error(text(live, *contract.VERSION), after) or next(filter(None, skips), "")
        return f"spec.version {why}" if why else paused.change_error(live, self.manifest, desired)


@dataclass(frozen=True)
class WorkersChanges(Changes):
    manifest: Object

    def error(self, live: Object | None, desired: Sequence[Object]) -> str:
        """A kubelet is neither newer nor much older than API servers ("Version Skew Policy"), and is not downgraded."""
        control_plane = contract.control_plane_of(self.manifest, desired)
        before, version, newest = _version(live), _version(self.manifest), text(control_plane, *contract.VERSION)
        where = ".".join(contract.WORKERS_VERSION)
        if versions.is_newer(before, version):
            return f"{where} {versions.change_error(before, version)}"
        if control_plane and versions.is_newer(version, newest):
            return f"{where} {version} is newer than {newest} of {key_of(control_plane)}; raise the version of both"
        if control_plane and (why := versions.skew_error(version, newest)):
            return f"{where} {why} of {key_of(control_plane)}"
        return paused.change_error(live, self.manifest, desired)

    def is_last(self, live: Object) -> bool:
        """An upgrade begins when the control plane is upgraded."""
        return versions.is_newer(_version(self.manifest), _version(live))


def _version(workers: Object | None) -> str:
    return text(workers, *contract.WORKERS_VERSION)
