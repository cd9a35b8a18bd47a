# SPDX-License-Identifier: Apache-2.0
"""Rules for kinds in files: those of a package, of an operator and of a request, and which of them decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects import rule_files
from k8s_cr_driver.objects.cel import ExpressionError
from k8s_cr_driver.objects.keys import GroupKind
from k8s_cr_driver.package import health_rules, manifests
from k8s_cr_driver.resources import explained
from k8s_cr_driver.resources.health import Health, State, operator_rules
from k8s_cr_driver.resources.health.rules import of_texts
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf.additional_params import Options
from tests.resources.health.objects import CONDITIONS, Json, condition, conditions, crd, custom

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget"}
KIND = GroupKind("example.com", "Widget")
# The examples that Flux documents, of a sealed secret and of an issuer of certificates, have this form
SYNCED = {
    "failed": "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'False')",
    "current": "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'True')",
}


def document(*entries: Any) -> Json:
    return {"healthCheckExprs": [*entries]}


@pytest.fixture(autouse=True)
def no_rules_of_operators() -> Iterator[None]:
    yield
    operator_rules.use("")


def write(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return folder


def by_operator(tmp_path: Path, *entries: Any) -> None:
    operator_rules.use(write(tmp_path, rules=document(*entries)))


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"conditions": [condition("Synced")]}, State.READY),
        ({"conditions": [condition("Synced", "False")]}, State.FAILED),
        ({"conditions": [condition("Synced", "Unknown")]}, State.WAITING),
        ({"phase": "Ready"}, State.WAITING),
        (None, State.WAITING),
    ],
)
def test_example_of_flux(tmp_path: Path, status: Json | None, state: State) -> None:
    by_operator(tmp_path, WIDGET | SYNCED)
    assert resource_for(custom()).health(custom(status)).state is state


def test_work_under_way_is_asked_before_failure_and_rest_before_both(tmp_path: Path) -> None:
    rules = {"inProgress": "status.n < 3", "failed": "status.n < 2", "current": "true", "suspended": "status.n < 1"}
    by_operator(tmp_path, WIDGET | rules)
    states = [resource_for(custom()).health(custom({"n": n})).state for n in range(4)]
    assert states == [State.SUSPENDED, State.WAITING, State.WAITING, State.READY]


def test_rule_of_a_file_waits_for_a_current_status_unless_it_says_otherwise(tmp_path: Path) -> None:
    live = custom({**conditions("Odd"), "observedGeneration": 1}, generation=2)
    for ignores, state in ((False, State.WAITING), (True, State.READY)):
        by_operator(tmp_path, {**WIDGET, "current": "true", "ignoreGeneration": ignores})
        assert resource_for(live).health(live).state is state


def test_order_of_the_sources(tmp_path: Path) -> None:
    """The object's annotation, the request, the CRD's annotation, the package, the operator, the rules of the kind."""
    live = custom({"n": 1})
    live["metadata"]["annotations"] = {
        "k8s-cr-driver/ready-when": "cel: status.n == 1",
        rule_files.PACKAGE_RULES: json.dumps({"current": "status.n == 1"}),
    }
    definition = crd(CONDITIONS, annotations={"k8s-cr-driver/ready-when": "cel: status.n == 1"})
    by_operator(tmp_path, {**WIDGET, "current": "status.n == 1"})
    obj = resource_for(live, definition)
    obj.request_rules = {KIND: of_texts({"current": "status.n == 1"}, "rules of the request")}

    def source() -> str:
        health: Health = obj.health(live)
        return health.source

    found = [source()]
    del live["metadata"]["annotations"]["k8s-cr-driver/ready-when"]
    found.append(source())
    obj.request_rules = None
    found.append(source())
    obj.crd = None
    found.append(source())
    del live["metadata"]["annotations"][rule_files.PACKAGE_RULES]
    found.append(source())
    operator_rules.use("")
    assert [*found, source()] == [
        "annotation of the object",
        "rules of the request",
        "annotation of the CRD",
        "rules of the package",
        "operator's rules in rules.yaml",
        "",
    ]


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([{"kind": "Widget", "current": "true"}], r"healthCheckExprs\[0\]: kind, and apiVersion or group, are needed"),
        ([WIDGET], "has no expression; write current"),
        ([{**WIDGET, "currents": "true"}], "currents: is not known; write current"),
        ([{**WIDGET, "current": True}], "current: is a boolean, must be an expression"),
        ([{**WIDGET, "current": "status.a =="}], r"\[0\] \(Widget.example.com\).current: 'status.a ==': column 12: a value"),
        ([{**WIDGET, "current": "true", "ignoreGeneration": "yes"}], "ignoreGeneration: must be true or false"),
        ([{**WIDGET, "current": "true"}] * 2, r"\[1\]: Widget.example.com has an entry before"),
        (["x"], "is text, must be a mapping|is a string"),
        ([{**WIDGET, "current": "true"}] * 501, "has 501 entries"),
    ],
)
def test_entry_that_is_wrong_is_named_with_its_column(tmp_path: Path, entries: list[Any], problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem):
        rule_files.read(document(*entries))
    with pytest.raises(InvalidRequest, match=problem):
        operator_rules.use(write(tmp_path, rules=document(*entries)))
    with pytest.raises(InvalidRequest, match="additionalParams health-rules: "):
        Options().updated({"health-rules": entries})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (yaml.safe_dump_all([document({**WIDGET, "current": "true"}), document({**WIDGET, "failed": "true"})]),
         "rules.yaml: Widget.example.com has rules in another document, too; write them in one"),
        (b"\xff\xfe", "rules.yaml: cannot be read: .*utf-8"),
    ],
)
def test_file_of_an_operator_that_is_wrong_is_named(tmp_path: Path, content: str | bytes, words: str) -> None:
    (tmp_path / "rules.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidRequest, match=words):
        operator_rules.use(tmp_path)


def test_rules_may_be_read_again_while_they_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the first operations of a process reads them, beside others that judge by them already."""
    by_operator(tmp_path, *({"group": "_.com", "kind": f"{name}_", "current": "true"} for name in "abc"))

    def read_again(name: str, pattern: str) -> bool:
        operator_rules.use("")
        return name == pattern

    monkeypatch.setattr("fnmatch.fnmatchcase", read_again)
    assert operator_rules.of(KIND) is None


