# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr health` says what an operation would say of an object, and which rules it asked."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.objects.rule_texts import check
from tests.cli.tool import Tool
from tests.fake_api import FakeApi
from tests.instance import CONDITIONS, crontab, crontab_crd

ENTRY = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "current": "status.phase == 'Odd'"}
RULES = {"healthCheckExprs": [ENTRY]}


def tab(name: str = "one", phase: str = "Odd", **annotations: str) -> dict[str, Any]:
    found = crontab(name)
    found["metadata"]["annotations"] = {f"k8s-cr-driver/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {**found, "status": {"phase": phase}}


def write(folder: Path, *objects: Any, name: str = "objects.yaml") -> str:
    (folder / name).write_text(yaml.safe_dump_all(objects))
    return str(folder / name)


def test_verdict_names_what_decided(tool: Tool, tmp_path: Path) -> None:
    ruled = tab("ruled", ready_when="jsonpath={.status.phase}=Odd")
    path = write(tmp_path, tab("plain"), ruled, {"kind": "List", "apiVersion": "v1", "items": [tab("listed", "Ready")]})
    plain, by_rule, listed = tool.json("health", path, code=1)
    assert [one["state"] for one in (plain, by_rule, listed)] == ["Waiting", "Ready", "Ready"]
    assert (by_rule["source"], by_rule["field"]) == ("annotation of the object", "status.phase")
    assert (listed["source"], listed["field"]) == ("rule for all kinds", "status.phase")
    assert plain["waits"] and not listed["waits"]
    assert [one["rule"] for one in by_rule["asked"]] == ["ready: jsonpath={.status.phase}=Odd", "the status"]


@pytest.mark.parametrize("where", ["file", "folder", "beside"])
def test_author_tries_rules_without_a_cluster(tool: Tool, tmp_path: Path, where: str) -> None:
    (tmp_path / "rules").mkdir()
    rules = write(tmp_path / "rules", RULES, name="r.yaml")
    documents = [tab("good"), tab("bad", "Even"), *([RULES] if where == "beside" else [])]
    options = {"file": ["--rules", rules], "folder": ["--rules", str(tmp_path / "rules")], "beside": []}[where]
    good, bad = tool.json("health", write(tmp_path, *documents), *options, code=1)
    assert (good["state"], bad["state"], bad["reason"]) == ("Ready", "Waiting", "RuleNotMet")
    assert bad["asked"][0]["said"] == "not met; status.phase is Even"


def test_crd_counts_in_the_file_and_in_another(tool: Tool, tmp_path: Path) -> None:
    definition = crontab_crd(**CONDITIONS)
    definition["metadata"]["annotations"] = {"k8s-cr-driver/ready-when": "stored"}
    definition["status"] = {"conditions": [{"type": kind, "status": "True"} for kind in ("Established", "NamesAccepted")]}
    both = tool.json("health", write(tmp_path, definition, tab()))
    [alone] = tool.json("health", write(tmp_path, tab()), "--crd", write(tmp_path, definition, name="crd.yaml"))
    assert both[1]["source"] == alone["source"] == "annotation of the CRD"


def test_standard_input_and_explanation(tool: Tool) -> None:
    shown = tool.run("health", "-", "--explain", input=yaml.safe_dump(tab(failed_when="cel: status.phase == 'Odd'")), code=1)
    assert shown.output.splitlines()[1].split()[:2] == ["Failed", "CronTab.stable.example.com"]
    assert "annotation of the object: failed: cel: status.phase == 'Odd': met; status.phase: it is true" in shown.output
    assert "rule for all kinds: the status: Waiting" in shown.output


VERDICT = {"object", "state", "waits", "trouble", "reason", "message", "source", "field", "line", "asked"}


def test_keys_of_a_verdict_are_those_of_the_page(tool: Tool, tmp_path: Path) -> None:
    [found] = tool.json("health", write(tmp_path, tab(phase="Ready")))
    assert found.keys() == VERDICT and found["asked"][0].keys() == {"source", "rule", "said", "decides"}
    table = PAGE.read_text().partition("   * - Key")[2].partition("What a rule cannot do")[0]
    keys = {key for keys in re.findall(r"   \* - (.+)", table) for key in re.findall("``(.+?)``", keys)}
    assert keys == VERDICT


def test_the_rule_that_decided_is_marked(tool: Tool, tmp_path: Path) -> None:
    subject = tab(suspended_when="cel: status.phase == 'Even'", failed_when="condition=Broken", ready_when="condition=Up")
    path = write(tmp_path, subject, tab("other", failed_when="condition=Broken"), RULES)
    waits, by_kind = tool.json("health", path, code=1)
    assert [one["decides"] for one in waits["asked"]] == [False, False, True, False, False]
    assert [one["source"] for one in waits["asked"][-2:]] == ["rules of the package", "rule for all kinds"]
    assert [one["decides"] for one in by_kind["asked"]] == [False, False, True]
    shown = tool.run("health", path, "--explain", code=1).output
    assert "\n  * annotation of the object: ready: condition=Up: not met; " in shown
    assert "\n    annotation of the object: failed: condition=Broken: not met; " in shown
    assert "*" not in tool.run("health", path, code=1).output


@pytest.mark.parametrize("name", ["ready_when", "failed_when"])
def test_verdict_that_does_not_count_says_so(tool: Tool, tmp_path: Path, name: str) -> None:
    subject = tab(**{name: "jsonpath={.status.phase}=Odd"})
    subject["metadata"]["generation"], subject["status"]["observedGeneration"] = 2, 1
    path = write(tmp_path, subject)
    [found] = tool.json("health", path, code=1)
    counts = "met, but not counted: the status is older than the change"
    assert found["message"].startswith(f"jsonpath={{.status.phase}}=Odd: {counts}: the controller has seen generation 1")
    freshness, rule, _ = found["asked"]
    assert freshness["rule"] == "freshness" and freshness["decides"] and not rule["decides"]
    assert rule["said"] == f"{counts}; status.phase: it is Odd"
    assert counts in tool.run("health", path, code=1).output
    subject["metadata"]["annotations"]["k8s-cr-driver/ignore-generation"] = "true"
    [found] = tool.json("health", write(tmp_path, subject), code=0 if name == "ready_when" else 1)
    assert found["state"] == {"ready_when": "Ready", "failed_when": "Failed"}[name] and "counted" not in str(found)


def test_line_of_a_status_that_objects_is_shown(tool: Tool, tmp_path: Path) -> None:
    path = write(tmp_path, tab(phase="Stopped"))
    [found] = tool.json("health", path, code=1)
    assert found["line"] == "k8s-cr-driver/ready-when: jsonpath={.status.phase}=Stopped"
    assert f"annotate it with {found['line']}" in " ".join(tool.run("health", path, code=1).output.split())


def test_object_of_the_cluster(tool: Tool, api: FakeApi) -> None:
    api.put(crontab_crd(phase={"type": "string"}, **CONDITIONS))
    live = tab(ready_when="jsonpath={.status.phase}=Odd")
    api.put(live)
    api.set_status("CronTab", "default", "one", live["status"])
    for kind in ("CronTab", "crontabs", "crontab.stable.example.com"):
        [verdict] = tool.json("health", f"{kind}/one")
        assert (verdict["state"], verdict["source"]) == ("Ready", "annotation of the object")
    assert "the cluster serves no kind of that name" in tool.run("health", "Frob/one", code=1).output
    assert "no such file, and it is no KIND/NAME" in tool.run("health", "absent.yaml", code=2).output


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("kind: x", "is no object; it needs apiVersion, kind and metadata.name"),
        ("{kind: List, items: [{kind: x}]}", "items[0]: is no object; it needs apiVersion, kind and metadata.name"),
        ("{kind: List, items: [1]}", "items[0]: is no object"),
        ("{apiVersion: a/v1, kind: A, metadata: {name: a, annotations: [1]}}", "annotations: is a list, must be a mapping"),
        (b"\xff\xfe", "x.yaml: is no text of UTF-8"),
        ("{", "document 1"),
        (json.dumps({"healthCheckExprs": [{**ENTRY, "current": "status."}]}), "column 8: a name is expected"),
    ],
)
def test_file_that_cannot_be_read_is_one_error(tool: Tool, tmp_path: Path, document: str | bytes, problem: str) -> None:
    (tmp_path / "x.yaml").write_bytes(document if isinstance(document, bytes) else document.encode())
    assert problem in tool.run("health", str(tmp_path / "x.yaml"), code=1).output


