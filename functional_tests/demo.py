# SPDX-License-Identifier: Apache-2.0
"""`python -m functional_tests.demo`: three sample packages through a real Tacker on a real Kubernetes.

A custom resource; a Cluster API management cluster; two workload clusters made by it, scaled out and in; all terminated.
Everything goes through Tacker's REST API. A live table shows the objects meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from builds.progress import step
from functional_tests import sample_onboarding, vim
from functional_tests.client import ApiError, Client, OperationError
from functional_tests.observer import Observer
from functional_tests.testbed import bed, paths, preconditions
from functional_tests.testbed.kubernetes import Kubernetes
from functional_tests.testbed.ledger import Ledger
from functional_tests.testbed.tacker import onboarding

CONSOLE = Console(highlight=False)
PACKAGES = ("crontab", "cluster_api_management", "cluster_api_workload")
WORKLOADS = {"red": {"WORKERS": 2}, "green": {"WORKERS": 2, "MACHINE_STARTUP": "1s"}}


class Demo:
    """One run: what Tacker is asked for, how long each step took."""

    def __init__(self, client: Client, connection: dict[str, Any], observer: Observer) -> None:
        self._client, self._vim, self._observer = client, connection, observer
        self._seconds: list[tuple[str, float]] = []
        self._samples: dict[str, sample_onboarding.Sample] = {}
        self._ids: dict[str, str] = {}

    def run(self) -> None:
        with self._step("Make and onboard three VNF packages"):
            self._onboard()
        with self._step("Instantiate crontab: a CRD and a custom resource of it"):
            self._instantiate("crontab", "crontab")
        with self._step("Instantiate cluster_api_management: cert-manager and Cluster API"):
            self._instantiate("management", "cluster_api_management")
        with self._step("Instantiate two workload clusters at once"):
            started = [self._begin(name, "cluster_api_workload", **given) for name, given in WORKLOADS.items()]
            self._wait(started)
        with self._step("Scale the workers of red out to 3"):
            self._scale("red", "SCALE_OUT")
        self._show_vnfcs("red")
        with self._step("Scale the workers of red in to 2"):
            self._scale("red", "SCALE_IN")
        self._show_vnfcs("red")
        with self._step("Terminate both workload clusters"):
            self._terminate(*WORKLOADS)
        with self._step("Terminate the management cluster and crontab"):
            self._terminate("management", "crontab")

    def report(self) -> None:
        table = Table(title="The demo in seconds", title_justify="left")
        table.add_column("step")
        table.add_column("seconds", justify="right")
        for what, seconds in self._seconds:
            table.add_row(what, f"{seconds:.1f}")
        CONSOLE.print(table)

    @contextlib.contextmanager
    def _step(self, what: str) -> Iterator[None]:
        CONSOLE.print(f"{what} ...")
        started = time.monotonic()
        with Live(self._observer, console=CONSOLE, transient=True, refresh_per_second=4) if CONSOLE.is_terminal else (
            contextlib.nullcontext()
        ):
            yield
        seconds = time.monotonic() - started
        self._seconds.append((what, seconds))
        CONSOLE.print(f"  done in {seconds:.1f} s; on the cluster: {self._observer.summary()}", style="green")

    def _onboard(self) -> None:
        self._samples = sample_onboarding.onboard(self._client, PACKAGES)

    def _begin(self, name: str, package: str, **parameters: Any) -> str:
        sample = self._samples[package]
        instance = self._client.create(sample.vnfd_id, name)["id"]
        self._ids[name] = instance
        self._observer.names[instance] = name
        params: dict[str, Any] = {"lcm-kubernetes-def-files": sample.files}
        if parameters:
            params["parameters"] = {"CLUSTER_NAME": name, **parameters}
        return self._client.instantiate(instance, self._vim, params)

    def _instantiate(self, name: str, package: str) -> None:
        self._wait([self._begin(name, package)])

    def _scale(self, name: str, direction: str) -> None:
        self._wait([self._client.scale(self._ids[name], direction, "workers")])

    def _terminate(self, *names: str) -> None:
        self._wait([self._client.terminate(self._ids[name]) for name in names])
        for name in names:
            self._client.delete(self._ids.pop(name))

    def _wait(self, operations: list[str]) -> None:
        for operation in operations:
            self._client.wait(operation, timeout=600)

    def _show_vnfcs(self, name: str) -> None:
        info = self._client.instance(self._ids[name])["instantiatedVnfInfo"]
        table = Table(title=f"VNFCs of {name}, as Tacker lists them", title_justify="left")
        for column in ("VDU", "VNFC", "node", "providerID"):
            table.add_column(column)
        for vnfc in info["vnfcResourceInfo"]:
            details = vnfc.get("metadata") or {}
            table.add_row(vnfc["vduId"], vnfc["id"], details.get("node", ""), details.get("providerID", ""))
        CONSOLE.print(table)


def main() -> None:
    """The whole demo; a bed that was not there before is removed at the end."""
    started = time.monotonic()
    was_up = bool(bed.environments())
    try:
        bed.up(list(bed.USUAL))
        environment = {name: value for part in bed.environments().values() for name, value in part.items()}
        ledger = Ledger(paths.STATE)
        sample_onboarding.load(Kubernetes(ledger), PACKAGES)
        kubeconfig = Path(environment["KUBECONFIG"])
        with step("Making an account for Tacker on the cluster"):
            connection = vim.connection_info(kubeconfig)
        with Observer(kubeconfig) as observer:
            demo = Demo(Client({**os.environ, **environment}, partial(onboarding, ledger)), connection, observer)
            demo.run()
        demo.report()
    finally:
        if not was_up:
            bed.down()
    CONSOLE.print(f"Done in {time.monotonic() - started:.0f} s.", style="bold green")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted; nothing is left running.")
    except (OperationError, ApiError, preconditions.PreconditionError, bed.BusyError) as error:
        hint = "start the bed before (`python -m functional_tests.testbed up`) and its logs stay for a look"
        sys.exit(f"{error}\nThe logs were in {paths.STATE}; {hint}.")
