# SPDX-License-Identifier: Apache-2.0
"""The time of a prune itself grows linearly: it has one thread, on which everything else of the run waits."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest

from k8s_cr_driver.engine.delete.pruner import Pruner
from k8s_cr_driver.engine.run.loop import Loop, Run, until
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import GroupKind, Object, key_of
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.delete import Removal
from tests.instance import BLUE, config_map, controlled_by

OBJECTS, SECONDS = 8000, 2.5
"""CPU time; all of them took 7 s and more when each object that was gone was looked for among all others."""


class Unsent(Loop):
    """Requests are not sent: only the time of the loop's own thread counts."""

    async def call(self, *_: Any, **__: Any) -> Any:
        return Removal()


def live(number: int, *, owned: bool) -> Object:
    made = config_map(f"map-{number}")
    made["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "1"}
    if owned and number % 100:
        made["metadata"]["ownerReferences"] = [controlled_by(live(number - number % 100, owned=False))]
    return made


class Queued(Loop):
    """Requests wait for a worker, as all but the first few do."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation)
        self.requests: list[Any] = []

    async def call(self, *request: Any, **named: Any) -> Any:
        return await until(lambda resume: self.requests.append((request, named, resume)))


def pruner_of(kind: type[Loop]) -> tuple[Pruner, Loop]:
    resources = Resources([Resource(GroupKind("", "ConfigMap"), "v1", "configmaps", True, frozenset({"list"}))])
    connection = Connection(Endpoint("http://127.0.0.1:9"))
    operation = Operation("test", BLUE, 100)
    context = WriteContext(Client(connection, resources), Inventory(connection, "default", BLUE))
    loop = kind(operation)
    run = Run(operation, loop, context)
    return Pruner(run, None), loop


def test_the_requests_of_a_large_terminate_hold_little_memory() -> None:
    pruner, loop = pruner_of(Queued)
    lives = [live(number, owned=False) for number in range(2000)]
    tracemalloc.start()
    pruner.start(lives)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(loop, Queued) and len(loop.requests) == 2000
    assert most < 2000 * 20_000, "bytes; a copy of all keys in each was 131 MiB"


@pytest.mark.parametrize("owned", [False, True])
def test_thousands_of_objects_are_pruned_in_linear_time(owned: bool) -> None:
    pruner, _ = pruner_of(Unsent)
    lives = [live(number, owned=owned) for number in range(OBJECTS)]
    began = time.process_time()
    pruner.start(lives)
    for one in lives:
        pruner.observe(key_of(one), None)
    assert time.process_time() - began < SECONDS
    assert not pruner.nodes