@pytest.mark.parametrize(("key", "there"), [("healthChecks", "healthChecks"), ("kind", "kind")])
def test_wrong_key_of_a_file_is_named(tmp_path: Path, key: str, there: str) -> None:
    with pytest.raises(InvalidRequest, match=f"healthCheckExprs: is missing, and {there} is there"):
        operator_rules.use(write(tmp_path, rules={key: [{**WIDGET, "current": "true"}]}))


def test_folder_of_an_operator_is_read_whole(tmp_path: Path) -> None:
    other = {"group": "example.com", "kind": "Gadget", "current": "true"}
    write(tmp_path, a=document({**WIDGET, "current": "true"}), b=yaml.safe_dump_all([document(other), None]))
    assert operator_rules.read(tmp_path).keys() == {KIND, GroupKind("example.com", "Gadget")}
    with pytest.raises(InvalidRequest, match=r"c.yaml: Widget.example.com has rules in a.yaml, too"):
        operator_rules.read(write(tmp_path, c=document({**WIDGET, "current": "true"})))
    with pytest.raises(InvalidRequest, match=r"c.yaml: is not YAML"):
        operator_rules.read(write(tmp_path, c="{"))
    with pytest.raises(InvalidRequest, match="is no folder"):
        operator_rules.use(tmp_path / "absent")


