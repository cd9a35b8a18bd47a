# SPDX-License-Identifier: Apache-2.0
"""
Seconds of operations through Tacker, on the test bed, which has to be up: python -m functional_tests.testbed up.

An instance of 30 Namespaces, 30 CRDs, 90 custom resources and 30 ConfigMaps, beside the deletion of the same objects by bare
HTTP; then instances of 20 ConfigMaps, all at once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import package
from benchmarks.package import Instance
from functional_tests.client import Client
from functional_tests.objects import Object, Place, config_map, namespace
from functional_tests.packages import Package
from functional_tests.testbed import bed, paths
from functional_tests.testbed.ledger import Ledger
from functional_tests.testbed.tacker import onboarding
from functional_tests.vim import connection_info
from functional_tests.vnf import Vnf
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resources, discover
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.kubeconfig import endpoint as kubeconfig_endpoint
from k8s_cr_driver.objects.keys import key_of, kind_of
from k8s_cr_driver.objects.marks import SHARED

_PLACE = Place("operations")
_THREADS = 8
Taken = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of the instance with Namespaces (%(default)s)")
    parser.add_argument("--instances", type=int, default=50, metavar="N", help="at once (%(default)s)")
    options = parser.parse_args()
    environment = bed.environment()
    kubeconfig, taken = Path(environment["KUBECONFIG"]), Taken()
    tacker = Client({**os.environ, **environment}, partial(onboarding, Ledger(paths.STATE)))
    vim, endpoint = connection_info(kubeconfig), kubeconfig_endpoint(kubeconfig)
    with onboarded(tacker, spread()) as vnfd:
        for _ in range(options.rounds):
            operate([Vnf.create(tacker, vim, vnfd)], "180 objects", taken)
            delete_bare(endpoint, spread(), taken)
    with onboarded(tacker, [config_map(f"map-{number}") for number in range(20)]) as vnfd:
        spaces = [namespace(f"operations-{number}") for number in range(options.instances)]
        Instance(endpoint).reconcile(spaces)
        made = [Vnf.create(tacker, vim, vnfd, Place(one["metadata"]["name"])) for one in spaces]
        operate(made, f"{options.instances} instances of 20 objects at once", taken)
        remove(endpoint, spaces)
    show(taken)


def spread() -> list[Object]:
    """30 times a Namespace with a ConfigMap and three custom resources, and their CRD."""
    found = []
    for number in range(30):
        space, kind = f"operations-{number}", f"Kind{number}"
        found += [namespace(space), _PLACE.crd(kind), config_map(f"map-{number}", space)]
        found += [_PLACE.custom(kind, f"one-{number}-{one}", space) for one in range(3)]
    return found


@contextmanager
def onboarded(tacker: Client, objects: Sequence[Object]) -> Iterator[str]:
    """The VNFD id of a package of these objects."""
    with tempfile.TemporaryDirectory() as folder:
        found = tacker.onboard(Package({"all.yaml": list(objects)}).make(Path(folder) / "package.csar"))
    try:
        yield str(found["vnfdId"])
    finally:
        tacker.delete_package(found["id"])


def operate(vnfs: Sequence[Vnf], what: str, taken: Taken) -> None:
    """Instantiates all, then terminates all; each time until the last operation is COMPLETED."""
    verbs: dict[str, Callable[[Vnf], str]] = {
        "instantiate": lambda vnf: vnf.begin_instantiate("all.yaml"),
        "terminate": lambda vnf: vnf.begin_terminate(),
    }
    with ThreadPoolExecutor(_THREADS) as pool:
        for verb, begin in verbs.items():
            started = time.perf_counter()
            for vnf, operation in zip(vnfs, list(pool.map(begin, vnfs)), strict=True):
                vnf.wait(operation)
            taken.setdefault(f"{verb} of {what}", []).append(time.perf_counter() - started)
    for vnf in vnfs:
        vnf.remove()


def delete_bare(endpoint: Endpoint, objects: Sequence[Object], taken: Taken) -> None:
    """Makes the objects, and deletes them without the driver: Namespaces and CRDs after what is in them."""
    Instance(endpoint).reconcile(objects)
    started = time.perf_counter()
    remove(endpoint, [obj for obj in objects if kind_of(obj) not in SHARED])
    remove(endpoint, [obj for obj in objects if kind_of(obj) in SHARED])
    taken.setdefault("deletion of the 180 objects by bare HTTP", []).append(time.perf_counter() - started)


def remove(endpoint: Endpoint, objects: Sequence[Object]) -> None:
    """Deletes objects by bare requests; returns when all are gone."""
    with Connection(endpoint) as connection, ThreadPoolExecutor(_THREADS) as pool:
        places = list(map(partial(_path, discover(connection)), objects))
        list(pool.map(partial(connection.request, "DELETE"), places))
        for path in places:
            while package.is_there(connection, path):
                time.sleep(0.05)
        package.forget(connection)


def _path(resources: Resources, obj: Object) -> str:
    key = key_of(obj)
    resource = resources.find(key.group_kind)
    assert resource is not None
    return resource.path(key.namespace, key.name)


def show(taken: Taken) -> None:
    table = Table(title="Seconds through Tacker")
    for heading in ("operation", "median", "least", "most", "runs"):
        table.add_column(heading, justify="left" if heading == "operation" else "right")
    for what, values in taken.items():
        row = (f"{one:.1f}" for one in (statistics.median(values), min(values), max(values)))
        table.add_row(what, *row, str(len(values)))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
