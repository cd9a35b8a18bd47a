# SPDX-License-Identifier: Apache-2.0
"""
Workload clusters of Cluster API: the driver's share of the time of one, and the requests of many.

On a management cluster with Cluster API and its in-memory provider, such as `clusterctl init --infrastructure docker` makes.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Template

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.package import Instance
from builds.programs import build
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.kubeconfig import endpoint as kubeconfig_endpoint
from k8s_cr_driver.objects.keys import Object

_MANIFESTS = Path(__file__).parents[1] / "sample_packages/cluster_api_workload/Files/kubernetes"
_GIVEN = {"KUBERNETES_VERSION": "v1.36.3", "MACHINE_STARTUP": "1s", "CONTROL_PLANES": 1, "WORKERS": 1}
_SECONDS = 1200


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clusters", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="the management cluster")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="clusters by each way, in turn (%(default)s)")
    parser.add_argument("--clusters", type=int, default=100, metavar="N", help="clusters at once (%(default)s)")
    parser.add_argument("--operations", type=int, default=10, metavar="N", help="operations side by side (%(default)s)")
    options = parser.parse_args()
    endpoint = kubeconfig_endpoint(options.kubeconfig)
    show_share(endpoint, options.kubeconfig, options.rounds)
    show_many(endpoint, options.clusters, options.operations)


def show_share(endpoint: Endpoint, kubeconfig: Path, rounds: int) -> None:
    """Both ways in turn, each until the cluster and its workers are available; what was made is deleted, and not timed."""
    taken: dict[str, list[float]] = {"kubectl apply, then kubectl wait": [], "the engine": []}
    for number in range(rounds):
        by_kubectl, by_engine = workload(f"share-kubectl-{number}"), workload(f"share-engine-{number}")
        taken["kubectl apply, then kubectl wait"].append(_seconds(lambda: _kubectl(kubeconfig, by_kubectl)))  # noqa: B023
        instance = Instance(endpoint)
        taken["the engine"].append(_seconds(lambda: instance.reconcile(by_engine)))  # noqa: B023
        instance.reconcile([])
        _run(kubeconfig, "delete", "cluster", by_kubectl[0]["metadata"]["name"])
    table = Table(title=f"A cluster of 1 + 1 Machines, {rounds} rounds")
    for heading in ("way", "seconds: median", "least", "most"):
        table.add_column(heading)
    for way, seconds in taken.items():
        table.add_row(way, *(f"{figure(seconds):.1f}" for figure in (statistics.median, min, max)))
    Console().print(table)


def show_many(endpoint: Endpoint, clusters: int, operations: int) -> None:
    instances = [Instance(endpoint, seconds=_SECONDS) for _ in range(clusters)]

    def make(number: int) -> float:
        return _seconds(lambda: instances[number].reconcile(workload(f"many-{number}")))

    started = time.perf_counter()
    with ThreadPoolExecutor(operations) as pool:
        seconds = list(pool.map(make, range(clusters)))
    elapsed = time.perf_counter() - started
    requests = [one.requests for one in instances]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    middle, typical = statistics.median(requests), statistics.median(seconds)
    Console().print(
        f"{clusters} clusters by {operations} operations: {elapsed:.0f} s, each {typical:.0f} s. Requests of a cluster: "
        f"first {requests[0]}, median {middle:.0f}, most {max(requests)}, last {requests[-1]}. Memory: at most {memory} MiB."
    )
    with ThreadPoolExecutor(operations) as pool:
        list(pool.map(lambda one: one.reconcile([]), instances))


def workload(name: str) -> list[Object]:
    """The objects of the sample package."""
    text = "\n---\n".join(path.read_text() for path in sorted(_MANIFESTS.glob("*.yaml")))
    return [obj for obj in yaml.safe_load_all(Template(text).substitute(_GIVEN, CLUSTER_NAME=name)) if obj]


def _kubectl(kubeconfig: Path, objects: Sequence[Object]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump_all(objects, file)
        file.flush()
        _run(kubeconfig, "apply", "--server-side", f"--filename={file.name}")
    for kind in ("cluster", "machinedeployment"):
        names = [obj["metadata"]["name"] for obj in objects if obj["kind"].lower() == kind]
        _run(kubeconfig, "wait", kind, *names, "--for=condition=Available", f"--timeout={_SECONDS}s")


def _run(kubeconfig: Path, *arguments: str) -> None:
    subprocess.run(
        [build("kubernetes") / "kubectl", f"--kubeconfig={kubeconfig}", *arguments], check=True, stdout=subprocess.DEVNULL
    )


def _seconds(way: Callable[[], None]) -> float:
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
