# SPDX-License-Identifier: Apache-2.0
"""Parameters are checked against their declarations, and filled in where they cannot change a document's structure."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_cr_driver.errors import InvalidPackage, InvalidRequest
from k8s_cr_driver.package.parameters import Declaration, declared, resolve
from k8s_cr_driver.package.substitution import fill, references

COUNT = Declaration("COUNT", "integer", default=2, required=False, constraints=(("in_range", [1, 5]),))
NAME = Declaration("NAME", description="what it is called", constraints=(("pattern", "[a-z]+"), ("max_length", 4)))
RATIO = Declaration("RATIO", "float", required=False, constraints=(("in_range", [0, "UNBOUNDED"]),))
DEBUG = Declaration("DEBUG", "boolean", required=False)
TOKEN = Declaration("TOKEN", secret=True, required=False)
ALL = {one.name: one for one in (COUNT, NAME, RATIO, DEBUG, TOKEN)}
SECRET = {"secretRef": {"name": "login", "key": "token"}}


def vnfd(properties: Any, interface: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Two files, as packages have them: types of their own, and a VNF that uses them."""
    operation = {"inputs": {"additional_parameters": {"type": "sample.Request"}}}
    return {
        "types.yaml": {
            "data_types": {
                "sample.Base": {"properties": {"INHERITED": {"type": "string"}}},
                "sample.Parameters": {"derived_from": "sample.Base", "properties": properties},
                "sample.Request": {"properties": {"parameters": {"type": "sample.Parameters"}}},
            }
        },
        "vnf.yaml": {"node_types": {"sample.VNF": {"interfaces": {"Vnflcm": interface or {"instantiate": operation}}}}},
    }


def test_declarations_are_read_from_the_vnfd() -> None:
    definition = {
        "type": "integer",
        "required": False,
        "default": 2,
        "description": "how many",
        "constraints": [{"in_range": [1, 5]}],
    }
    found = declared(vnfd({"COUNT": definition, "TOKEN": {"type": "string", "metadata": {"secret": True}}}))
    assert found == {
        "INHERITED": Declaration("INHERITED"),
        "COUNT": Declaration("COUNT", "integer", 2, False, "how many", (("in_range", [1, 5]),)),
        "TOKEN": Declaration("TOKEN", secret=True),
    }


def test_operations_of_tosca_1_3_are_understood() -> None:
    operations = {"operations": {"instantiate": {"inputs": {"additional_parameters": {"type": "sample.Request"}}}}}
    assert set(declared(vnfd({"A": {"type": "string"}}, operations))) == {"INHERITED", "A"}


@pytest.mark.parametrize("definitions", [{}, {"a.yaml": {}}, {"a.yaml": {"node_types": {"x": {"interfaces": None}}}}])
def test_a_vnfd_without_parameters_declares_none(definitions: dict[str, Any]) -> None:
    assert declared(definitions) == {}


@pytest.mark.parametrize(
    ("name", "definition", "words"),
    [
        ("A", {"type": "timestamp"}, "parameter A in the VNFD's sample.Parameters: its type must be one of string, integer"),
        ("A", {}, "its type must be"),
        ("A", "string", "its type must be"),
        ("1A", {"type": "string"}, "a name is letters"),
        ("A", {"type": "integer", "default": "2"}, "its default is text and must be of type integer"),
        ("A", {"type": "integer", "default": 9, "constraints": [{"less_than": 9}]}, "its default does not meet .*less_than: 9"),
        ("A", {"type": "integer", "constraints": [{"prime": True}]}, "each constraint is a mapping with one of equal"),
        ("A", {"type": "string", "default": "x", "metadata": {"secret": "true"}}, "a secret one is a string without default"),
        ("A", {"constraints": [{"valid_values": "abc"}], "type": "string"}, "constraint valid_values is text, must be a list"),
        (
            "A",
            {"constraints": [{"valid_values": []}], "type": "string"},
            "constraint valid_values is a list, must be a list of the",
        ),
        (
            "A",
            {"type": "string", "constraints": [{"valid_values": ["off", True]}]},
            "valid_values has True, which is a boolean and must be of type string; quote a text",
        ),
        (
            "A",
            {"type": "integer", "constraints": [{"valid_values": [1, "2"]}]},
            "has 2, which is text and must be of type integer",
        ),
        (
            "A",
            {"type": "integer", "constraints": [{"in_range": 5}]},
            "in_range must be a list of the lower and the upper bound",
        ),
        ("A", {"type": "integer", "constraints": [{"in_range": [5]}]}, "in_range must be a list of the lower and the upper"),
        ("A", {"type": "string", "constraints": [{"pattern": "(?=a)"}]}, "its pattern is no regular expression of RE2: "),
        ("A", {"type": "string", "constraints": [{"pattern": 5}], "default": "5"}, "its default cannot be checked"),
    ],
)
def test_bad_declarations_are_refused(name: str, definition: Any, words: str) -> None:
    with pytest.raises(InvalidPackage, match=words):
        declared(vnfd({name: definition}))


