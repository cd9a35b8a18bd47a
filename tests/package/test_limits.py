# SPDX-License-Identifier: Apache-2.0
"""What a package may cost: small files that would become much are refused by an error that names the limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.objects import yaml_nodes
from k8s_cr_driver.objects.dependencies import DEPENDS_ON
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.package import limits, manifests, parameters, patterns, schema, substitution, vnfd
from k8s_cr_driver.package.check import of_folder
from k8s_cr_driver.package.limits import Limits
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import counts, rotation, vdus
from k8s_cr_driver.vnf.additional_params import Options
from tests.cli.packages import META, write_package
from tests.instance import config_map, crontab, crontab_crd, deployment, obj


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """What is refused, or left to the API server, takes no time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < 8


@pytest.fixture
def few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VALUES", 5000)


def load(root: Path, objects: list[Object], **options: Any) -> list[Object]:
    (root / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return manifests.load(root, ["all.json"], **options)


def bomb(top: str, width: int = 10, depth: int = 9) -> str:
    """YAML in which `top` would have width to the power of depth entries."""
    lines = ["b0: &b0 [x, x]"] + [f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * width)}]" for n in range(1, depth)]
    return "\n".join([*lines, f"{top}: *b{depth - 1}"])


def definition(folder: Path, text: str) -> Path:
    write_package(folder, [config_map("a")])
    (folder / "Definitions/extra.yaml").write_text(text)
    return folder


@pytest.mark.parametrize(
    "text",
    [
        bomb("description"),
        "b0: &b0 {x: 1, y: 2}\n" + "\n".join(f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 10)}]}}" for n in range(1, 9)),
        "a: &a [*a]",
    ],
    ids=["aliases", "merge keys", "an alias of itself"],
)
def test_definitions_that_grow_by_aliases_are_refused(tmp_path: Path, text: str) -> None:
    (problem,) = {one for _, one in of_folder(definition(tmp_path, text)) if "aliases" in one}
    assert problem.startswith("Definitions/extra.yaml: the text: is larger than 32 MiB") and "use fewer aliases" in problem


def test_parsed_definitions_that_grow_by_aliases_are_refused() -> None:
    """As Tacker hands them over."""
    content = yaml.safe_load(bomb("data_types"))
    with pytest.raises(InvalidPackage, match=r"vnfd.yaml: is larger than 32 MiB with its aliases"):
        parameters.declared({"vnfd.yaml": content})


def test_a_bound_of_a_constraint_is_a_scalar_or_a_list_of_them() -> None:
    for bound in ({"a": 1}, [[1]], 2**20000):
        with pytest.raises(InvalidPackage, match=r"parameter A .* bound of its constraint valid_values must be text, a number"):
            parameters.declared(constrained({"valid_values": bound}))


@pytest.mark.parametrize("value", ["2001-99-99", "!!int ''", "!!timestamp x", "!!bool x", "!!float x"])
def test_a_value_that_yaml_cannot_hold_is_an_error_of_the_file(tmp_path: Path, value: str) -> None:
    folder = definition(tmp_path, f"a: {value}\n")
    assert any(one.startswith("Definitions/extra.yaml holds a value that is no YAML") for _, one in of_folder(folder))


