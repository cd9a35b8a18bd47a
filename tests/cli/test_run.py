# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr run`: a package on a cluster without Tacker, by a process of its own."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_cr_driver.cli.run_table import Row, chosen
from k8s_cr_driver.objects.keys import Object, ObjectKey
from tests.cli.packages import changed_vnfd, write_package
from tests.cli.tool import Tool
from tests.fake_api import FakeApi, controllers
from tests.instance import Instance, config_map, crontab, crontab_crd, deployment, obj, state, stateful_set, status, wait_for

HOME = obj("v1", "Namespace", "home")
WAITING = crontab_crd(conditions={"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})


def _product(vnfd: Object) -> Object:
    """The properties of the VNF."""
    found: Object = vnfd["topology_template"]["node_templates"]["VNF"]["properties"]
    return found


class Runner:
    """Runs a package `web` of these objects in processes of its own."""

    def __init__(self, tool: Tool, folder: Path) -> None:
        self._tool, self.folder = tool, folder / "web"

    def write(self, *objects: Object, request: dict[str, Any] | None = None, **package: Any) -> None:
        write_package(self.folder, objects, **package)
        if request is not None:
            (self.folder / "request.json").write_text(json.dumps(request))

    def run(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Its standard output and its standard error; it must end with that exit code."""
        process = self._tool.start("run", str(self.folder), *arguments)
        shown, errors = process.communicate(timeout=300)
        assert (process.returncode, "Traceback" in errors) == (code, False), shown + errors
        return shown, errors

    def down(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        return self.run("--down", *arguments, code=code)


@pytest.fixture
def runner(tool: Tool, tmp_path: Path) -> Runner:
    return Runner(tool, tmp_path)


@pytest.fixture
def waiting(api: FakeApi, runner: Runner) -> Iterator[Runner]:
    """One whose custom resource has no controller."""
    runner.write(HOME, WAITING, config_map("settings", "home"), crontab("nightly", "home"))
    yield runner
    if api.find("ConfigMap", "default", "k8s-cr-driver-web"):
        runner.down()
    assert state(api) == {}


def test_a_package_is_made_changed_and_removed(api: FakeApi, runner: Runner) -> None:
    controllers.run_workloads(api)
    runner.write(HOME, crontab_crd(), crontab("nightly", "home"), config_map("old", "home"), config_map("own", "home", a="1"))
    shown, said = runner.run()
    assert shown.count("  Ready     ") == 5
    assert "  Ready     CronTab.stable.example.com home/nightly\n" in shown
    assert said == "Instance web: sample sample; 5 Ready\n"
    runner.write(HOME, crontab_crd(), crontab("nightly", "home", "0 3 * * *"), config_map("own", "home", a="2"))
    shown, said = runner.run()
    assert "  Deleted   ConfigMap home/old\n" in shown
    assert said == "Instance web: sample sample; 1 Deleted, 4 Ready\n"
    assert api.get("ConfigMap", "home", "own")["data"] == {"a": "2"}
    assert api.get("CronTab", "home", "nightly")["spec"]["cronSpec"] == "0 3 * * *"
    shown, said = runner.down()
    assert "  Deleted   Namespace home\n" in shown
    assert said == "Instance web: removed; 4 Deleted\n"
    assert state(api) == {}


def test_the_instance_names_its_package(api: FakeApi, tool: Tool, runner: Runner) -> None:
    runner.write(config_map("own"))
    with changed_vnfd(runner.folder) as content:
        content["topology_template"]["node_templates"]["VNF"]["properties"] |= {
            "product_name": "A web",
            "software_version": "1.0",
        }
    runner.run()
    [listed] = tool.json("instances")
    assert (listed["id"], listed["operation"]) == ("web", "run of A-web 1.0")
    with changed_vnfd(runner.folder) as content:
        _product(content).update(software_version="2.0")
    assert runner.run()[1] == "Instance web: A-web 2.0, before A-web 1.0; 1 Ready\n"


def test_a_run_of_what_is_there_changes_no_object(api: FakeApi, runner: Runner) -> None:
    runner.write(HOME, crontab_crd(), crontab("nightly", "home"), config_map("own", "home"))
    runner.run()
    places = (("CronTab", "home", "nightly"), ("ConfigMap", "home", "own"), ("Namespace", None, "home"))
    before = [api.get(*place) for place in places]
    assert runner.run()[1] == "Instance web: sample sample; 4 Ready\n"
    assert [api.get(*place) for place in places] == before


def test_counts_are_those_of_the_level(api: FakeApi, runner: Runner) -> None:
    controllers.run_workloads(api)
    package = {"vdus": {"VDU": "web"}, "aspects": ["one"], "levels": {"small": 2, "large": 3}}
    runner.write(deployment(), **package)
    runner.run()
    assert api.get("Deployment", "default", "web")["spec"]["replicas"] == 2
    runner.write(deployment(), request={"flavourId": "simple", "instantiationLevelId": "large"}, **package)
    runner.run()
    assert api.get("Deployment", "default", "web")["spec"]["replicas"] == 3
    runner.write(deployment(), request={"flavourId": "simple", "instantiationLevelId": "huge"}, **package)
    assert "no level 'huge'" in runner.run(code=1)[1]
    runner.write(deployment(), request={"flavourId": "large"}, **package)
    assert "no flavour large; it has simple" in runner.run(code=1)[1]


PARAMETERS = {"A": {"type": "string"}, "COUNT": {"type": "integer", "default": 1}}


@pytest.mark.parametrize(
    ("arguments", "namespace", "data"),
    [
        ([], "theirs", {"a": "asked", "b": "4"}),
        (["--param", "A=given", "--namespace", "blue"], "blue", {"a": "given", "b": "4"}),
        (["--param", "COUNT=5"], "theirs", {"a": "asked", "b": "5"}),
    ],
)
def test_the_request_in_the_package_is_read_and_options_come_first(
    api: FakeApi, runner: Runner, arguments: list[str], namespace: str, data: dict[str, str]
) -> None:
    for name in ("theirs", "blue"):
        api.put(obj("v1", "Namespace", name))
    request = {"additionalParams": {"namespace": "theirs", "parameters": {"A": "asked", "COUNT": 4}}}
    runner.write(config_map("own", "", a="${A}", b="x${COUNT}"), parameters=PARAMETERS, request=request)
    runner.run(*arguments)
    assert api.get("ConfigMap", namespace, "own")["data"] == {"a": data["a"], "b": f"x{data['b']}"}


@pytest.mark.parametrize(
    ("objects", "package", "arguments", "said"),
    [
        ([config_map("own", a="${A}")], {"parameters": PARAMETERS}, [], "A"),
        ([obj("v1", "ConfigMap", "Own")], {}, [], "Own"),
        ([crontab_crd(), obj("stable.example.com/v1", "CronTab", "a", spec={"cronSpek": ""})], {}, [], "did you mean cronSpec"),
        ([config_map("own")], {"vdus": {"VDU": "web"}}, [], "VDU VDU is no object"),
        ([config_map("own")], {"request": {"additionalParams": {"wait-timeout": "soon"}}}, [], "wait-timeout: give seconds"),
        ([], {}, [], "no manifests"),
        ([config_map("own")], {}, ["--file", "nosuch.yaml"], "nosuch.yaml"),
    ],
)
def test_a_wrong_package_is_reported_before_anything_is_written(
    api: FakeApi, runner: Runner, objects: list[Object], package: dict[str, Any], arguments: list[str], said: str
) -> None:
    runner.write(*objects, **package)
    if not objects:
        (runner.folder / "Files/kubernetes/all.yaml").unlink()
    assert said in runner.run(*arguments, code=1)[1]
    assert [request.path for request in api.requests.writes if "selfsubject" not in request.path] == []


def test_what_is_not_ready_in_time_is_named_and_stays_until_down(api: FakeApi, waiting: Runner) -> None:
    shown, said = waiting.run("--timeout", "10", code=1)
    assert "  Waiting   CronTab.stable.example.com home/nightly: " in shown
    assert re.search(r"1 of 4 objects not ready after \d+ s:\nCronTab.stable.example.com home/nightly: Waiting", said)
    assert "\n4 objects of instance web on the cluster. Go on with the same command, or remove it: k8s-cr run " in said
    assert said.endswith(f"{waiting.folder} --down\n")
    api.edit("CronTab", "home", "nightly", lambda live: live.update(status=status()))
    assert waiting.run()[1] == "Instance web: sample sample; 4 Ready\n"


def test_ctrl_c_ends_it_as_an_operation_ends(api: FakeApi, tool: Tool, waiting: Runner) -> None:
    process = tool.start("run", str(waiting.folder), "--instance", "web")
    assert process.stdout
    while "nightly" not in process.stdout.readline():
        assert process.poll() is None
    assert tool.interrupt(process) == 130
    said = process.communicate()[1]
    assert "Interrupted\n4 objects of instance web on the cluster." in said
    assert said.endswith(f"k8s-cr run {waiting.folder} --instance web --down\n")
    assert api.get("ConfigMap", "default", "k8s-cr-driver-web")["metadata"]["annotations"]["k8s-cr-driver/released"] == "true"


def test_a_process_that_was_killed_is_gone_on_with(api: FakeApi, tool: Tool, waiting: Runner) -> None:
    process = tool.start("run", str(waiting.folder))
    wait_for(api, lambda: bool(api.requests.select("PATCH", path="/crontabs/nightly")))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    api.edit("CronTab", "home", "nightly", lambda live: live.update(status=status()))
    assert "4 Ready" in waiting.run()[1]


def test_a_removal_that_is_not_over_in_time_is_gone_on_with(api: FakeApi, runner: Runner) -> None:
    runner.write(config_map("held"), config_map("own"))
    runner.run()
    api.edit("ConfigMap", "default", "held", lambda live: live["metadata"].update(finalizers=["example.com/hold"]))
    assert "example.com/hold" in runner.down("--timeout", "10", code=1)[1]
    api.release("ConfigMap", "default", "held")
    runner.down()
    assert state(api) == {}


def test_what_a_refused_first_run_has_created_is_deleted(api: FakeApi, runner: Runner) -> None:
    runner.write(config_map("own"), config_map("theirs", "nosuch"))
    said = runner.run(code=3)[1]
    assert "Add the namespace to the package" in said
    assert "on the cluster. Go on" not in said
    assert state(api) == {}


@pytest.mark.parametrize("arguments", [[], ["--down"]])
def test_an_instance_of_tacker_is_refused(api: FakeApi, runner: Runner, arguments: list[str]) -> None:
    Instance(api.url, "blue").reconcile([config_map("theirs")])
    runner.write(config_map("own"))
    before = state(api)
    assert "was not made by `k8s-cr run`; use Tacker's client" in runner.run("--instance", "blue", *arguments, code=2)[1]
    assert state(api) == before


def test_another_product_in_a_folder_of_that_name_needs_its_name(api: FakeApi, runner: Runner) -> None:
    runner.write(config_map("own"))
    runner.run()
    with changed_vnfd(runner.folder) as content:
        _product(content).update(product_name="Another")
    before = state(api)
    assert "is of the product sample, the package of Another. Give --instance NAME" in runner.run(code=2)[1]
    assert state(api) == before
    runner.run("--instance", "web")
    assert "belongs to VNF instance web" in runner.run("--instance", "another", code=3)[1]


def test_an_instance_whose_inventory_was_deleted_is_recovered_first(api: FakeApi, tool: Tool, runner: Runner) -> None:
    runner.write(HOME, crontab_crd(), crontab("nightly", "home"), config_map("own", "home"))
    runner.run()
    api.delete("ConfigMap", "default", "k8s-cr-driver-web")
    before = state(api)
    runner.write(HOME, crontab_crd(), crontab("nightly", "home", "0 3 * * *"), config_map("theirs", "nosuch"))
    for said in (runner.run(code=2)[1], runner.down(code=2)[1]):
        assert f"If somebody has deleted it: k8s-cr recover web {runner.folder}" in said
        assert state(api) == before
    tool.run("recover", "web", str(runner.folder), "--yes")
    assert [one["operation"] for one in tool.json("instances")] == ["recovery of sample sample"]
    runner.write(HOME, crontab_crd(), crontab("nightly", "home", "0 3 * * *"))
    assert runner.run()[1] == "Instance web: sample sample; 1 Deleted, 3 Ready\n"
    runner.down()
    assert state(api) == {}


def test_a_second_down_of_a_package_of_which_a_request_names_some_files(runner: Runner) -> None:
    runner.write(config_map("own"))
    manifests = runner.folder / "Files" / "kubernetes"
    [first] = manifests.iterdir()
    (manifests / "fewer.yaml").write_text(first.read_text())
    assert "nothing is left" in runner.down()[1]


def test_what_has_a_copied_label_is_no_object_of_a_lost_instance(api: FakeApi, runner: Runner) -> None:
    copy = config_map("copy")
    copy["metadata"]["labels"] = {"tacker_vnf_instance_id": "web"}
    api.put(copy)
    runner.write(config_map("own"))
    assert "nothing is left" in runner.down()[1]
    runner.run()
    runner.down()
    assert api.names("ConfigMap", "default") == ["copy"]


def test_there_is_nothing_to_remove(api: FakeApi, runner: Runner) -> None:
    runner.write(config_map("own"))
    assert runner.down()[1] == "Instance web: there is none on this cluster, so nothing is left\n"
    assert api.requests.writes == []


def test_claims_and_descendants_go_too(api: FakeApi, runner: Runner) -> None:
    controllers.run_workloads(api)
    runner.write(stateful_set("db"))
    runner.run()
    assert api.names("PersistentVolumeClaim", "default") == ["data-db-0"]
    runner.down()
    assert state(api) == {}


@pytest.mark.parametrize("name", ["", "Blue", "a b", "-a", "a" * 64, "../x"])
def test_a_name_that_is_none_is_a_usage_error(tool: Tool, runner: Runner, name: str) -> None:
    runner.write(config_map("own"))
    assert "small letters, digits and hyphens" in tool.run("run", str(runner.folder), f"--instance={name}", code=2).stderr


def test_a_cluster_that_cannot_be_reached_is_reported(api: FakeApi, runner: Runner) -> None:
    runner.write(config_map("own"))
    api.close()
    assert "Connection refused" in runner.run(code=3)[1]


def test_a_terminal_has_a_table(api: FakeApi, tool: Tool, waiting: Runner) -> None:
    with tool.on_terminal("run", str(waiting.folder)) as (process, until):
        until("Waiting")
        assert "home/nightly" in until("CronTab")
        assert tool.interrupt(process) == 130


def row(name: str, state: str, since: float = 0.0) -> Row:
    return Row(ObjectKey("", "ConfigMap", "default", name), state, "", since)


@pytest.mark.parametrize(
    ("rows", "limit", "expected"),
    [
        ([("a", "Ready"), ("b", "Waiting")], 2, "ab"),
        ([("a", "Ready"), ("b", "Waiting"), ("c", "Ready")], 2, "bc"),
        ([("a", "Ready"), ("b", "Ready"), ("c", "Failed"), ("d", "Waiting")], 1, "c"),
        ([("a", "Deleted"), ("b", "Pending"), ("c", "Deleting"), ("d", "Ready")], 2, "bc"),
        ([("a", "Suspended"), ("b", "Released"), ("c", "Waiting")], 1, "c"),
    ],
)
def test_a_small_screen_shows_what_is_not_ready_first(rows: list[tuple[str, str]], limit: int, expected: str) -> None:
    every = [row(name, state, since) for since, (name, state) in enumerate(rows)]
    assert "".join(one.key.name for one in chosen(every, limit)) == expected