UNREAD = [
    ({"ready_when": "cel: self.status.phase = 'Ready'"}, "column 24: '=' is not understood"),
    ({"failed_when": "cel: ("}, "failed-when: must be a rule: 'cel: (': column 7: a value is expected"),
    ({"ready_when": "condition="}, "column 11: the name of a condition"),
    ({"ready_when": "jsonpath={.status.phase"}, "'jsonpath={.status.phase': column 24: } is expected"),
    ({"ready_when": "Ready"}, "'Ready': write condition=NAME"),
    ({"readywhen": "stored"}, "k8s-cr-driver/readywhen: is unknown; write k8s-cr-driver/ready-when"),
    ({"ready_whn": "stored"}, "is unknown; write k8s-cr-driver/ready-when"),
    ({"ignore_generation": "yes"}, "ignore-generation: must be true or false"),
    ({"ready_when": 1}, "ready-when: is an integer, must be text; write the value in quotes"),
]


@pytest.mark.parametrize(("annotations", "problem"), UNREAD)
@pytest.mark.parametrize("where", ["object", "crd"])
def test_annotation_that_cannot_be_read_is_an_error(
    tool: Tool, tmp_path: Path, annotations: dict[str, Any], problem: str, where: str
) -> None:
    subject, definition = tab(phase="Ready"), crontab_crd(**CONDITIONS)
    spoiled = {"object": subject, "crd": definition}[where]
    spoiled["metadata"]["annotations"] = tab(**annotations)["metadata"]["annotations"]
    crd = write(tmp_path, definition, name="crd.yaml")
    shown = tool.run("health", write(tmp_path, subject), "--crd", crd, code=1).output
    assert problem in shown and shown.count("\n") <= 2
    assert spoiled["metadata"]["name"] in shown


