# SPDX-License-Identifier: Apache-2.0
"""The dry run before a heal and a scale leaves no trace, neither on the cluster nor in what the run knows of its objects."""

from __future__ import annotations

import copy

import pytest

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import reconcile
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.discovery import discover
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import preflight
from k8s_cr_driver.writes.context import WriteContext
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map, obj


@pytest.mark.parametrize("original", [obj("v1", "Namespace", "users"), config_map("users")], ids=["Namespace", "ConfigMap"])
def test_an_object_that_was_a_copy_of_a_created_one_stays_adopted(api: FakeApi, original: Object) -> None:
    made = copy.deepcopy(original)
    made["metadata"]["annotations"] = {"k8s-cr-driver/made": "true"}
    api.put(made, manager="kubectl-create")
    blue = Instance(api.url, adopt=True)
    blue.reconcile([original])
    with Connection(blue.endpoint) as connection:
        context = WriteContext(Client(connection, discover(connection)), Inventory(connection, "default", blue.id))
        desired = [resource_for(copy.deepcopy(original))]
        preflight.check(context, desired)
        reconcile(Operation("heal", blue.id, 10), context, desired, prune=None)
    blue.terminate()
    assert "users" in api.names(original["kind"])
