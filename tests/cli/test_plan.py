# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr plan`, and the operation that follows it."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.engine.run.reconcile import Prune
from k8s_cr_driver.errors import InvalidRequest, Refused
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.cli.packages import write_package
from tests.cli.tool import Tool
from tests.fake_api import FakeApi
from tests.instance import BLUE, Instance, config_map, crontab, crontab_crd, kept, obj, state

Planner = Callable[..., dict[str, Any]]

NEW = [obj("v1", "Namespace", "home"), config_map("a", "home"), crontab("one"), crontab_crd()]


@pytest.fixture
def planner(api: FakeApi, tool: Tool, tmp_path: Path) -> Planner:
    def run(objects: list[Object], *arguments: str, code: int = 0) -> dict[str, Any]:
        before = state(api)
        found = tool.json("plan", str(write_package(tmp_path / "package", copy.deepcopy(objects))), *arguments, code=code)
        assert state(api) == before
        return dict(found)

    return run


def follow(api: FakeApi, objects: list[Object], digest: str, operation: str = "first") -> None:
    started = Operation(operation, BLUE, 30)
    with Session(Endpoint(api.url), Options(plan=digest), started, inventory_namespace="default") as session:
        session.reconcile(session.place(copy.deepcopy(objects)), prune=Prune())


def actions(found: dict[str, Any]) -> dict[str, str]:
    return {one["object"]: one["action"] for one in found["actions"]}


def test_a_new_instance_follows_its_plan(api: FakeApi, planner: Planner) -> None:
    found = planner(NEW)
    assert set(actions(found).values()) == {"create"}
    follow(api, NEW, found["digest"])
    assert api.names("CronTab") == ["one"]


def test_a_plan_is_of_the_request_that_the_package_has(api: FakeApi, tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "package", [config_map("a")])
    (folder / "Files/kubernetes/more.yaml").write_text(yaml.safe_dump(config_map("b")))
    [first, more] = sorted(path.name for path in (folder / "Files/kubernetes").iterdir())
    wanted = {"lcm-kubernetes-def-files": [f"Files/kubernetes/{first}"], "namespace": "default"}
    (folder / "request.json").write_text(json.dumps({"flavourId": "simple", "additionalParams": wanted}))
    assert actions(tool.json("plan", str(folder))) == {"ConfigMap default/a": "create"}
    both = tool.json("plan", str(folder), *(f"--file=Files/kubernetes/{name}" for name in (first, more)))
    assert actions(both).keys() == {"ConfigMap default/a", "ConfigMap default/b"}


@pytest.mark.parametrize("others", [[], [NEW[0], config_map("a", "home", a="2"), *NEW[2:]], [*NEW, config_map("b")]])
def test_what_was_not_approved_is_not_begun(api: FakeApi, planner: Planner, others: list[Object]) -> None:
    digest = planner(others or [config_map("c")])["digest"]
    before = state(api)
    with pytest.raises(Refused, match=r"(?s)plan is now [0-9a-f]{32}\. Nothing was written.*create  ConfigMap home/a"):
        follow(api, NEW, digest)
    assert state(api) == before


def test_a_change_follows_its_plan_unless_the_cluster_has_changed(api: FakeApi, planner: Planner) -> None:
    Instance(api.url).reconcile([config_map("same"), config_map("changed"), config_map("gone"), kept(config_map("kept"))])
    after = [config_map("same"), config_map("changed", a="2"), config_map("new")]
    found = planner(after, "--instance", BLUE)
    expected = {"same": "leave", "changed": "apply", "new": "create", "gone": "delete", "kept": "release"}
    assert actions(found) == {f"ConfigMap default/{name}": action for name, action in expected.items()}
    api.edit("ConfigMap", "default", "same", lambda live: live["data"].update(a="theirs"))
    with pytest.raises(Refused, match="ConfigMap default/same"):
        follow(api, after, found["digest"])
    assert api.names("ConfigMap")[:2] == ["changed", "gone"]
    api.edit("ConfigMap", "default", "same", lambda live: live["data"].update(a="1"))
    follow(api, after, planner(after, "--instance", BLUE)["digest"])
    assert "gone" not in api.names("ConfigMap")


def test_a_retry_goes_on_with_what_it_has_begun(api: FakeApi, planner: Planner) -> None:
    digest = planner(NEW)["digest"]
    follow(api, NEW, digest)
    follow(api, NEW, digest)
    with pytest.raises(Refused):
        follow(api, NEW, digest, operation="second")


def test_a_plan_that_the_cluster_refuses_ends_with_1(api: FakeApi, planner: Planner) -> None:
    api.put(config_map("a"))
    found = planner([config_map("a")], code=1)
    assert actions(found) == {"ConfigMap default/a": "refuse"}


@pytest.mark.parametrize("given", ["", "abc", 7, "g" * 32, ["a" * 32]])
def test_a_plan_is_named_by_its_digest(given: object) -> None:
    with pytest.raises(InvalidRequest, match="additionalParams plan: give the 32 digits that k8s-cr plan prints"):
        Options().updated({"plan": given})
    assert "plan" not in Options().updated({"plan": "0" * 32}).as_params()
