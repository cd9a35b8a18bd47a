"""What every part of a run shares."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_cr_driver.engine.loop import Loop
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resources
from k8s_cr_driver.ownership.write import WriteContext


@dataclass(frozen=True)
class Run:
    """One run of the engine: its operation, the loop that owns its state, and as whom and where it writes."""

    operation: Operation
    loop: Loop
    target: WriteContext

    @property
    def client(self) -> Client:
        return self.target.client

    @property
    def resources(self) -> Resources:
        return self.target.client.resources
