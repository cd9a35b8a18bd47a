# SPDX-License-Identifier: Apache-2.0
"""One VNF instance on the driver's own engine, without Tacker: for what Tacker's API has no words for, and for speed."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import ObjectKey
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session

from .objects import Object
from .testbed.processes import until

INVENTORIES = "default"
PATIENCE = 180.0
"""Seconds of an operation: the controller of Namespaces needs minutes while many others are deleted."""


class Engine:
    """`endpoint` is where the next operation goes. Errors are the driver's own, with the text that Tacker's users read."""

    def __init__(self, endpoint: Endpoint, namespace: str, inventories: str = INVENTORIES) -> None:
        """`inventories` is the namespace of the instance's inventory."""
        self.endpoint, self.id = endpoint, str(uuid.uuid4())
        self._inventories = inventories
        self._options = Options(namespace=namespace)
        self._heard: list[tuple[str, str, str]] = []

    def reconcile(self, objects: Sequence[Object], seconds: float = PATIENCE, **session: Any) -> None:
        """Instantiates, changes, or, with no objects, terminates."""
        operation = Operation("test", self.id, seconds, progress=self._hear)
        with Session(self.endpoint, self._options, operation, inventory_namespace=self._inventories, **session) as run:
            run.reconcile(run.place([dict(one) for one in objects]), prune=Prune(), first=bool(objects))

    def terminate(self) -> None:
        self.reconcile([])

    def start(self, objects: Sequence[Object], seconds: float = PATIENCE) -> Future[None]:
        """`reconcile` in a thread of its own."""
        future: Future[None] = Future()

        def run() -> None:
            try:
                future.set_result(self.reconcile(objects, seconds))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def wait_until_reported(self, name: str, state: str) -> None:
        """Until a run has reported that the object of that name is in that state."""
        assert until(lambda: any(heard[:2] == (name, state) for heard in list(self._heard)), 30), self._heard

    def _hear(self, key: ObjectKey, state: str, message: str) -> None:
        self._heard.append((key.name, state, message))
