# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr recover`: lists what has the label of an instance, asks, and writes the inventory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.packages import write_package
from tests.cli.tool import Tool
from tests.fake_api import FakeApi
from tests.instance import BLUE, GREEN, Instance, config_map, crontab, crontab_crd, obj, replaced, state

INVENTORY = f"k8s-cr-driver-{BLUE}"
SET = [obj("v1", "Namespace", "home"), crontab_crd(), crontab("one"), config_map("own"), config_map("inner", "home")]


@pytest.fixture
def package(tmp_path: Path) -> str:
    return str(write_package(tmp_path / "package", SET))


@pytest.fixture
def lost(api: FakeApi) -> Instance:
    blue = Instance(api.url)
    blue.reconcile(SET)
    api.delete("ConfigMap", "default", INVENTORY)
    return blue


def test_an_inventory_is_written_with_all_that_has_the_label(api: FakeApi, tool: Tool, lost: Instance, package: str) -> None:
    result = tool.run("recover", BLUE, package, input="y\n")
    assert result.stdout.splitlines() == [
        "member  ConfigMap default/own",
        "member  ConfigMap home/inner",
        "member  Namespace home",
        "member  CustomResourceDefinition.apiextensions.k8s.io crontabs.stable.example.com",
        "member  CronTab.stable.example.com default/one",
    ]
    assert "5 objects" in result.stderr
    Instance(api.url).terminate()
    assert state(api) == {}


def test_a_no_writes_nothing(api: FakeApi, tool: Tool, lost: Instance, package: str) -> None:
    api.requests.clear()
    assert "Nothing was written" in tool.run("recover", BLUE, package, input="n\n", code=1).stderr
    assert api.requests.writes == []


def test_what_others_have_labelled_is_left(api: FakeApi, tool: Tool, lost: Instance, package: str) -> None:
    copy = config_map("copy")
    copy["metadata"]["labels"] = {"tacker_vnf_instance_id": BLUE}
    api.put(copy)
    assert "left    ConfigMap default/copy (others" in tool.run("recover", BLUE, package, "--yes").stdout
    Instance(api.url).terminate()
    assert api.names("ConfigMap", "default") == ["copy"]


def test_an_adopted_object_is_released_at_the_end(api: FakeApi, tool: Tool, package: str) -> None:
    api.put(config_map("own"))
    Instance(api.url, adopt=True, force=True).reconcile(SET)
    api.delete("ConfigMap", "default", INVENTORY)
    tool.run("recover", BLUE, package, "--yes")
    Instance(api.url).terminate()
    assert api.names("ConfigMap", "default") == ["own"]


def test_an_inventory_that_is_there_is_not_written(api: FakeApi, tool: Tool, package: str) -> None:
    Instance(api.url).reconcile(SET)
    api.requests.clear()
    assert "has its inventory, in namespace default" in tool.run("recover", BLUE, package, "--yes", code=2).stderr
    assert api.requests.writes == []


def test_an_instance_without_objects_has_nothing_to_recover(api: FakeApi, tool: Tool, package: str) -> None:
    assert "has the label of VNF instance" in tool.run("recover", GREEN, package, "--yes", code=2).stderr
    assert api.names("ConfigMap", "default") == []


def test_the_error_of_a_lost_inventory_names_the_command(api: FakeApi, tool: Tool, lost: Instance) -> None:
    replaced(api, "ConfigMap", "default", "own")
    assert "k8s-cr recover INSTANCE PACKAGE" in tool.run("purge", BLUE, code=2).stderr
