# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr` beside Tacker: it foretells what an operation does, shows what there is, and removes what Tacker forgot."""

import json
import os
import pty
import select
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..cluster import Cluster
from ..objects import Place, config_map, deployment, make, namespace
from ..packages import Package, path
from ..testbed import bed as testbed
from ..testbed.processes import until
from ..vnf import Vnf

PLACE = Place("tool")

CANARY = "Y2FuYXJ5LTVmMWQ5YzBiN2U="
SECRET = make("v1", "Secret", "door", "desk", data={"key": CANARY})
PARTS = [namespace("desk"), PLACE.crd("Gauge", status=True), deployment("web", namespace="desk"), SECRET]
CHANGED = {**SECRET, "data": {"key": "YW5vdGhlcg=="}}

PACKAGE = Package(
    {
        "all.yaml": [*PARTS, config_map("own", "desk", a="1"), config_map("old", "desk", a="1")],
        "next.yaml": [*PARTS[:3], CHANGED, config_map("own", "desk", a="2"), PLACE.custom("Gauge", "new", "desk", unit="V")],
        "fewer.yaml": [*PARTS, config_map("own", "desk", a="2")],
        "late.yaml": [PLACE.crd("Gauge", status=True), PLACE.custom("Gauge", "late"), config_map("early", a="1")],
    }
)