def test_marks_that_the_driver_sets_are_no_mistake(tool: Tool, tmp_path: Path) -> None:
    marked = tab(phase="Ready", package_rules="{}", made="x", released_by="y", replace="false")
    tool.run("health", write(tmp_path, marked))


@pytest.mark.parametrize("artifact", ["", "../Files/rules/own.yaml"])
def test_rules_of_a_package_are_found_in_its_folder(tool: Tool, tmp_path: Path, artifact: str) -> None:
    package = tmp_path / "package"
    for name in ("TOSCA-Metadata", "Definitions", "Files/kubernetes", "Files/rules"):
        (package / name).mkdir(parents=True)
    (package / "TOSCA-Metadata/TOSCA.meta").write_text("")
    subject = write(tmp_path, tab())
    assert "no such file" in tool.run("health", subject, "--rules", str(package), code=1).output
    node = {"VNF": {"artifacts": {"health-rules": artifact}}} if artifact else {}
    write(package / "Definitions", {"topology_template": {"node_templates": node}}, name="vnfd.yaml")
    write(package / "Files/kubernetes", tab(), name="tab.yaml")
    write(package / ("Files/rules" if artifact else "Files/kubernetes"), RULES, name="own.yaml" if artifact else "health.yaml")
    [verdict] = tool.json("health", subject, "--rules", str(package))
    assert verdict["source"] == f"rules in {'own' if artifact else 'health'}.yaml"


