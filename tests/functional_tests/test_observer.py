# SPDX-License-Identifier: Apache-2.0
"""The live table of the demos."""

from pathlib import Path

from functional_tests.observer import Observer
from functional_tests.testbed.processes import until
from tests.cli.tool import Tool
from tests.fake_api import FakeApi
from tests.instance import Instance, config_map


def test_the_objects_of_an_instance_are_followed_from_their_creation_to_their_deletion(api: FakeApi, tmp_path: Path):
    instance = Instance(api.url)
    with Observer(Tool(api, tmp_path).kubeconfig) as observer:
        assert observer.summary() == "no objects"
        instance.reconcile([config_map("one"), config_map("two")])
        assert until(lambda: observer.summary() == "2 ready", 10), observer.summary()
        instance.reconcile([])
        assert until(lambda: observer.summary() == "no objects", 10), observer.summary()