def test_a_type_that_no_file_defines_is_refused() -> None:
    definitions = vnfd({})
    del definitions["types.yaml"]["data_types"]["sample.Parameters"]
    with pytest.raises(InvalidPackage, match=r"type sample\.Parameters, which no file defines"):
        declared(definitions)


def test_every_declared_parameter_gets_a_value_or_none() -> None:
    assert resolve(ALL, {"NAME": "web", "TOKEN": SECRET}) == {
        "COUNT": 2,
        "NAME": "web",
        "RATIO": None,
        "DEBUG": None,
        "TOKEN": SECRET,
    }


@pytest.mark.parametrize(
    ("given_values", "words"),
    [
        ({}, r"additionalParams.parameters.NAME: is missing \(what it is called\); it is a string without a default"),
        ({"NAME": None}, "NAME: is missing"),
        ({"NAME": "web", "COUTN": 3}, "COUTN: the package declares no such parameter; did you mean COUNT?"),
        ({"NAME": "web", "X": 3}, "X: the package declares no such parameter; it declares COUNT, DEBUG, NAME, RATIO, TOKEN"),
        ({"NAME": 5}, "NAME: is an integer and must be of type string"),
        ({"NAME": "web", "COUNT": "3"}, "COUNT: is text and must be of type integer"),
        ({"NAME": "web", "COUNT": True}, "COUNT: is a boolean and must be of type integer"),
        ({"NAME": "web", "COUNT": 2.5}, "COUNT: is a number and must be of type integer"),
        ({"NAME": "web", "COUNT": 6}, r"COUNT: does not meet the constraint in_range: \[1, 5\]"),
        ({"NAME": "web", "RATIO": -0.5}, "RATIO: does not meet the constraint in_range"),
        ({"NAME": "Web"}, "NAME: does not meet the constraint pattern"),
        ({"NAME": "abcde"}, "NAME: does not meet the constraint max_length: 4"),
        ({"NAME": "\ud800"}, "NAME: holds what JSON cannot say"),
        ({"NAME": "web", "RATIO": float("inf")}, "RATIO: holds what JSON cannot say"),
        ({"NAME": "web", "DEBUG": "true"}, "DEBUG: is text and must be of type boolean"),
        ({"NAME": "web", "TOKEN": "hunter2"}, "TOKEN: is secret and takes no value of its own; .*secretRef"),
        ({"NAME": "web", "TOKEN": {"secretRef": {"name": "a", "key": "b", "namespace": "c"}}}, "exactly name and key"),
        ({"NAME": "web", "TOKEN": {"secretRef": {"name": "a"}}}, "exactly name and key"),
    ],
)
def test_bad_values_are_refused(given_values: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        resolve(ALL, given_values)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("clause", "bound", "fits", "fails"),
    [
        ("equal", 3, 3, 4),
        ("greater_than", 3, 4, 3),
        ("greater_or_equal", 3, 3, 2),
        ("less_than", 3, 2, 3),
        ("less_or_equal", 3, 3, 4),
        ("in_range", [1, "UNBOUNDED"], 9, 0),
        ("valid_values", [1, 3], 3, 2),
    ],
)
def test_constraints_of_numbers(clause: str, bound: Any, fits: int, fails: int) -> None:
    declarations = {"A": Declaration("A", "integer", constraints=((clause, bound),))}
    assert resolve(declarations, {"A": fits}) == {"A": fits}
    with pytest.raises(InvalidRequest, match=clause):
        resolve(declarations, {"A": fails})


@pytest.mark.parametrize(("clause", "bound"), [("length", 2), ("min_length", 2), ("max_length", 2), ("pattern", "a|ab")])
def test_constraints_of_texts(clause: str, bound: Any) -> None:
    declarations = {"A": Declaration("A", constraints=((clause, bound),))}
    assert resolve(declarations, {"A": "ab"}) == {"A": "ab"}
    with pytest.raises(InvalidRequest, match=clause):
        resolve(declarations, {"A": "abc" if clause in ("max_length", "pattern", "length") else "a"})


def test_a_constraint_that_does_not_fit_its_type_is_reported() -> None:
    with pytest.raises(InvalidRequest, match="the constraint less_than does not fit the type string"):
        resolve({"A": Declaration("A", constraints=(("less_than", 3),))}, {"A": "x"})


