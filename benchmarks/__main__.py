# SPDX-License-Identifier: Apache-2.0
"""Measures, prints one table, and with --json writes the figures to a file."""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import statistics
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import package, peers
from benchmarks.package import Instance, crontab
from benchmarks.server import api_server
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.kubeconfig import endpoint as kubeconfig_endpoint

Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="a cluster to use instead of a server of its own")
    parser.add_argument("--objects", type=int, default=1000, metavar="N", help="custom resources of a package (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of each, the median counts (%(default)s)")
    parser.add_argument("--waits", type=int, default=200, metavar="N", help="waits whose end is timed (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    with ExitStack() as stack:
        kubeconfig = options.kubeconfig or stack.enter_context(api_server())
        figures = measure(kubeconfig, options.objects, options.rounds, options.waits)
    show(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


def measure(kubeconfig: Path, count: int, rounds: int, waits: int) -> Figures:
    """{"objects": N, "seconds": {way: median}, "requests": {run: number}, "end of a wait, ms": {"p50", "p99", ...}, ...}."""
    endpoint = kubeconfig_endpoint(kubeconfig)
    objects = [crontab(f"tab-{number:05d}") for number in range(count)]
    changed = [crontab(f"tab-{number:05d}", 1 if number % 100 else 2) for number in range(count)]
    taken: dict[str, list[float]] = {}
    requests: dict[str, int] = {}
    with Connection(endpoint) as connection, tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Callable[[], None]] = {
            "bare HTTP, 8 threads": lambda: peers.bare_http(endpoint, objects, 8),
            "bare HTTP, 16 threads": lambda: peers.bare_http(endpoint, objects, 16),
            "kubectl apply --server-side": lambda: peers.kubectl(kubeconfig, objects, Path(folder)),
            "helm install --wait": lambda: peers.helm(kubeconfig, objects, Path(folder)),
        }
        for _ in range(rounds):
            with package.served(connection, status=False):
                one = Instance(endpoint)
                for run, wanted in (("new", objects), ("again, unchanged", objects), ("again, 1 % changed", changed)):
                    one.requests = 0
                    way = functools.partial(one.reconcile, wanted, asks=run != "new")
                    taken.setdefault(f"engine, {run}", []).append(_seconds(way))
                    requests[run] = one.requests
            for name, way in ways.items():
                with package.served(connection, status=False):
                    taken.setdefault(name, []).append(_seconds(way))
        with package.served(connection, status=False):
            memory = _peak(lambda: Instance(endpoint).reconcile(objects))
        with package.served(connection, status=True):
            latencies = sorted(_end_of_wait(endpoint, connection, number) for number in range(waits))
    return {
        "machine": f"{len(os.sched_getaffinity(0))} cores",
        "python": platform.python_version(),
        "objects": count,
        "rounds": rounds,
        "seconds": {name: round(statistics.median(values), 3) for name, values in taken.items()},
        "requests": requests,
        "KiB of memory an object": round(memory / 1024 / count, 1),
        "end of a wait, ms": _percentiles(latencies),
    }


def _seconds(way: Callable[[], None]) -> float:
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


def _peak(way: Callable[[], None]) -> int:
    """The most bytes that Python has allocated at once meanwhile, beside what it had before."""
    tracemalloc.start()
    try:
        way()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _end_of_wait(endpoint: Endpoint, connection: Connection, number: int) -> float:
    """Seconds from the request that makes the last of three objects ready to the return of `converge`."""
    names = [f"wait-{number}-{part}" for part in range(3)]
    unready, waiting, sent = set(names), threading.Event(), [0.0]

    def hear(key: Any, state: str, message: str) -> None:
        if state == "Waiting":
            unready.discard(key.name)
        if not unready:
            waiting.set()

    def finish() -> None:
        waiting.wait(60)
        for name in names[:-1]:
            package.set_ready(connection, name)
        sent[0] = time.perf_counter()
        package.set_ready(connection, names[-1])

    controller = threading.Thread(target=finish)
    controller.start()
    Instance(endpoint).reconcile([crontab(name) for name in names], hear)
    returned = time.perf_counter()
    controller.join()
    return returned - sent[0]


def _percentiles(seconds: list[float]) -> dict[str, float]:
    def at(percent: int) -> float:
        return round(1000 * seconds[min(len(seconds) - 1, len(seconds) * percent // 100)], 1)

    return {"runs": len(seconds), "p50": at(50), "p99": at(99), "worst": at(100)} if seconds else {}


def show(figures: Figures) -> None:
    table = Table(title=f"{figures['objects']} custom resources, median of {figures['rounds']} rounds, {figures['machine']}")
    for heading in ("way", "seconds", "requests"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for name, seconds in sorted(figures["seconds"].items(), key=lambda item: item[1]):
        requests = figures["requests"].get(name.removeprefix("engine, "), "")
        table.add_row(name, f"{seconds:.2f}", str(requests))
    console = Console()
    console.print(table)
    console.print(f"Memory of the engine, new: {figures['KiB of memory an object']} KiB an object.")
    if late := figures["end of a wait, ms"]:
        console.print(
            f"From the request that makes the last object ready to the end of the wait: p50 {late['p50']} ms, "
            f"p99 {late['p99']} ms, worst {late['worst']} ms of {late['runs']}."
        )


if __name__ == "__main__":
    main()