def package(folder: Path, *rules: Any, name: str = "health.yaml") -> Path:
    files = folder / "Files" / "kubernetes"
    files.mkdir(parents=True, exist_ok=True)
    widget = {**WIDGET, "metadata": {"name": "w"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    (files / "w.yaml").write_text(yaml.safe_dump_all([widget, config]))
    (files / name).write_text(yaml.safe_dump_all(rules))
    return folder


@pytest.mark.parametrize("files", [["Files/kubernetes/w.yaml"], ["Files/kubernetes/w.yaml", "Files/kubernetes/health.yaml"]])
def test_rules_of_a_package_are_written_to_the_objects_of_their_kinds(tmp_path: Path, files: list[str]) -> None:
    rules = {"current": "status.n == 1", "failed": "status.n == 2"}
    widget, config = manifests.load(package(tmp_path, document(WIDGET | rules)), files)
    assert json.loads(widget["metadata"]["annotations"][rule_files.PACKAGE_RULES]) == rules
    assert "annotations" not in config["metadata"]
    states = [resource_for(widget).health({**widget, "status": {"n": n}}).state for n in range(3)]
    assert states == [State.WAITING, State.READY, State.FAILED]


def test_longest_rules_of_a_package_decide(tmp_path: Path) -> None:
    """JSON writes a character of an expression with up to twelve, and the annotation is read on each event."""
    long = "size('{}') == 0 || status.phase == '{}'".format("\U0001f600" * 1990, "{}")
    rules = {name: long.format(name) for name in ("suspended", "inProgress", "failed", "current")}
    write(tmp_path, health=document({**WIDGET, **rules}), all={**custom(), "spec": {}})
    [widget] = manifests.load(tmp_path, ["all.yaml", "health.yaml"])
    live = {**widget, "status": {"phase": "failed"}}
    assert resource_for(live).health(live).source == "rules of the package"
    live["metadata"]["annotations"][rule_files.PACKAGE_RULES] = json.dumps(rules)
    assert resource_for(live).health(live).state is State.FAILED


def test_file_of_rules_may_have_any_name_and_wrong_ones_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    files = ["Files/kubernetes/w.yaml", "Files/kubernetes/own.yaml"]
    loaded = manifests.load(package(tmp_path, document({**WIDGET, "current": "true"}), name="own.yaml"), files)
    assert rule_files.PACKAGE_RULES in loaded[0]["metadata"]["annotations"]
    with pytest.raises(InvalidPackage, match=r"own.yaml, document 1: .*current: 'status.':"):
        manifests.load(package(tmp_path, document({**WIDGET, "current": "status."}), name="own.yaml"), files)


def vnfd(artifact: Any, *, of_type: bool = False) -> dict[str, Any]:
    node = {"VNF": {"type": "sample.VNF", "artifacts": {"health-rules": artifact}}}
    return {"node_types": node} if of_type else {"topology_template": {"node_templates": node}}


ARTIFACT = {"type": "tosca.artifacts.File", "file": "../Files/kubernetes/own.yaml"}


@pytest.mark.parametrize(
    "definitions",
    [
        vnfd(ARTIFACT),
        vnfd(ARTIFACT["file"]),
        vnfd(ARTIFACT, of_type=True),
        vnfd(ARTIFACT) | vnfd(ARTIFACT, of_type=True),
    ],
)
def test_vnfd_names_the_file_of_rules(tmp_path: Path, definitions: dict[str, Any]) -> None:
    name = health_rules.file({"types.yaml": {"data_types": {}}, "vnfd.yaml": definitions})
    folder = package(tmp_path, document({**WIDGET, "current": "true"}), name="own.yaml")
    package(tmp_path, document({**WIDGET, "current": "false"}))  # is not read
    loaded = manifests.load(folder, ["Files/kubernetes/w.yaml"], rules_file=name)
    assert json.loads(loaded[0]["metadata"]["annotations"][rule_files.PACKAGE_RULES]) == {"current": "true"}


@pytest.mark.parametrize("definitions", [{}, {"topology_template": None}, {"topology_template": {"node_templates": {"a": 1}}}])
def test_without_the_artifact_the_file_has_its_usual_name(definitions: dict[str, Any]) -> None:
    assert health_rules.file({"vnfd.yaml": definitions}) == "Files/kubernetes/health.yaml"


@pytest.mark.parametrize(
    "artifact, words",
    [
        ({}, "vnfd.yaml: VNF.artifacts.health-rules: names no file"),
        ({"file": ["a"]}, "names no file"),
        ("", "names no file"),
        (1, "names no file"),
        ({"file": "../absent.yaml"}, "absent.yaml"),
        ({"file": "../../outside.yaml"}, "outside.yaml"),
        ({"file": "/etc/passwd"}, "passwd"),
        ({"file": "https://example.com/rules.yaml"}, "rules.yaml"),
        ({"file": "../Files/kubernetes/w.yaml"}, r"w\.yaml, document 1: the VNFD names the file as health-rules"),
    ],
)
def test_file_of_rules_that_is_none(tmp_path: Path, artifact: Any, words: str) -> None:
    folder = package(tmp_path)
    with pytest.raises(InvalidPackage, match=words):
        manifests.load(folder, ["Files/kubernetes/w.yaml"], rules_file=health_rules.file({"vnfd.yaml": vnfd(artifact)}))


def test_flavours_name_one_file_of_rules() -> None:
    several = {"a.yaml": vnfd("../a.yaml"), "b.yaml": vnfd("../b.yaml")}
    with pytest.raises(InvalidPackage, match=r"name a\.yaml and b\.yaml; write the rules in one file"):
        health_rules.file(several)


def test_manifest_that_is_named_as_rules_are_is_left_alone(tmp_path: Path) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "h"}}
    folder = package(tmp_path, config)
    assert len(manifests.load(folder, ["Files/kubernetes/w.yaml"])) == 2
    assert len(manifests.load(folder, ["Files/kubernetes/w.yaml", "Files/kubernetes/health.yaml"])) == 3


