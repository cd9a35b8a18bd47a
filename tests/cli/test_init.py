# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr init`: what is released as manifests becomes a package that Tacker accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.objects.keys import Object
from tests.cli.onboarding import onboard
from tests.cli.tool import Tool
from tests.instance import config_map, crontab, crontab_crd, deployment, obj, stateful_set


def written(path: Path, *objects: Object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(objects))
    return path


def counted(replicas: int | str, name: str = "web") -> Object:
    made = deployment(name)
    return {**made, "spec": {**made["spec"], "replicas": replicas}}


def vnfd(folder: Path) -> dict[str, Any]:
    [path] = (folder / "Definitions").iterdir()
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return content


def manifests(folder: Path) -> list[Object]:
    request = json.loads((folder / "request.json").read_text())
    files: Sequence[str] = request["additionalParams"]["lcm-kubernetes-def-files"]
    return [one for file in files for one in yaml.safe_load_all((folder / file).read_text())]


def test_a_file_of_manifests_becomes_a_package_that_tacker_accepts(tool: Tool, tmp_path: Path) -> None:
    tool.kubeconfig.unlink()
    source = written(tmp_path / "all.yaml", crontab_crd(), crontab("one"), counted(3), config_map("settings"))
    tool.run("init", str(tmp_path / "web"), "--from", str(source))
    tool.run("package", str(tmp_path / "web"), "-o", str(tmp_path / "web.csar"))
    vnf, flavours, artifacts = onboard(tmp_path / "web.csar", tmp_path)
    assert (vnf["product_name"], [one["flavour_id"] for one in flavours]) == ("web", ["simple"])
    assert flavours[0]["instantiation_levels"]["levels"]["default"]["scale_info"]["web"] == {"scale_level": 2}
    assert "Files/kubernetes/all.yaml" in {one["Source"] for one in artifacts}


RULES = "# of ours\nhealthCheckExprs:\n- {apiVersion: stable.example.com/v1, kind: CronTab, current: 'has(status)'}\n"


@pytest.mark.parametrize(("name", "named"), [("health.yaml", []), ("rules/own.yaml", ["Files/kubernetes/rules/own.yaml"])])
def test_rules_among_manifests_are_those_of_the_package(tool: Tool, tmp_path: Path, name: str, named: list[str]) -> None:
    written(tmp_path / "in/all.yaml", crontab_crd(phase={"type": "string"}), crontab("one"))
    (tmp_path / "in" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "in" / name).write_text(RULES)
    shown = tool.run("init", str(tmp_path / "p"), "--from", str(tmp_path / "in")).stdout
    assert (tmp_path / "p/Files/kubernetes" / name).read_text() == RULES
    assert "kept" in shown and "readiness rules for kinds" in shown
    request = json.loads((tmp_path / "p/request.json").read_text())
    assert request["additionalParams"]["lcm-kubernetes-def-files"] == ["Files/kubernetes/all.yaml", *named]
    subject = written(tmp_path / "one.yaml", {**crontab("one"), "status": {"a": 1}})
    rules = tool.json("health", str(subject), "--rules", str(tmp_path / "p/Files/kubernetes" / name))
    assert rules[0]["state"] == "Ready"


def test_the_files_of_a_folder_stay_as_they_are(tool: Tool, tmp_path: Path) -> None:
    text = "# what for\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}  # its name\n"
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/sub/a.YAML").write_text(text)
    (tmp_path / "in/values.yaml").write_text("replicas: 3\n")
    (tmp_path / "in/b.json").write_text(json.dumps(config_map("b")))
    shown = tool.run("init", str(tmp_path / "p"), "--from", str(tmp_path / "in")).stdout
    assert (tmp_path / "p/Files/kubernetes/sub/a.yaml").read_text() == text
    assert [one["metadata"]["name"] for one in manifests(tmp_path / "p")] == ["b", "a"]
    assert ["values.yaml", "left out", "has no Kubernetes objects"] in [line.split("  ") for line in shown.splitlines()]


def test_the_standard_input_is_read(tool: Tool, tmp_path: Path) -> None:
    text = yaml.safe_dump_all([crontab_crd(), crontab("one")])
    tool.run("init", str(tmp_path / "p"), "--from", "-", input=text)
    assert [path.name for path in sorted((tmp_path / "p/Files/kubernetes").iterdir())] == ["crds.yaml", "p.yaml"]