def test_a_definition_is_not_larger_than_its_limit(tmp_path: Path) -> None:
    folder = definition(tmp_path, "a: |\n" + "  text\n" * (limits.DEFINITION // 7 + 1))
    assert any(one == "Definitions/extra.yaml: is larger than 4 MiB, the limit; divide it" for _, one in of_folder(folder))


def test_parameters_that_fill_in_too_much_are_refused(tmp_path: Path) -> None:
    declared = {"A": parameters.Declaration("A")}
    fill = substitution.filler(declared, {"A": "x" * 8000})
    with pytest.raises(InvalidPackage, match=r"all.json, .*: the parameters add more than 32 MiB .* the limit"):
        load(tmp_path, [config_map(f"a{n}", a="${A}" * 1000) for n in range(5)], fill=fill)


@pytest.mark.parametrize(("start", "unit"), [("[", "[],"), ("a: [", "[],"), ("", "- x\n"), ("{a: [", "{},")])
def test_manifests_of_too_many_values_are_refused(tmp_path: Path, few_values: None, start: str, unit: str) -> None:
    (tmp_path / "all.yaml").write_text(start + unit * 6000)
    with pytest.raises(InvalidPackage, match=r"all.yaml: the manifests hold more than 5,000 values together, the limit"):
        manifests.load(tmp_path, ["all.yaml"])


@pytest.mark.parametrize("text", ["1,2,", '"{', '\\"[', "\\\\,"])
def test_of_json_only_what_is_outside_of_texts_is_a_value(tmp_path: Path, few_values: None, text: str) -> None:
    one = config_map("a", table=text * 6000)
    (tmp_path / "all.json").write_text(json.dumps(one))
    assert manifests.load(tmp_path, ["all.json"]) == [one]
    (tmp_path / "all.json").write_text(json.dumps({**one, "extra": [0] * 6000}))
    with pytest.raises(InvalidPackage, match=r"all.json: the manifests hold more than 5,000 values"):
        manifests.load(tmp_path, ["all.json"])


def test_the_values_of_all_files_count_together(tmp_path: Path, few_values: None) -> None:
    names = [f"{n}.json" for n in range(3)]
    for name in names:
        (tmp_path / name).write_text(json.dumps({**config_map(name), "extra": [0] * 2000}))
    assert manifests.load(tmp_path, names[:2])
    with pytest.raises(InvalidPackage, match=r"2.json: the manifests hold more than 5,000 values"):
        manifests.load(tmp_path, names)


Make = Callable[[int], list[Object]]


@pytest.mark.parametrize(
    ("make", "limit", "option"),
    [
        (lambda n: [config_map(f"a{i}") for i in range(n)], Limits(max_objects=3), "max_objects"),
        (lambda n: [obj("v1", f"Kind{i}", "a") for i in range(n)], Limits(max_kinds=3), "max_kinds"),
        (lambda n: [{**deployment(), "spec": {"replicas": n}}], Limits(max_replicas=3), "max_replicas"),
        (lambda n: [crontab_crd(), {**crontab("a"), "spec": {"replicas": n}}], Limits(max_replicas=3), "max_replicas"),
        (lambda n: [obj("example.com/v1", "Any", "a", spec={"replicas": n})], Limits(max_replicas=3), "max_replicas"),
        (lambda n: [obj("example.com/v1", "Any", "a", spec=[{"replicas": n}])], Limits(max_replicas=3), "max_replicas"),
    ],
)
def test_what_an_option_limits_names_the_option(tmp_path: Path, make: Make, limit: Limits, option: str) -> None:
    assert load(tmp_path, make(3), limits=limit)
    with pytest.raises(InvalidPackage, match=rf"may have 3|more than 3.*\[k8s_cr\] {option}"):
        load(tmp_path, make(4), limits=limit)


@pytest.mark.parametrize("part", ["controlPlane", "machineDeployments", "machinePools"])
def test_the_counts_of_a_topology_are_limited(tmp_path: Path, part: str) -> None:
    many = {"name": "md-0", "replicas": 4}
    topology = {"controlPlane": many} if part == "controlPlane" else {"workers": {part: [many]}}
    cluster = obj("cluster.x-k8s.io/v1beta2", "Cluster", "a", spec={"topology": topology})
    with pytest.raises(InvalidPackage, match=rf"a: spec.topology\S*{part}\S*replicas: is more than 3; .* max_replicas"):
        load(tmp_path, [cluster], limits=Limits(max_replicas=3))
    assert load(tmp_path, [cluster], limits=Limits(max_replicas=4))


def test_two_billion_replicas_are_refused_by_default(tmp_path: Path) -> None:
    with pytest.raises(InvalidPackage, match=r"Any.* a: spec.replicas: is more than 10,000; lower it, .* max_replicas"):
        load(tmp_path, [obj("example.com/v1", "Any", "a", spec={"replicas": 2_000_000_000})])


def test_a_count_is_where_the_package_s_crd_says(tmp_path: Path) -> None:
    crd = crontab_crd()
    for version in crd["spec"]["versions"]:
        version["subresources"] = {"scale": {"specReplicasPath": ".spec.workers.count"}}
    with pytest.raises(InvalidPackage, match=r"spec.workers.count: is more than 10,000"):
        load(tmp_path, [crd, {**crontab("a"), "spec": {"workers": {"count": 10**9}}}])


def test_many_unknown_kinds_take_no_time_to_report(tmp_path: Path) -> None:
    objects = load(tmp_path, [obj("example.com/v1", f"Unknown{n % 140}", f"a{n}") for n in range(5000)])
    with pytest.raises(InvalidPackage, match=r"unknown kind: example.com/v1 Unknown0"):
        manifests.place(objects, lambda kind, version: None)


def test_a_schema_with_large_enums_takes_no_time(tmp_path: Path) -> None:
    entry = {"type": "string", "enum": [f"value{n}" for n in range(20_000)]}
    schema.check([with_field(type="array", items=entry), {**crontab("a"), "spec": {"names": ["value19999"] * 100_000}}])


def with_field(**field: Any) -> Object:
    crd = crontab_crd()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"names": field}
    return crd


@pytest.mark.parametrize(
    ("field", "entry"),
    [
        ({"uniqueItems": True}, str),
        ({"x-kubernetes-list-type": "set"}, str),
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}, lambda n: {"a": n}),
    ],
    ids=["uniqueItems", "set", "map"],
)
def test_stored_form_that_must_differ_take_linear_time(field: dict[str, Any], entry: Callable[[int], Any]) -> None:
    """An API server refuses uniqueItems in a CRD, because each entry would be compared with each other one."""
    items = {"x-kubernetes-preserve-unknown-fields": True}
    crd = with_field(type="array", items=items, **field)
    began = time.thread_time()
    schema.check([crd, {**crontab("a"), "spec": {"names": [entry(number) for number in range(20_000)]}}])
    assert time.thread_time() - began < 4