VALUES = {"COUNT": 3, "NAME": "web", "RATIO": 0.5, "DEBUG": True, "TOKEN": SECRET}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${COUNT}", 3),
        ("${RATIO}", 0.5),
        ("${DEBUG}", True),
        ("${NAME}", "web"),
        ("${NAME}-${COUNT}", "web-3"),
        ("debug=${DEBUG}", "debug=true"),
        ("${COUNT:=9}", 3),
        ("$${NAME}", "${NAME}"),
        ("$${HOME:-/}", "${HOME:-/}"),
        ("${HOME:-/} ${#} $NAME $(NAME) ${}", "${HOME:-/} ${#} $NAME $(NAME) ${}"),
        ("${TOKEN}", {"name": "login", "key": "token"}),
    ],
)
def test_references_become_values(text: str, value: Any) -> None:
    result = fill({"spec": {"a": [text]}}, ALL, VALUES)["spec"]["a"][0]
    assert (result, type(result)) == (value, type(value))


def test_a_reference_takes_its_own_default_where_there_is_no_value() -> None:
    values = resolve(ALL, {"NAME": "web"})
    template = {"a": "${RATIO:=1.5}", "b": "${DEBUG:=false}", "c": "x${RATIO:=1}"}
    assert fill(template, ALL, values) == {"a": 1.5, "b": False, "c": "x1"}


CIDRS = Declaration("CIDRS", "list", default=["10.0.0.0/16"], required=False, entries="string")
LABELS = Declaration("LABELS", "map", required=False, entries="string")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${CIDRS}", ["10.1.0.0/16", "10.2.0.0/16"]),
        ("blocks ${CIDRS}", 'blocks ["10.1.0.0/16", "10.2.0.0/16"]'),
        ("${LABELS}", {"app": "web"}),
        ("${LABELS:=none}", {"app": "web"}),
    ],
)
def test_lists_and_maps_become_values(text: str, value: Any) -> None:
    declarations = {one.name: one for one in (CIDRS, LABELS)}
    values = resolve(declarations, {"CIDRS": ["10.1.0.0/16", "10.2.0.0/16"], "LABELS": {"app": "web"}})
    assert fill({"a": text}, declarations, values) == {"a": value}


def test_each_use_of_a_list_is_a_list_of_its_own() -> None:
    filled = fill({"a": "${CIDRS}", "b": "${CIDRS}"}, {"CIDRS": CIDRS}, resolve({"CIDRS": CIDRS}, {}))
    filled["a"].append("more")
    assert filled["b"] == ["10.0.0.0/16"]
    assert CIDRS.default == ["10.0.0.0/16"]


@pytest.mark.parametrize(
    ("name", "given_value", "words"),
    [
        ("CIDRS", "10.0.0.0/16", "is text and must be of type list"),
        ("CIDRS", ["a", 1], "its entry 1 is an integer and must be of type string"),
        ("LABELS", {"app": True}, "its entry app is a boolean and must be of type string"),
    ],
)
def test_lists_and_maps_are_checked_with_their_entries(name: str, given_value: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        resolve({one.name: one for one in (CIDRS, LABELS)}, {name: given_value})


@pytest.mark.parametrize("entries", ["string", {"type": "string"}])
def test_the_type_of_entries_is_read_in_both_forms(entries: Any) -> None:
    properties = {"CIDRS": {"type": "list", "entry_schema": entries, "default": ["10.0.0.0/16"], "required": False}}
    assert declared(vnfd(properties))["CIDRS"] == CIDRS


def test_keys_are_left_alone_and_values_are_not_read_again() -> None:
    declarations = {"A": Declaration("A"), "B": Declaration("B")}
    assert fill({"${A}": "${A}"}, declarations, {"A": "${B}", "B": "b"}) == {"${A}": "${B}"}


def test_where_every_object_has_text_a_number_becomes_text() -> None:
    reference = "${COUNT}"
    obj = {
        "metadata": {"name": reference, "labels": {"a": reference}, "annotations": {"a": reference}},
        "data": {"a": reference},
        "spec": {
            "replicas": reference,
            "template": {
                "metadata": {"labels": {"a": reference}},
                "spec": {"containers": [{"env": [{"value": reference}], "args": [reference], "command": [reference]}]},
            },
        },
    }
    container = {"env": [{"value": "3"}], "args": ["3"], "command": ["3"]}
    assert fill(obj, ALL, VALUES) == {
        "metadata": {"name": "3", "labels": {"a": "3"}, "annotations": {"a": "3"}},
        "data": {"a": "3"},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"a": "3"}}, "spec": {"containers": [container]}}},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${COUTN}", r"\$\{COUTN\} is not declared in the VNFD \(did you mean COUNT\?\); declare it, or write \$\$\{COUTN\}"),
        ("a ${NOBODY:=x}", "is not declared in the VNFD; declare it"),
        ("${NAME:=${COUNT}}", r"\$\{NAME:=...\}: its default refers to another parameter, which is not possible"),
        ("${RATIO}", r"\$\{RATIO\} has no value: give the parameter, or write \$\{RATIO:=default\}"),
        ("${RATIO:=much}", "its default is text and must be of type float"),
        ("${RATIO:=-1}", "its default does not meet the constraint in_range"),
        pytest.param("${RATIO:=" + "[" * 100_000 + "}", "its default is text and must be of type float", id="nested"),
        ("Bearer ${TOKEN}", "is secret and can only be a whole value"),
        ("${UNSET:=plain}", "its default is plain text, and the parameter is secret"),
    ],
)
def test_bad_references_are_refused(text: str, words: str) -> None:
    declarations = {**ALL, "UNSET": Declaration("UNSET", secret=True, required=False)}
    with pytest.raises(InvalidPackage, match=words):
        fill({"spec": text}, declarations, {**VALUES, "RATIO": None, "UNSET": None})


