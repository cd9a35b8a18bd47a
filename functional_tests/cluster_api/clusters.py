# SPDX-License-Identifier: Apache-2.0
"""Workload clusters of the tests: their package, and what Tacker reports of them beside what Cluster API has."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sample_packages
from k8s_cr_driver.package.tosca_meta import MANIFESTS

from ..cluster import Cluster
from ..objects import Object
from ..packages import Package
from ..testbed.processes import until
from ..vnf import Vnf

CORE = "cluster.x-k8s.io/v1beta2"
CONTROL_PLANES = "controlplane.cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta2"
OF_CLUSTER = "cluster.x-k8s.io/cluster-name"
OF_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
OF_DEPLOYMENT = "cluster.x-k8s.io/deployment-name"
OF_ENTRY = "topology.cluster.x-k8s.io/deployment-name"
CLONED_FROM = "cluster.x-k8s.io/cloned-from-name"
"""Annotation of what Cluster API makes of a template: its name."""
# Seconds, for a Machine to be replaced and Tacker's next look: every 10 s one round through all instances of the bed.
SYNCHRONIZED = 300

_SAMPLE = Path(sample_packages.__file__).parent / "cluster_api_workload" / MANIFESTS
_TEXTS, _NUMBERS = ("CLUSTER_NAME", "KUBERNETES_VERSION", "MACHINE_STARTUP"), ("CONTROL_PLANES", "WORKERS")
PARAMETERS = {**{name: {"type": "string"} for name in _TEXTS}, **{name: {"type": "integer"} for name in _NUMBERS}}


def package(changed: dict[str, str | Object], vdus: dict[str, str]) -> Package:
    """The sample's manifests with some changed or added; a step of an aspect is one Machine, so that every number passes."""
    files = {path.name: path.read_text() for path in sorted(_SAMPLE.iterdir())}
    vdus = {"ControlPlane": "control-plane", "Workers": "workers", **vdus}
    return Package({**files, **changed}, vdus, parameters=PARAMETERS)


PLAIN = package({}, {})
WORKERS = str(PLAIN.files["workers.yaml"])
"""The manifests of the group of workers."""


def parameters(name: str, **given: Any) -> dict[str, Any]:
    """Of a cluster of the package with one worker, unless given otherwise."""
    usual = {"KUBERNETES_VERSION": "v1.36.3", "MACHINE_STARTUP": "1s", "CONTROL_PLANES": 1, "WORKERS": 1}
    return {"CLUSTER_NAME": name, **usual, **given}


class Machine(NamedTuple):
    node: str
    provider_id: str
    version: str


def reported(vnf: Vnf, vdu: str) -> dict[str, Machine]:
    """The VNFCs of a VDU, in Tacker's order, by their ids. KeyError if one has not all of the metadata."""
    keys = ("node", "providerID", "version")
    return {vnfc["id"]: Machine(*(vnfc["metadata"][key] for key in keys)) for vnfc in vnf.vnfcs(vdu)}


def machines(cluster: Cluster, *selectors: str) -> dict[str, Machine]:
    """The same as the cluster has it. KeyError if a Machine is no Node yet."""
    return {
        one["metadata"]["name"]: Machine(one["status"]["nodeRef"]["name"], one["spec"]["providerID"], one["spec"]["version"])
        for one in staying(cluster, *selectors)
    }


def staying(cluster: Cluster, *selectors: str, kind: str = "Machine", api_version: str = CORE) -> list[Object]:
    """Those that nobody deletes. Cluster API no longer counts the others, which may outlive an operation by seconds."""
    found = cluster.all(kind, "default", ",".join(selectors), api_version)
    return [one for one in found if "deletionTimestamp" not in one["metadata"]]


def agreed(vnf: Vnf, vdu: str, cluster: Cluster, *selectors: str) -> dict[str, Machine]:
    """The VNFCs of the VDU, which must be the Machines that the selectors find."""
    found = reported(vnf, vdu)
    assert found == machines(cluster, *selectors)
    return found


def follows_a_replacement(vnf: Vnf, vdu: str, cluster: Cluster, *selectors: str) -> bool:
    """Whether Tacker comes to report the Machine by which Cluster API replaces one that somebody deletes."""
    before = agreed(vnf, vdu, cluster, *selectors)
    gone = min(before)
    cluster.delete("Machine", gone, "default", CORE)

    def agree() -> bool:
        try:
            found = reported(vnf, vdu)
            return gone not in found and len(found) == len(before) and found == machines(cluster, *selectors)
        except KeyError:
            return False

    return bool(until(agree, SYNCHRONIZED))


@contextmanager
def paused(cluster: Cluster, name: str) -> Iterator[None]:
    """It can be deleted again afterwards, whatever comes."""
    cluster.change("Cluster", name, "default", CORE, spec={"paused": True})
    try:
        yield
    finally:
        cluster.change("Cluster", name, "default", CORE, spec={"paused": None})


def templates(cluster: Cluster, name: str) -> set[str]:
    """Which templates the DevMachines of a Cluster were made of."""
    found = staying(cluster, f"{OF_CLUSTER}={name}", kind="DevMachine", api_version=INFRASTRUCTURE)
    return {one["metadata"]["annotations"][CLONED_FROM] for one in found}


def conditions(live: Object | None) -> dict[str, str]:
    """Type -> status."""
    return {one["type"]: one["status"] for one in (live or {})["status"]["conditions"]}