def test_a_bound_that_no_value_can_meet_is_one_clear_error() -> None:
    with pytest.raises(InvalidPackage, match=r"CronTab\S* default/a: spec.names: must be a multiple of 0"):
        schema.check([with_field(type="integer", multipleOf=0), {**crontab("a"), "spec": {"names": 3}}])


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, '{"a": "\\ud800"}', '{"a": 1e999}', "{a: " * 100_000])
def test_odd_json_is_one_clear_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "all.yaml").write_text(content)
    with pytest.raises(InvalidPackage, match=r"all.yaml, document 1"):
        manifests.load(tmp_path, ["all.yaml"])


def test_an_artifact_with_many_blocks_is_read_once(tmp_path: Path) -> None:
    folder = write_package(tmp_path, [config_map("a")])
    digest = "0" * 64
    (folder / "Files/image").write_bytes(bytes(8 * 1024 * 1024))
    (folder / "TOSCA-Metadata/TOSCA.meta").write_text(META + f"\nName: Files/image\nHash: {digest}\n" * 2000)
    assert len({one for _, one in of_folder(folder) if "has several blocks; keep one" in one}) == 1


def test_the_limit_of_definitions_lets_the_types_of_sol001_pass() -> None:
    for path in vnfd._missing_types(Path()):
        assert vnfd._documents(path, path.name)


def test_integers_of_parameters_count_with_their_digits() -> None:
    declared = {"A": parameters.Declaration("A", type="integer")}
    fill = substitution.filler(declared, {"A": 10**4200})
    with pytest.raises(InvalidPackage, match="the parameters add more than 32 MiB"):
        fill({"data": {"x": "${A}" * 10_000}})


def test_a_merge_of_many_mappings_takes_linear_time(tmp_path: Path) -> None:
    merged = ",".join(f"{{k{number}: x}}" for number in range(30_000))
    (tmp_path / "a.yaml").write_text(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{<<: [{merged}]}}}}\n")
    (found,) = manifests.load(tmp_path, ["a.yaml"])
    assert len(found["data"]) == 30_000


