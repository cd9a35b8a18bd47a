# SPDX-License-Identifier: Apache-2.0
"""All that is wrong with a package in one run, with places and codes, in the forms that people and programs read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.cli.explain import CODES
from tests.cli.packages import changed_vnfd, write_package
from tests.cli.tool import Tool
from tests.instance import config_map, crontab, crontab_crd, deployment, obj

BAD = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {a: 1}
---
- a list
---
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: one}
spec:
  cronSpek: x
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_package(tmp_path / "p", [crontab_crd(), deployment()], vdus={"Web": "web", "Db": "db"})
    (made / "Files/kubernetes/bad.yaml").write_text(BAD)
    (made / "Files/kubernetes/worse.yaml").write_text("kind: [\n")
    return made


def found(tool: Tool, folder: Path, *options: str, code: int = 1) -> list[dict[str, Any]]:
    return list(tool.json("validate", str(folder), *options, code=code)["findings"])


def test_all_findings_in_one_run_with_their_places(tool: Tool, folder: Path) -> None:
    shown = [(one["code"], one["file"], one["document"], one["line"], one["field"]) for one in found(tool, folder)]
    assert shown == [
        ("manifest", "Files/kubernetes/bad.yaml", 1, 4, "data.a"),
        ("manifest", "Files/kubernetes/bad.yaml", 2, 6, ""),
        ("schema", "Files/kubernetes/bad.yaml", 3, 12, "spec.cronSpek"),
        ("manifest", "Files/kubernetes/worse.yaml", 1, 2, ""),
    ]


def test_message_and_remedy_are_apart(tool: Tool, folder: Path) -> None:
    [one] = [one for one in found(tool, folder) if one["code"] == "schema"]
    assert one["message"].endswith("spec.cronSpek: unknown field, which the API server would drop")
    assert one["remedy"] == "did you mean cronSpec?"


def test_equal_findings_of_many_objects_are_one_line(tool: Tool, tmp_path: Path) -> None:
    wrong = [obj("stable.example.com/v1", "CronTab", f"c{number}", spec={"cronSpek": "x"}) for number in range(48)]
    folder = write_package(tmp_path / "p", [crontab_crd(), *wrong])
    [line] = [line for line in tool.run("validate", str(folder), code=1).stdout.splitlines() if "cronSpek" in line]
    assert "(and 47 other places)" in line
    assert line.endswith("[schema] Files/kubernetes/all.yaml:21:3") or "[schema] Files/kubernetes/all.yaml:" in line
    assert len(found(tool, folder)) == 48


def test_annotations_for_github(tool: Tool, folder: Path) -> None:
    lines = tool.run("validate", str(folder), "--format", "github", code=1).stdout.splitlines()
    assert lines[0].startswith(
        "::error file=Files/kubernetes/bad.yaml,line=4,col=8,title=manifest::Files/kubernetes/bad.yaml, "
    )


def test_sarif(tool: Tool, folder: Path) -> None:
    content = json.loads(tool.run("validate", str(folder), "--format", "sarif", code=1).stdout)
    [run] = content["runs"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(CODES)
    [schema] = [one for one in run["results"] if one["ruleId"] == "schema"]
    assert schema["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "Files/kubernetes/bad.yaml"},
        "region": {"startLine": 12, "startColumn": 3},
    }


def test_codes_are_explained(tool: Tool, folder: Path) -> None:
    assert {one["code"] for one in found(tool, folder)} <= CODES.keys()
    assert tool.run("explain", "schema").stdout.startswith("schema: A field that the API server refuses")
    assert len(tool.run("explain").stdout.splitlines()) == len(CODES)
    assert "did you mean schema?" in tool.run("explain", "shema", code=2).stderr


def test_variants_of_which_a_request_chooses_one(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [deployment(), config_map("same", a="1")], vdus={"Web": "web"})
    other = [
        config_map("same", a="2"),
        obj("apps/v1", "StatefulSet", "web", spec={**deployment()["spec"], "serviceName": "web"}),
    ]
    (folder / "Files/kubernetes/other.yaml").write_text(yaml.safe_dump_all(other))
    shown = tool.json("validate", str(folder))
    assert shown["problems"] == []
    assert [one["code"] for one in shown["findings"]] == ["alternatives"]


def test_what_is_wrong_in_one_variant_is_found(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [crontab_crd(), crontab("one")])
    (folder / "Files/kubernetes/other.yaml").write_text(
        yaml.safe_dump(obj("stable.example.com/v1", "CronTab", "one", spec={"cronSpek": "x"}))
    )
    [crd, variant] = (folder / "Files/kubernetes/all.yaml").read_text().split("---\n")
    (folder / "Files/kubernetes/all.yaml").write_text(crd)
    (folder / "Files/kubernetes/one.yaml").write_text(variant)
    problems = tool.json("validate", str(folder), code=1)["problems"]
    assert ["spec.cronSpek: unknown field" in problem for problem in problems] == [True], problems


def test_requests_of_the_package_name_the_sets(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    for name in ("one", "two"):
        (folder / f"Files/kubernetes/{name}.yaml").write_text(yaml.safe_dump(config_map("same", of=name)))
        files = ["Files/kubernetes/all.yaml", f"Files/kubernetes/{name}.yaml"]
        request = {"flavourId": "simple", "additionalParams": {"lcm-kubernetes-def-files": files}}
        (folder / f"request-{name}.json").write_text(json.dumps(request))
    assert found(tool, folder, code=0) == []
    (folder / "Files/kubernetes/three.yaml").write_text(yaml.safe_dump(config_map("three")))
    assert [one["code"] for one in found(tool, folder, code=0)] == ["unread"]


def test_a_chart_beside_the_manifests_is_named_and_not_read(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    chart = folder / "Files/kubernetes/chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: chart\n")
    (chart / "templates/a.yaml").write_text("kind: {{ .Values.kind }}\n")
    [warning] = tool.json("validate", str(folder))["warnings"]
    assert warning.startswith("Files/kubernetes/chart: is a Helm chart, which is not applied")


@pytest.mark.parametrize("name", ["more.YAML", "more.Yml", "more.JSON"])
def test_suffixes_in_capitals_are_manifests(tool: Tool, tmp_path: Path, name: str) -> None:
    folder = write_package(tmp_path / "p", [config_map("a")])
    (folder / f"Files/kubernetes/{name}").write_text(json.dumps(config_map("a")))
    [one] = tool.json("validate", str(folder))["findings"]
    assert one["code"] == "alternatives"
    assert name in one["message"]


def start_with_one(folder: Path) -> None:
    with changed_vnfd(folder) as content:
        delta = {"type": "tosca.policies.nfv.VduInitialDelta", "properties": {"initial_delta": {"number_of_instances": 1}}}
        content["topology_template"]["policies"].append({"initial": {**delta, "targets": ["Web"]}})


def test_a_count_that_a_level_replaces_is_a_warning(tool: Tool, tmp_path: Path) -> None:
    counted = deployment()
    counted["spec"]["replicas"] = "${COUNT}"
    parameters = {"COUNT": {"type": "integer", "default": 2}}
    folder = write_package(
        tmp_path / "p", [counted], vdus={"Web": "web"}, aspects=["web"], levels={"small": 1}, parameters=parameters
    )
    start_with_one(folder)
    [warning] = [one for one in tool.json("validate", str(folder))["findings"] if one["code"] == "count"]
    assert "is a parameter, and an instantiation level gives the count in its place" in warning["message"]


@pytest.mark.parametrize(
    ("request_body", "problem"),
    [
        ({"flavourId": "simple", "additionalParams": {"parameters": {"COUNT": 2}}}, ""),
        ({"flavourId": "simpel"}, "flavourId: 'simpel' is no flavour of the package; did you mean simple?"),
        ({"flavourId": "simple", "additionalParams": {"name-space": "a"}}, "there is no such key; write namespace"),
        ({"flavourId": "simple", "additionalParams": {"parameters": {"COUNTS": 2}}}, "did you mean COUNT?"),
        ({"flavourId": "simple", "additionalParams": {"parameters": {"COUNT": "2"}}}, "must be of type integer"),
        ({"flavourId": "simple", "additionalParams": {"lcm-kubernetes-def-files": ["Files/kubernetes/b.yaml"]}}, "b.yaml"),
    ],
)
def test_a_request_is_checked_with_the_package(tool: Tool, tmp_path: Path, request_body: dict[str, Any], problem: str) -> None:
    parameters = {"COUNT": {"type": "integer", "default": 1}}
    folder = write_package(tmp_path / "p", [config_map("a", count="${COUNT}")], parameters=parameters)
    (tmp_path / "body.json").write_text(json.dumps(request_body))
    shown = tool.json("validate", str(folder), "--request", str(tmp_path / "body.json"), code=bool(problem))["problems"]
    assert (problem in shown[0]) if problem else not shown


def test_a_key_that_a_mapping_has_twice(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [deployment()], vdus={"Web": "web"})
    path = folder / "Definitions/vnfd.yaml"
    path.write_text(path.read_text() + "description: one\ndescription: two\n")
    [one] = tool.json("validate", str(folder), code=1)["findings"]
    last = len(path.read_text().splitlines())
    assert (one["code"], one["file"], one["line"]) == ("vnfd", "Definitions/vnfd.yaml", last)
    assert f"the key description is in this mapping already, in line {last - 1}" in one["message"]


def test_a_level_outside_of_the_profile(tool: Tool, tmp_path: Path) -> None:
    folder = write_package(tmp_path / "p", [deployment()], vdus={"Web": "web"}, aspects=["web"], levels={"small": 10})
    start_with_one(folder)
    warning, *_ = tool.json("validate", str(folder))["warnings"]
    assert "VDU Web: has 10 instances at level small, and its vdu_profile allows 0 to 9" in warning