def test_package_cannot_set_the_annotation_itself(tmp_path: Path) -> None:
    folder = package(tmp_path)
    widget = {**WIDGET, "metadata": {"name": "w", "annotations": {rule_files.PACKAGE_RULES: "{}"}}}
    (folder / "Files/kubernetes/w.yaml").write_text(yaml.safe_dump(widget))
    with pytest.raises(InvalidPackage, match="is a mark that only the driver may set"):
        manifests.load(folder, ["Files/kubernetes/w.yaml"])


@pytest.mark.parametrize("written", ["{", "[]", '{"current": 1}', '{"current": "("}', '{"current": "' + "a" * 20_000 + '"}'])
def test_annotation_that_somebody_has_spoiled_is_ignored(written: str) -> None:
    live = custom(conditions("Ready"), annotations={rule_files.PACKAGE_RULES: written})
    assert resource_for(live).health(live).state is State.READY


def test_rules_of_a_package_are_not_written_to_what_instances_share(tmp_path: Path) -> None:
    warnings: list[str] = []
    shared = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}}
    write(tmp_path, health=document({"apiVersion": "v1", "kind": "Namespace", "current": "false"}), all=shared)
    [namespace] = manifests.load(tmp_path, ["all.yaml", "health.yaml"], warn=warnings.append)
    assert rule_files.PACKAGE_RULES not in namespace["metadata"].get("annotations", {})
    [warning] = warnings
    assert "(Namespace): its rules are ignored, because other instances may share the object" in warning


def test_rules_that_are_tried_take_the_place_of_those_that_the_package_has_written() -> None:
    live = custom({"n": 1}, annotations={rule_files.PACKAGE_RULES: json.dumps({"current": "status.n == 2"})})
    tried = of_texts({"current": "status.n == 1"}, "rules in new.yaml")
    found = explained.verdict(resource_for(live), live, tried)
    assert (found.health.state, found.source, len(found.asked)) == (State.READY, "rules in new.yaml", 2)


def test_request_stores_its_rules_with_the_instance() -> None:
    entries = [{**WIDGET, "current": "true"}]
    options = Options(files=("a",)).updated({"health-rules": entries})
    assert Options().updated(json.loads(json.dumps(options.as_params()))) == options
    assert options.as_params()["health-rules"] == entries


def test_message_shows_nothing_of_a_secret() -> None:
    live = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}
    for wanted in ("jsonpath={.data.a}=x", "cel: {'a': 1}[data.a] == 1", "cel: data.a"):
        live["metadata"] = {"name": "s", "annotations": {"k8s-cr-driver/ready-when": wanted}}
        health = resource_for(live).health(live)
        assert health.state is State.WAITING and "aHVudGVyMg" not in health.message