def test_a_long_chain_of_types_is_refused() -> None:
    types: dict[str, Any] = {f"t{number}": {"derived_from": f"t{number + 1}"} for number in range(8000)}
    types["t0"]["properties"] = {"parameters": {"type": "t1"}}
    node = {"interfaces": {"Vnflcm": {"instantiate": {"inputs": {"additional_parameters": {"type": "t0"}}}}}}
    nodes = {f"n{number}": node for number in range(100)}
    with pytest.raises(InvalidPackage, match="more than 100,000 data types and properties for parameters"):
        parameters.declared({"a.yaml": {"data_types": types, "node_types": nodes}})


def test_long_kinds_are_not_compared(tmp_path: Path) -> None:
    crd, other = crontab_crd(), crontab("one")
    crd["spec"]["names"]["kind"], other["kind"] = "ab" * 100_000, "Other"
    objects = load(tmp_path, [crd, other])
    with pytest.raises(InvalidPackage, match="unknown kind"):
        manifests.place(objects, lambda kind, _: False if kind.kind == "CustomResourceDefinition" else None)


def test_the_counts_of_many_parts_of_an_object_take_linear_time() -> None:
    notes = {f"a{number}": "x" for number in range(500)}
    parts = [{"name": f"md{number}", "class": "w", "replicas": 1, "metadata": {"annotations": notes}} for number in range(200)]
    topology = {"class": "k", "version": "v1.30.0", "workers": {"machineDeployments": parts}}
    cluster = obj("cluster.x-k8s.io/v1beta1", "Cluster", "c", "default", spec={"topology": topology})
    nodes = {f"v{number}": {"properties": {"name": f"md{number}"}} for number in range(200)}
    assigned = vdus.assign([resource_for(cluster)], nodes, partial=True)
    counted = counts.with_counts(assigned, dict.fromkeys(assigned, 2))
    assert set(counts.of(counted).values()) == {2}
    assert set(counts.of(assigned).values()) == {1}


def test_references_that_are_written_often_take_linear_time() -> None:
    group = "bootstrap.cluster.x-k8s.io"
    template = obj(f"{group}/v1beta1", "KubeadmConfigTemplate", "t", "default", spec={"template": {"spec": {}}})
    reference = {"apiVersion": f"{group}/v1beta1", "kind": "KubeadmConfigTemplate", "name": "t"}
    user = obj("cluster.x-k8s.io/v1beta1", "MachineDeployment", "m", "default", spec={"bootstrap": {"configRef": reference}})
    user["metadata"]["annotations"] = {DEPENDS_ON: ",".join([f"{group}/namespaces/default/KubeadmConfigTemplate/t"] * 3000)}
    former = {**template, "metadata": {**template["metadata"], "annotations": {rotation.CONTENT: "former"}}}
    lives = mock.create_autospec(rotation.Lives, instance=True)
    lives.named.side_effect = lambda _, name: former if name == "t" else None
    rotation.rotate([template, user], lives)
    renamed = template["metadata"]["name"]
    assert renamed != "t" and user["spec"]["bootstrap"]["configRef"]["name"] == renamed
    assert set(user["metadata"]["annotations"][DEPENDS_ON].split(",")) == {
        f"{group}/namespaces/default/KubeadmConfigTemplate/{renamed}"
    }


MANIFESTS_WITH_A_KEY = {
    "JSON": '{"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"%s": [0, 0]}}',
    "YAML": "apiVersion: a/v1\nkind: A\nmetadata: {name: a}\nspec:\n  ? %s\n  : [0, 0]\n",
}


@pytest.mark.parametrize("form", ["JSON", "YAML"])
def test_long_keys_are_refused(tmp_path: Path, form: str) -> None:
    """The path of each value in such a mapping was as long: one of 1 MB with 40,000 values took ten seconds."""
    file, text = tmp_path / "a", MANIFESTS_WITH_A_KEY[form]
    file.write_text(text % ("x" * 1024))
    assert manifests.load(tmp_path, ["a"])
    file.write_text(text % ("x" * 1025))
    with pytest.raises(InvalidPackage, match=r"^a.*: a key has more than 1,024 characters, the limit; use a shorter one$"):
        manifests.load(tmp_path, ["a"])


