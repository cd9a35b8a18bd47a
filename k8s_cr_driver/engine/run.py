# SPDX-License-Identifier: Apache-2.0
"""The operation, event loop and write context that all parts of one run share."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_cr_driver.engine.loop import Loop
from k8s_cr_driver.engine.operation import Operation
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.discovery import Resources
from k8s_cr_driver.ownership.context import WriteContext


@dataclass(frozen=True)
class Run:
    """One run of the engine: its operation, the loop that owns its state, and the context of its writes."""

    operation: Operation
    loop: Loop
    context: WriteContext

    @property
    def client(self) -> Client:
        return self.context.client

    @property
    def resources(self) -> Resources:
        return self.context.client.resources
