# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr validate` and `package` warn of rules that can be read and do not say what their author means."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.objects.keys import Object
from tests.cli.packages import write_package
from tests.cli.tool import Tool
from tests.instance import CONDITIONS, config_map, crontab, crontab_crd

ENTRY = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "current": "status.conditions.exists(c, c.type == 'Up')"}
RULES = "Files/kubernetes/health.yaml"


def package(tmp_path: Path, rules: Any, *objects: Object, file: str = RULES) -> Path:
    folder = write_package(tmp_path / "p", objects or [crontab_crd(**CONDITIONS), crontab("one")])
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(yaml.safe_dump(rules))
    if file != RULES:
        vnfd = folder / "Definitions/vnfd.yaml"
        content = yaml.safe_load(vnfd.read_text())
        artifact = {"type": "tosca.artifacts.File", "file": f"../{file}"}
        content["topology_template"]["node_templates"]["VNF"]["artifacts"] = {"health-rules": artifact}
        vnfd.write_text(yaml.safe_dump(content))
    return folder


def entries(**changed: Any) -> dict[str, Any]:
    return {"healthCheckExprs": [ENTRY | changed]}


def warnings(tool: Tool, folder: Path) -> list[str]:
    found: list[str] = tool.json("validate", str(folder))["warnings"]
    return found


@pytest.mark.parametrize("file", [RULES, "Files/rules/own.yaml"])
@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (entries(), ""),
        (
            entries(kind="Crontab"),
            "[0] (Crontab.stable.example.com): there are rules for it, and no object is of that kind; did you mean CronTab.",
        ),
        (entries(apiVersion="example.com/v1"), "no object is of that kind; did you mean CronTab.stable.example.com?"),
        (entries(kind="Frob"), "[0] (Frob.stable.example.com): there are rules for it, and no object is of that kind"),
        (
            entries(current="status.condtions.size() > 0"),
            "[0] (CronTab.stable.example.com).current: column 8: status.condtions: there",
        ),
        (
            entries(failed="spec.cronSpek == ''"),
            "[0] (CronTab.stable.example.com).failed: column 6: spec.cronSpek: there is no such",
        ),
        ({**entries(), "healthChecks": []}, "healthChecks: is not known beside healthCheckExprs"),
    ],
)
def test_rules_that_are_not_meant_so(tool: Tool, tmp_path: Path, rules: Any, words: str, file: str) -> None:
    found = warnings(tool, package(tmp_path, rules, file=file))
    assert len(found) == bool(words) and all(f"{file}, document 1: " in one and words in one for one in found)


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        ("ready-when", "cel: status.conditons.size() > 0", "ready-when: column 13: status.conditons: there is no such field"),
        ("failed-when", "jsonpath={.status.phse}=Lost", "failed-when: status.phse: there is no such field"),
        ("ready-when", "condition=Anything", ""),
        ("ready-when", "stored", ""),
    ],
)
@pytest.mark.parametrize("where", [0, 1])
def test_annotations_that_are_not_meant_so(
    tool: Tool, tmp_path: Path, annotation: str, value: str, words: str, where: int
) -> None:
    objects = [crontab_crd(**CONDITIONS), crontab("one")]
    objects[where]["metadata"]["annotations"] = {f"k8s-cr-driver/{annotation}": value}
    found = warnings(tool, package(tmp_path, entries(), *objects))
    assert len(found) == bool(words) and all(words in one for one in found)


def test_package_is_written_with_a_warning(tool: Tool, tmp_path: Path) -> None:
    folder = package(tmp_path, entries(kind="Frob"))
    shown = tool.run("package", str(folder), "-o", str(tmp_path / "p.csar")).output
    assert (
        "warning: Files/kubernetes/health.yaml, document 1: healthCheckExprs[0] (Frob.stable.example.com): there"
        in " ".join(shown.split())
    )
    assert zipfile.is_zipfile(tmp_path / "p.csar")


@pytest.mark.parametrize("key", ["healthChecks", "healthCheckExpr", "rules"])
def test_wrong_top_key_is_named_with_the_right_one(tool: Tool, tmp_path: Path, key: str) -> None:
    [problem] = tool.json("validate", str(package(tmp_path, {key: [ENTRY]})), code=1)["problems"]
    assert f"{RULES}, document 1: has neither kind nor healthCheckExprs, and {key} is there" in problem