def constrained(*constraints: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The Definitions of a package with one parameter, A."""
    inputs = {"additional_parameters": {"type": "request"}}
    types = {
        "request": {"properties": {"parameters": {"type": "parameters"}}},
        "parameters": {"properties": {"A": {"type": "string", "required": False, "constraints": list(constraints)}}},
    }
    vnf = {"interfaces": {"Vnflcm": {"instantiate": {"inputs": inputs}}}}
    return {"vnfd.yaml": {"node_types": {"vnf": vnf}, "data_types": types}}


def test_more_constraints_than_allowed_are_refused_before_a_pattern_is_compiled() -> None:
    """Each takes up to 10 ms and 1 MiB, and 4 MiB hold 100,000 of them."""
    several = [{"pattern": f"a{number}"} for number in range(1001)]
    patterns._compiled.cache_clear()
    with pytest.raises(InvalidPackage, match="the parameters have more than 1,000 constraints together, the limit; use fewer"):
        parameters.declared(constrained(*several))
    assert patterns._compiled.cache_info().currsize == 0
    assert len(parameters.declared(constrained(*several[1:]))["A"].constraints) == 1000


def test_long_patterns_are_more_constraints() -> None:
    """RE2 takes up to 0.1 s for one of 2,000 characters."""
    several = [{"pattern": f"a{number}?" + "b" * 1900} for number in range(100)]
    assert len(parameters.declared(constrained(*several[:40]))["A"].constraints) == 40
    for each in (several, [{"pattern": [one["pattern"]]} for one in several]):
        with pytest.raises(InvalidPackage, match="more than 1,000 constraints"):
            parameters.declared(constrained(*each))


def test_a_number_of_thousands_of_digits_is_no_pattern() -> None:
    with pytest.raises(InvalidPackage, match="the bound of its constraint pattern must be text"):
        parameters.declared(constrained({"pattern": 16**5000}))


DEFAULTS = [("a" * number).ljust(1000, "b") for number in range(1000)]


@pytest.mark.parametrize("constraint", [{"pattern": "[ab]{1,1000}"}, {"valid_values": [*map(str, range(99_000)), *DEFAULTS]}])
def test_defaults_in_references_are_not_compared_with_constraints_without_end(constraint: dict[str, Any]) -> None:
    """32 MiB of manifests hold millions of references, and 4 MiB of Definitions as many values."""
    fill = substitution.filler(parameters.declared(constrained(constraint)), {"A": None})
    references = [f"${{A:={default}}}" for default in DEFAULTS]
    assert fill(references[:40]) == DEFAULTS[:40]
    with pytest.raises(InvalidPackage, match="too long for so many references with a default"):
        fill(references)


def test_short_defaults_in_references_are_not_compared_with_constraints_without_end() -> None:
    """A comparison has a cost of its own: an empty text took no steps, and 32 MiB of such references hours."""
    several = [{"pattern": f"[a-z]*|{number}"} for number in range(1000)]
    fill = substitution.filler(parameters.declared(constrained(*several)), {"A": None})
    calls = patterns._compiled.cache_info().hits
    fill("${A:=}" * 4000)
    assert patterns._compiled.cache_info().hits - calls < 10_000
    names = [left + right for left in "abcdefghijklmnopqrstuvwxyz" for right in "abcdefghijklmnopqrstuvwxyz"]
    with pytest.raises(InvalidPackage, match="too long for so many references with a default"):
        fill([f"${{A:={name}}}" for name in names])


def test_a_default_that_many_references_have_is_compared_once() -> None:
    fill = substitution.filler(parameters.declared(constrained({"pattern": ".{1,253}"})), {"A": None})
    assert fill(["${A:=registry.example.com}"] * 3000) == ["registry.example.com"] * 3000


def test_constraints_that_several_node_types_share_count_once() -> None:
    content = constrained(*[{"pattern": f"a{number}"} for number in range(30)])
    [vnf] = content["vnfd.yaml"]["node_types"].values()
    content["vnfd.yaml"]["node_types"] = {f"flavour-{number}": vnf for number in range(40)}
    assert len(parameters.declared(content)["A"].constraints) == 30


def test_a_long_name_of_a_data_type_takes_linear_time() -> None:
    """It was copied for each parameter: one of 2 MiB, with characters of four bytes, and 20,000 parameters took 20 seconds."""
    name = "\U0001f600" + "x" * 2_500_000
    held = {"parameters": {"type": name}}
    types = {"R": {"properties": held}, name: {"properties": {f"p{number}": {"type": "string"} for number in range(5_000)}}}
    operations = {"instantiate": {"inputs": {"additional_parameters": {"type": "R"}}}}
    node_types = {"a": {"interfaces": {"Vnflcm": {"operations": operations}}}}
    began = time.thread_time()
    assert len(parameters.declared({"a": {"node_types": node_types, "data_types": types}})) == 5_000
    assert time.thread_time() - began < 1


def test_keys_that_are_long_together_are_refused(tmp_path: Path) -> None:
    """The path of each value was as long: 450,000 values below 190 keys of 1,000 characters took minutes."""
    for levels, is_refused in ((4, False), (5, True)):
        value: Any = [0, 0]
        for _ in range(levels):
            value = {"x" * 1000: value}
        (tmp_path / "a").write_text(json.dumps(obj("a/v1", "A", "a", spec=value)))
        if is_refused:
            with pytest.raises(InvalidPackage, match="the keys that lead to a value have more than 4,096 characters together"):
                manifests.load(tmp_path, ["a"])
        else:
            assert manifests.load(tmp_path, ["a"])


def test_directives_without_number_are_refused(tmp_path: Path) -> None:
    """Libyaml compares each with all before it: a file of 32 MiB took hours, in which no other thread ran."""
    text = "".join(f"%TAG !{number}! x\n" for number in range(1001)) + "--- {a: b}\n"
    (tmp_path / "a").write_text(text)
    with pytest.raises(InvalidPackage, match="more than 1,000 directives %TAG"):
        manifests.load(tmp_path, ["a"])
    with pytest.raises(InvalidPackage, match="more than 1,000 directives %TAG"):
        vnfd.definitions(definition(tmp_path, text))
    for content in (text, text.encode(), text.encode("utf-16")):
        with pytest.raises(ValueError, match="it is not YAML"):
            yaml_nodes.loaded(content)
    assert yaml_nodes.loaded("%TAG ! x\n--- {a: b}") == {"a": "b"}


@pytest.mark.parametrize("said", [{"kind": "K" * 300 + "List"}, {"apiVersion": "g" * 300 + "/v1"}, {"apiVersion": "v" * 100}])
def test_a_list_whose_kind_has_a_long_name_is_refused(tmp_path: Path, said: Object) -> None:
    """Each entry had it: one of 10 MiB, and 100,000 entries, took an hour and more."""
    items = [{"metadata": {"name": f"a{number}"}} for number in range(10)]
    (tmp_path / "a").write_text(json.dumps({"apiVersion": "v1", "kind": "KList", "items": items, **said}))
    with pytest.raises(InvalidPackage, match=r"is missing or no (API version|name of a kind)"):
        manifests.load(tmp_path, ["a"])


@pytest.mark.parametrize("name", ["./" * 600 + "a", "https://files.example/" + "x" * 1100])
def test_a_long_name_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    """It was copied for each object: one of 50,000 characters, and 20,000 objects, took a gigabyte."""
    (tmp_path / "a").write_text(json.dumps(config_map("a")))
    with pytest.raises(InvalidRequest, match="an entry has more than 1,024 characters"):
        manifests.load(tmp_path, [name], fetch=lambda _: (tmp_path / "a").read_bytes())


def test_many_names_of_files_take_linear_time() -> None:
    """Each was counted among all: those of a request of 1 MB took minutes."""
    began = time.thread_time()
    assert len(Options().updated({"lcm-kubernetes-def-files": [f"{number:06}" for number in range(20_000)]}).files) == 20_000
    assert time.thread_time() - began < 2


def test_tosca_meta_has_a_number_of_blocks(tmp_path: Path) -> None:
    package = write_package(tmp_path, [config_map("a")])
    meta = package / "TOSCA-Metadata/TOSCA.meta"
    meta.write_text(meta.read_text() + "\na: b\n" * 10_000)
    _, problem = of_folder(package)[0]
    assert problem == "TOSCA-Metadata/TOSCA.meta has more than 10,000 blocks, the limit; make several packages of it"