def test_nothing_is_overwritten(tool: Tool, tmp_path: Path) -> None:
    mine = written(tmp_path / "p/mine.yaml", config_map("a"))
    assert "is not empty" in tool.run("init", str(tmp_path / "p"), "--from", str(mine), code=2).stderr
    assert [path.name for path in (tmp_path / "p").iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: [", "in.yaml, document 1"),
        ("kind: ConfigMap\nmetadata: {name: a}", "in.yaml, document 1: apiVersion: is missing"),
        ("a: 1", "has no Kubernetes objects"),
        (RULES, "has no Kubernetes objects"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", "metadata.generateName: is not possible"),
    ],
)
def test_what_is_no_manifest_is_refused_before_anything_is_written(
    tool: Tool, tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "in.yaml").write_text(text)
    assert expected in tool.run("init", str(tmp_path / "p"), "--from", str(tmp_path / "in.yaml"), code=1).stderr
    assert not (tmp_path / "p").exists()


def test_an_object_that_is_written_twice_is_refused(tool: Tool, tmp_path: Path) -> None:
    for name in ("in/a.yaml", "in/b.yaml"):
        written(tmp_path / name, config_map("same"))
    shown = tool.run("init", str(tmp_path / "p"), "--from", str(tmp_path / "in"), code=1).stderr
    assert "ConfigMap default/same is written twice: in a.yaml and in b.yaml" in shown


def test_a_namespace_of_its_own_is_part_of_the_package(tool: Tool, tmp_path: Path) -> None:
    source = written(tmp_path / "in.yaml", {**config_map("a"), "metadata": {"name": "a"}})
    tool.run("init", str(tmp_path / "p"), "--from", str(source), "--namespace", "blue")
    assert [one["kind"] for one in manifests(tmp_path / "p")] == ["ConfigMap", "Namespace"]
    assert json.loads((tmp_path / "p/request.json").read_text())["additionalParams"]["namespace"] == "blue"


def test_each_object_with_a_count_is_a_vdu_that_is_found(tool: Tool, tmp_path: Path) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "big"}
    hpa = obj("autoscaling/v2", "HorizontalPodAutoscaler", "big", spec={"maxReplicas": 3, "scaleTargetRef": target})
    same = [deployment("same"), stateful_set("same")]
    source = written(tmp_path / "in.yaml", *same, deployment("big"), hpa, stateful_set("big-1"), counted(0, "none"))
    tool.run("init", str(tmp_path / "p"), "--from", str(source))
    topology = vnfd(tmp_path / "p")["topology_template"]
    assert set(topology["node_templates"]) == {"VNF", "same", "same-statefulset", "big", "big-1", "none"}
    aspects = topology["policies"][0]["scaling_aspects"]["properties"]["aspects"]
    assert set(aspects) == {"same", "same-statefulset", "big-1", "none"}
    marks = {one["metadata"]["name"]: one["metadata"].get("annotations") for one in manifests(tmp_path / "p")}
    assert marks["big"] is None
    assert marks["same"] == {"k8s-cr-driver/vdu": "same-statefulset"}


def test_references_in_fields_become_parameters_and_those_of_scripts_stay(tool: Tool, tmp_path: Path) -> None:
    script = config_map("script", run="echo ${HOME} ${NAME}")
    source = written(tmp_path / "in.yaml", counted("${COPIES}", "${NAME}-web"), script, config_map("${NAME:=x}-b"))
    shown = tool.run("init", str(tmp_path / "p"), "--from", str(source)).stdout
    declared = vnfd(tmp_path / "p")["data_types"]["p.Parameters"]["properties"]
    assert {name: (one["type"], one.get("required", True)) for name, one in declared.items()} == {
        "NAME": ("string", True),
        "COPIES": ("integer", True),
    }
    assert manifests(tmp_path / "p")[1]["data"]["run"] == "echo $${HOME} ${NAME}"
    assert "--param HOME makes it one" in shown
    request = json.loads((tmp_path / "p/request.json").read_text())
    assert request["additionalParams"]["parameters"] == {"NAME": None, "COPIES": None}


SECRET = {
    **obj("v1", "Secret", "${NAME}-cloud"),
    "data": {"clouds.yaml": "${CLOUDS_B64}"},
    "stringData": {"cacert": "${CA}"},
}


def test_a_secret_of_references_alone_is_left_out(tool: Tool, tmp_path: Path) -> None:
    source = written(tmp_path / "in.yaml", config_map("${NAME}"), SECRET)
    shown = tool.run("init", str(tmp_path / "p"), "--from", str(source)).stdout
    assert [one["kind"] for one in manifests(tmp_path / "p")] == ["ConfigMap"]
    [line] = [line for line in shown.splitlines() if line.startswith("Secret ${NAME}-cloud")]
    assert re.search("left out +no package has credentials: create it on the cluster; --param CLOUDS_B64 keeps it", line)


@pytest.mark.parametrize(
    ("objects", "wanted"),
    [([SECRET], ["CLOUDS_B64", "CA"]), ([{**SECRET, "data": {"a": "YQ=="}}], []), ([obj("v1", "Secret", "empty")], [])],
)
def test_a_secret_of_a_wanted_parameter_or_a_value_of_its_own_stays(
    tool: Tool, tmp_path: Path, objects: list[Object], wanted: list[str]
) -> None:
    source = written(tmp_path / "in.yaml", *objects)
    tool.run("init", str(tmp_path / "p"), "--from", str(source), *(f"--param={name}" for name in wanted))
    assert [one["kind"] for one in manifests(tmp_path / "p")] == ["Secret"]


def test_a_script_has_a_parameter_that_is_asked_for(tool: Tool, tmp_path: Path) -> None:
    source = written(tmp_path / "in.yaml", config_map("script", run="echo ${HOME} ${WHO:=me}"))
    tool.run("init", str(tmp_path / "none"), "--from", str(source))
    assert (tmp_path / "none/Files/kubernetes/in.yaml").read_text() == source.read_text()
    tool.run("init", str(tmp_path / "p"), "--from", str(source), "--param", "WHO")
    assert manifests(tmp_path / "p")[0]["data"]["run"] == "echo $${HOME} ${WHO:=me}"
    shown = tool.run("init", str(tmp_path / "q"), "--from", str(source), "--param", "WHOM", code=1).stderr
    assert "no manifest has ${WHOM}" in shown
