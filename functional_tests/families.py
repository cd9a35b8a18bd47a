# SPDX-License-Identifier: Apache-2.0
"""The families of functional tests: each is a folder here, which can be run alone, and needs what it declares below.

The parts of the bed that the chosen families need are started before their first test, by the process that the user
has started; the programs of their sample packages are built while other tests run, which wait more than they work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from builds.progress import say

from . import sample_onboarding
from .testbed import bed

FOLDER = Path(__file__).parent
CLOUD = "openstack"
"""The part of the bed that `make test` does without."""


@dataclass(frozen=True)
class Family:
    """What its tests need: `parts` of the bed, and the programs of sample packages, `samples` by their names.

    `beside`: what they use together, and what another test may have to itself meanwhile.
    """

    parts: tuple[str, ...]
    samples: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def needs_cloud(self) -> bool:
        return CLOUD in self.parts


_KUBERNETES = ("kubernetes",)
_TACKER = ("kubernetes", "tacker")
BROUGHT = ("cert-manager", "cluster-api")
"""What a management cluster brings: who brings one has these to itself, because others bring them, too."""
PROVIDER = "infrastructure-provider"
"""That of the management cluster: what a test has to itself that stops it."""

FAMILIES = {
    "cluster_api": Family(
        _TACKER,
        ("cluster_api_management", "cluster_api_workload", "cluster_api_workload_topology"),
        (*BROUGHT, PROVIDER),
    ),
    "core": Family(_TACKER),
    "credentials": Family(_TACKER),
    "faults": Family(_KUBERNETES),
    "kind": Family(("tacker",), ("cluster_api_management", "cluster_api_workload")),
    "node_clusters": Family(("machines",)),
    "node_clusters_openstack": Family(("machines", "tacker", "openstack")),
    "openstack": Family(
        ("kubernetes", "tacker", "openstack"),
        (
            "cloud_provider_openstack",
            *("cluster_api_management", "cluster_api_workload_openstack", "cluster_api_workload_openstack_topology"),
        ),
    ),
    "recovery": Family(_TACKER),
    "samples": Family(_TACKER, ("cert_manager", "gpu_operator", "istio", "prometheus_operator")),
    "schema_check": Family(()),
    "testbed": Family(_KUBERNETES),
    "upstream": Family(_TACKER),
}

PORTABLE = ("core", "faults", "recovery")
"""Those whose tests want a cluster, whosever it is, but for some."""


def family_of(path: Path) -> Family:
    """The family of a test's file."""
    return FAMILIES[path.relative_to(FOLDER).parts[0]]


def chosen(arguments: Iterable[str], start: Path) -> list[str]:
    """The families that have tests in these arguments of pytest, which are paths from `start` with or without a test."""
    paths = [(start / argument.partition("::")[0]).resolve() for argument in arguments]
    return [name for name in FAMILIES if any(_overlap(FOLDER / name, path) for path in paths)]


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


@contextmanager
def started(names: Iterable[str], cluster: str) -> Iterator[None]:
    """The bed has what these families need, on that cluster (as `bed.up` takes it); if it was down before, it is at the end."""
    families = {name: FAMILIES[name] for name in names}
    for name, family in families.items():
        say(f"Family {name}: {_described(family)}")
    parts = [part for part in bed.PARTS if any(part in family.parts for family in families.values())]
    samples = {sample for family in families.values() for sample in family.samples}
    with bed.during_run(parts, cluster) if parts else nullcontext(), sample_onboarding.building(samples):
        yield


def _described(family: Family) -> str:
    programs = sample_onboarding.programs_of(family.samples)
    return f"starts {', '.join(family.parts) or 'nothing'}; builds {', '.join(programs) or 'no programs of its own'}"