@pytest.mark.parametrize("file", [RULES, "Files/rules/own.yaml"])
def test_rules_of_a_package_without_manifests_are_checked(tool: Tool, tmp_path: Path, file: str) -> None:
    folder = package(tmp_path, entries(current="status."), file=file)
    (folder / "Files/kubernetes/all.yaml").unlink()
    [problem] = tool.json("validate", str(folder), code=1)["problems"]
    assert f"{file}, document 1: " in problem and "column 8: a name is expected" in problem
    (folder / file).write_text(yaml.safe_dump(entries()))
    assert any("(CronTab.stable.example.com): there are rules for it, and no object" in one for one in warnings(tool, folder))


def test_kind_whose_crd_the_package_does_not_bring(tool: Tool, tmp_path: Path) -> None:
    found = warnings(tool, package(tmp_path, entries(current="statu.any == 1"), crontab("one"), config_map("c")))
    entry = f"{RULES}, document 1: healthCheckExprs[0] (CronTab.stable.example.com).current"
    assert [one for one in found if "CustomResourceDefinition" not in one] == [
        f"{entry}: column 1: statu: there is no such field in the kind; did you mean status?"
    ]


OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "failed": "data.broken == 'yes'"}


@pytest.mark.parametrize(
    ("changed", "severity", "line"),
    [
        ({"current": "status."}, "error", 5),
        ({"current": "status.conditins.size() > 0"}, "warning", 5),
        ({"kind": "X"}, "warning", 5),
    ],
)
def test_a_mistake_has_the_line_of_its_entry(tool: Tool, tmp_path: Path, changed: Any, severity: str, line: int) -> None:
    folder = package(tmp_path, {}, crontab_crd(**CONDITIONS), crontab("one"), config_map("c"))
    entry = {**ENTRY, **changed}
    rules = ["healthCheckExprs:", *(f"- {{{one}}}" for one in _flow(OTHER, OTHER | {"kind": "Secret"}, entry))]
    (folder / RULES).write_text("# of the author\n" + "\n".join(rules))
    found = tool.json("validate", str(folder), code=int(severity == "error"))["findings"]
    begin = f"{RULES}, document 1: healthCheckExprs[2]"
    [place] = [(one["severity"], one["line"]) for one in found if one["message"].startswith(begin)]
    assert place == (severity, line)


def _flow(*entries: Any) -> list[str]:
    return [", ".join(f'{name}: "{value}"' for name, value in one.items()) for one in entries]


def test_rules_that_no_request_of_the_package_names_are_read_with_its_manifests(tool: Tool, tmp_path: Path) -> None:
    folder = package(tmp_path, entries())
    request = {"flavourId": "simple", "additionalParams": {"lcm-kubernetes-def-files": ["Files/kubernetes/all.yaml"]}}
    (folder / "request.json").write_text(json.dumps(request))
    assert warnings(tool, folder) == []
    (folder / RULES).write_text(yaml.safe_dump(entries(current="status.condtions.size() > 0")))
    [only] = warnings(tool, folder)
    assert "status.condtions: there is no such field" in only


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        (
            {"kind": "Crontab"},
            "(Crontab.stable.example.com): there are rules for it, and no object is of that kind; did you mean",
        ),
        (
            {"current": "status.condtions.size() > 0"},
            "(CronTab.stable.example.com).current: column 8: status.condtions: there is",
        ),
    ],
)
def test_rules_of_a_request_are_judged_in_the_same_way(tool: Tool, tmp_path: Path, changed: Any, words: str) -> None:
    folder = write_package(tmp_path / "p", [crontab_crd(**CONDITIONS), crontab("one")])
    (tmp_path / "r.json").write_text(json.dumps({"additionalParams": {"health-rules": [ENTRY | changed]}}))
    found = tool.json("validate", str(folder), "--request", str(tmp_path / "r.json"))["warnings"]
    assert [one.startswith("additionalParams health-rules: [0] " + words) for one in found] == [True] * bool(words)