@pytest.mark.parametrize("where", ["folder", "file", "nested"])
def test_rules_that_are_none_are_an_error(tool: Tool, tmp_path: Path, where: str) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (tmp_path / "empty.yaml").write_text("---\n")
    if where == "nested":
        (rules / "inner").mkdir()
        write(rules / "inner", RULES)
    path = tmp_path / "empty.yaml" if where == "file" else rules
    shown = tool.run("health", write(tmp_path, tab(phase="Ready")), "--rules", str(path), code=1).output
    assert f"no rules in {path}; name a file with healthCheckExprs" in " ".join(shown.split())


def test_rules_without_an_object_are_an_error(tool: Tool, tmp_path: Path) -> None:
    path = write(tmp_path, RULES)
    assert f"no objects in {path}" in tool.run("health", path, code=1).output
    assert "no objects in -" in tool.run("health", "-", code=1, input="").output


PAGE = Path(__file__).parents[2] / "doc/source/concepts/ready.rst"


def test_every_rule_of_the_page_can_be_read() -> None:
    text = " ".join(PAGE.read_text().split())
    written = re.findall(r"(k8s-cr-driver/)?((?:ready|failed)-when): (stored|\".+?\"(?= |``))", text)
    assert len(written) >= 12
    for _, name, value in written:
        assert check(f"k8s-cr-driver/{name}", value.strip('"')) == ""


def test_file_of_rules_of_the_page_can_be_read(tool: Tool, tmp_path: Path) -> None:
    [written] = re.findall(r"\n   healthCheckExprs:\n(?:     .*\n)+", PAGE.read_text())
    (tmp_path / "health.yaml").write_text(textwrap.dedent(written))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    states = [
        {**widget, "spec": spec, "status": {"lifecycle": word}}
        for spec, word in (({}, "SERVING"), ({}, "LOST"), ({}, "NEW"), ({"paused": True}, "NEW"))
    ]
    verdicts = tool.json("health", write(tmp_path, *states), "--rules", str(tmp_path / "health.yaml"), code=1)
    assert [one["state"] for one in verdicts] == ["Ready", "Failed", "Waiting", "Suspended"]


def test_table_shows_what_is_in_trouble(tool: Tool, tmp_path: Path) -> None:
    shown = tool.run("health", write(tmp_path, tab(phase="CreateFailed"), tab(phase="Creating")), code=1).output
    assert [line.partition("  ")[0] for line in shown.splitlines()] == ["STATE", "Waiting, in trouble", "Waiting"]


def test_a_field_that_the_crd_does_not_have_is_a_warning(tool: Tool, tmp_path: Path) -> None:
    definition = write(tmp_path, crontab_crd(**CONDITIONS), name="crd.yaml")
    rules = {"healthCheckExprs": [{**ENTRY, "current": "status.condtions.size() > 0"}]}
    objects = [tab("one", failed_when="jsonpath={.status.conditons}"), tab("two")]
    for subject, options in (
        (write(tmp_path, *objects), ["--crd", definition, "--rules", write(tmp_path, rules, name="r.yaml")]),
        (write(tmp_path, *objects, crontab_crd(**CONDITIONS), rules, name="all.yaml"), []),
    ):
        shown = tool.run("health", subject, *options, code=1).stderr
        assert (
            ".ready: column 8: status.condtions: there is no such field in the kind; did you mean status.conditions?" in shown
        )
        assert "failed-when: status.conditons: there is no such field" in shown
        assert shown.count("warning: ") == 2


def test_a_mistake_names_the_file_and_the_document(tool: Tool, tmp_path: Path) -> None:
    path = write(tmp_path, tab("one"), tab("two", ready_when="condition="))
    shown = tool.run("health", path, code=1).stderr
    assert f"{path}, document 2: CronTab.stable.example.com" in shown and "ready-when: must be stored or a rule" in shown


def test_a_file_of_crds_has_one(tool: Tool, tmp_path: Path) -> None:
    path = write(tmp_path, tab("one"))
    assert f"--crd {path}: has no CustomResourceDefinition" in tool.run("health", path, "--crd", path, code=2).stderr
