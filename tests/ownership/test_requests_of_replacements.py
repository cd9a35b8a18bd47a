# SPDX-License-Identifier: Apache-2.0
"""Requests of a change that creates many objects again."""

from __future__ import annotations

import re

from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, obj
from tests.ownership.holders import binding

MANY = 20


def test_objects_that_are_created_again_share_the_reads_of_namespaces(api: FakeApi) -> None:
    inside = [config_map("a", f"n{number}") for number in range(MANY)]
    for one in inside:
        api.put(obj("v1", "Namespace", one["metadata"]["namespace"]), manager="operator")
    blue = Instance(api.url)
    blue.reconcile([*(binding("view", f"b{number}") for number in range(MANY)), *inside])
    api.requests.clear()
    blue.reconcile([*(binding("edit", f"b{number}") for number in range(MANY)), *inside], prune=False)
    reads = [one for one in api.requests if one.method == "GET" and re.search(r"/namespaces/n\d+$", one.path)]
    assert len(reads) < MANY * MANY / 2
