# SPDX-License-Identifier: Apache-2.0
"""What every demo has: Tacker's API, VNF instances by the names that people know, steps that are timed and watched."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table

from functional_tests.client import Body, Client
from functional_tests.credentials.receiver import Receiver
from functional_tests.observer import Observer
from functional_tests.sample_onboarding import Sample
from functional_tests.vnf import Vnf

CONSOLE = Console(highlight=False)
PATIENCE = 900.0
"""Seconds for one operation."""


class View(Protocol):
    """What is shown while a step is done."""

    place: str
    """Of what `summary` tells."""

    def summary(self) -> str: ...

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult: ...


@dataclass
class Steps:
    observer: View
    _seconds: list[tuple[str, float]] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Its time is in the report; meanwhile the view is shown, and at its end the summary of it."""
        CONSOLE.print(f"{what} ...")
        started = time.monotonic()
        with Live(self.observer, console=CONSOLE, transient=True, refresh_per_second=4) if CONSOLE.is_terminal else (
            contextlib.nullcontext()
        ):
            yield
        seconds = time.monotonic() - started
        self._seconds.append((what, seconds))
        CONSOLE.print(f"  done in {seconds:.1f} s; {self.observer.place}: {self.observer.summary()}", style="green")

    def report(self) -> None:
        table = Table(title="The demo in seconds", title_justify="left")
        table.add_column("step")
        table.add_column("seconds", justify="right")
        for what, seconds in self._seconds:
            table.add_row(what, f"{seconds:.1f}")
        CONSOLE.print(table)


@dataclass(kw_only=True)
class Stage(Steps):
    """With VNF instances whose objects are on one cluster."""

    observer: Observer
    client: Client
    connection: Body
    receiver: Receiver
    samples: dict[str, Sample] = field(default_factory=dict)
    vnfs: dict[str, Vnf] = field(default_factory=dict)

    def begin(self, name: str, package: str, **params: Any) -> str:
        """Creates an instance and begins to instantiate it; `params` as those of `Vnf.begin_instantiate`."""
        sample = self.samples[package]
        vnf = Vnf(self.client, self.connection, self.client.create(sample.vnfd_id, name)["id"])
        vnf.patience = PATIENCE
        self.vnfs[name], self.observer.names[vnf.id] = vnf, name
        return vnf.begin_instantiate(*sample.files, **{"wait_timeout": PATIENCE, **params})

    def instantiate(self, name: str, package: str, **params: Any) -> None:
        operation = self.begin(name, package, **params)
        self.vnfs[name].wait(operation)

    def change(self, name: str, package: str, **parameters: Any) -> None:
        """To the same package with other parameters."""
        sample = self.samples[package]
        self.vnfs[name].change(sample.vnfd_id, *sample.files, wait_timeout=PATIENCE, parameters=parameters)

    def terminate(self, *names: str) -> None:
        """All at once."""
        operations = {name: self.vnfs[name].begin_terminate() for name in names}
        for name, operation in operations.items():
            self.vnfs[name].wait(operation)
            self.client.delete(self.vnfs.pop(name).id)

    def show_vnfcs(self, name: str) -> None:
        table = Table(title=f"VNFCs of {name}, as Tacker lists them", title_justify="left")
        for column in ("VDU", "VNFC", "node", "version", "providerID"):
            table.add_column(column)
        for vnfc in self.vnfs[name].shown()["instantiatedVnfInfo"]["vnfcResourceInfo"]:
            details = vnfc.get("metadata") or {}
            table.add_row(vnfc["vduId"], vnfc["id"], *(details.get(key, "") for key in ("node", "version", "providerID")))
        CONSOLE.print(table)

    def show_received(self) -> None:
        names = [path.name for path in self.receiver.kubeconfigs]
        CONSOLE.print(f"Received: {', '.join(names) or 'nothing, all are removed'}")