def test_a_package_without_declarations_is_left_as_it_is() -> None:
    script = {"data": {"run.sh": "echo ${HOME} ${NAME:=x} $${ESCAPED}"}}
    assert fill(script, {}, {}) == script


def test_references_are_the_names_within_values() -> None:
    assert references({"${KEY}": ["${A}", "x${B:=1}", "$${C}", "${D:-x}", 1]}) == {"A", "B"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON.filter(lambda value: "${" not in repr(value)))
def test_what_has_no_reference_is_left_as_it_is(value: Any) -> None:
    assert fill(value, ALL, VALUES) == value


@given(JSON)
def test_fill_fails_with_invalid_package_only(value: Any) -> None:
    try:
        fill(value, ALL, VALUES)
    except InvalidPackage:
        assert references(value)


def test_patterns_are_matched_in_linear_time() -> None:
    declarations = {"A": Declaration("A", constraints=(("pattern", "(a+)+"),))}
    started = time.thread_time()
    with pytest.raises(InvalidRequest, match="does not meet the constraint pattern"):
        resolve(declarations, {"A": "a" * 100_000 + "b"})
    assert time.thread_time() - started < 1


def test_a_value_that_takes_long_to_match_is_refused() -> None:
    declarations = {"A": Declaration("A", constraints=(("pattern", "[ab]*a[ab]{900}c"),))}
    with pytest.raises(InvalidRequest, match=r"cannot be checked: .* or the value is too long"):
        resolve(declarations, {"A": "ab" * 100_000})


@pytest.mark.parametrize("text", ["${COUNT:=" * 100_000, "${COUNT" * 100_000, "$${" * 300_000, "${" + "A" * 1_000_000])
def test_references_without_an_end_take_linear_time(text: str) -> None:
    started = time.thread_time()
    assert fill(text, ALL, {}) == text.replace("$${", "${")
    assert time.thread_time() - started < 1


def test_a_reference_without_an_end_is_text() -> None:
    assert fill(["${COUNT", "${COUNT:=1"], ALL, {"COUNT": 1}) == ["${COUNT", "${COUNT:=1"]
    assert fill("${COUNT:=$${HOME", ALL, {"COUNT": 1}) == "${COUNT:=${HOME"
    assert references("${COUNT:=1") == set()


def test_long_names_are_not_compared() -> None:
    started = time.thread_time()
    with pytest.raises(InvalidRequest, match="it declares"):
        resolve({"ab" * 50_000: COUNT}, {"ba" * 50_000: 1})
    assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${TOKNE:=hunter2}", r"\$\{TOKNE:=...\} is not declared in the VNFD \(did you mean TOKEN\?\)"),
        ("Bearer ${TOKEN:=hunter2}", r"\$\{TOKEN:=...\} is secret and can only be a whole value"),
        (f"${{{'x' * 100_000}:=hunter2}}", "is not declared"),
    ],
)
def test_an_error_shows_no_default_of_a_reference(text: str, words: str) -> None:
    """In a Secret it may be a password. Its name may have MiB."""
    with pytest.raises(InvalidPackage, match=words) as caught:
        fill({"stringData": {"a": text}}, ALL, {"TOKEN": SECRET})
    assert "hunter2" not in str(caught.value) and len(str(caught.value)) < 1000