class Tool:
    """`k8s-cr` as it was installed, with the bed's kubeconfig and PACKAGE."""

    def __init__(self, kubeconfig: str, csar: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
        self._program = str(Path(sys.executable).with_name("k8s-cr"))
        self.csar = str(csar)

    def run(self, *arguments: str, code: int = 0, answer: str = "") -> str:
        """What a command prints; it must end with that exit code."""
        result = subprocess.run(
            [self._program, *arguments], env=self._environment, input=answer, capture_output=True, text=True, timeout=120
        )
        assert result.returncode == code, result.stdout + result.stderr
        assert CANARY not in result.stdout + result.stderr
        return result.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "-o", "json", code=code))

    def diff(self, file: str, *arguments: str, code: int = 1) -> dict[str, Any]:
        """Outcomes by their objects."""
        shown = self.json("diff", self.csar, "--file", path(file), *arguments, code=code)
        return {one["object"]: one for one in shown}

    def watched(self, *arguments: str) -> Iterator[str]:
        """What a command shows on a terminal, as it grows."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([self._program, *arguments], env=self._environment, stdout=theirs)
        os.close(theirs)
        try:
            while select.select([ours], [], [], 60)[0]:
                yield os.read(ours, 65536).decode(errors="replace")
        finally:
            process.kill()
            process.wait()
            os.close(ours)


@pytest.fixture(scope="module")
def tool(bed: testbed.Environment, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return Tool(bed["KUBECONFIG"], PACKAGE.make(tmp_path_factory.mktemp("tool") / "tool.csar"))


@pytest.fixture
def made(vnf: Vnf) -> Vnf:
    vnf.instantiate("all.yaml")
    return vnf


@pytest.fixture
def instance(place: Place, cluster: Cluster) -> Iterator[str]:
    """The name of an instance without Tacker. A test that has passed leaves nothing of it."""
    name = str(uuid.uuid4())
    yield name
    left = cluster.leftovers([name])
    cluster.wipe([name])
    assert left == []


def verdicts(outcomes: dict[str, Any]) -> dict[str, str]:
    return {name: one["verdict"] for name, one in outcomes.items()}


def test_diff_predicts_an_instantiate_and_finds_nothing_after_it(tool: Tool, vnf: Vnf, cluster: Cluster):
    before = cluster.contents(PLACE)
    foretold = tool.diff("all.yaml")
    assert set(verdicts(foretold).values()) == {"created"}
    assert cluster.contents(PLACE) == before and cluster.get("Namespace", "desk") is None
    vnf.instantiate("all.yaml")
    assert len(cluster.of(vnf.id)) >= len(foretold)
    after = tool.diff("all.yaml", "--instance", vnf.id, code=0)
    assert verdicts(after) == dict.fromkeys(foretold, "unchanged")


def test_diff_shows_changes_conflicts_and_what_goes_and_no_secret(tool: Tool, made: Vnf, cluster: Cluster):
    cluster.change("ConfigMap", "own", "desk", data={"a": "theirs"})
    shown = tool.diff("next.yaml", "--instance", made.id)
    assert verdicts(shown) == {
        "CustomResourceDefinition.apiextensions.k8s.io gauges.tool.example.com": "unchanged",
        "Namespace desk": "unchanged",
        "Deployment.apps desk/web": "unchanged",
        "Secret desk/door": "changed",
        "ConfigMap desk/own": "conflict",
        "Gauge.tool.example.com desk/new": "created",
        "ConfigMap desk/old": "deleted",
    }
    assert shown["Secret desk/door"]["changes"] == [{"field": "data.key", "before": "(hidden)", "after": "(hidden)"}]
    assert "a-user" in shown["ConfigMap desk/own"]["message"] and ".data.a" in shown["ConfigMap desk/own"]["message"]


def test_instances_and_tree_show_what_an_instance_has_down_to_its_pods(tool: Tool, made: Vnf):
    [listed] = [one for one in tool.json("instances") if one["id"] == made.id]
    assert listed["objects"] == {
        "ConfigMap": 2, "CustomResourceDefinition.apiextensions.k8s.io": 1, "Deployment.apps": 1, "Namespace": 1, "Secret": 1
    }  # fmt: skip
    lines = tool.run("tree", made.id).splitlines()
    web = next(number for number, line in enumerate(lines) if "Deployment.apps desk/web" in line)
    assert "Ready" in lines[web]
    assert lines[web + 1].startswith("  ReplicaSet.apps desk/web-")
    assert lines[web + 2].startswith("    Pod desk/web-")
    replica_set = lines[web + 1].split()[1]
    assert f'"Deployment.apps desk/web" -> "ReplicaSet.apps {replica_set}"' in tool.run("tree", made.id, "-o", "dot")


def test_a_tree_that_is_watched_shows_an_operation_while_it_runs(tool: Tool, vnf: Vnf, cluster: Cluster):
    operation = vnf.begin_instantiate("late.yaml")
    assert until(lambda: cluster.leftovers([vnf.id]), 30)
    shown = ""
    for part in tool.watched("tree", vnf.id, "--watch"):
        shown += part
        if "tool/late" in shown and "Waiting" in shown:
            break
    cluster.set_status("Gauge", "late", PLACE.name, PLACE.version, conditions=[{"type": "Ready", "status": "True"}])
    vnf.wait(operation)
    assert "tool/late" in shown


def test_purge_removes_what_an_operation_that_was_failed_has_left(tool: Tool, vnf: Vnf, cluster: Cluster):
    vnf.refusal("late.yaml", wait_timeout=5)
    left = cluster.of(vnf.id)
    assert "ConfigMap tool/early" in left
    shown = tool.run("purge", vnf.id, code=1, answer="n\n")
    assert "ConfigMap tool/early" in shown and "Gauge.tool.example.com tool/late" in shown
    assert cluster.of(vnf.id) == left
    tool.run("purge", vnf.id, answer="y\n")
    assert cluster.leftovers([vnf.id]) == []
    assert vnf.id not in [one["id"] for one in tool.json("instances")]
    tool.run("tree", vnf.id, code=2)


def test_run_makes_changes_and_removes_an_instance_without_tacker(tool: Tool, instance: str, cluster: Cluster):
    before = cluster.contents(PLACE)
    command = ("run", tool.csar, "--instance", instance, "--namespace", PLACE.name)
    shown = tool.run(*command, "--file", path("all.yaml"))
    assert "  Ready     Deployment.apps desk/web" in shown
    assert cluster.get("ConfigMap", "old", "desk")
    [listed] = [one for one in tool.json("instances") if one["id"] == instance]
    assert listed["operation"] == "run of Test 1.0"
    assert "  Deleted   ConfigMap desk/old" in tool.run(*command, "--file", path("fewer.yaml"))
    own = cluster.get("ConfigMap", "own", "desk")
    assert own is not None and own["data"] == {"a": "2"}
    assert cluster.get("ConfigMap", "old", "desk") is None
    assert "  Deleted   Namespace desk" in tool.run(*command, "--down")
    assert (cluster.leftovers([instance]), cluster.contents(PLACE)) == ([], before)
    tool.run(*command, "--down")


def test_a_run_that_is_not_ready_in_time_is_taken_down(tool: Tool, instance: str, cluster: Cluster):
    command = ("run", tool.csar, "--instance", instance, "--namespace", PLACE.name)
    shown = tool.run(*command, "--file", path("late.yaml"), "--timeout", "5", code=1)
    assert "  Waiting   Gauge.tool.example.com tool/late" in shown
    assert "ConfigMap tool/early" in cluster.leftovers([instance])
    tool.run(*command, "--down")
    assert cluster.leftovers([instance]) == []
