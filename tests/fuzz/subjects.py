# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: each subject reads one input, and returns or raises an error that names what is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from k8s_cr_driver import redaction
from k8s_cr_driver.cli import package_input
from k8s_cr_driver.errors import DriverError
from k8s_cr_driver.journal import stored_form
from k8s_cr_driver.kube import kubeconfig, responses
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects.keys import key_of, kind_of
from k8s_cr_driver.package import check, parameters, schema
from k8s_cr_driver.package.documents import DocumentError, documents
from k8s_cr_driver.plan.field_diff import changes
from k8s_cr_driver.resources.registry import resource_for
from tests import spoiled
from tests.cli.packages import write_package
from tests.fuzz import inputs

Subject = tuple[st.SearchStrategy[Any], Callable[[Any], object]]
EXPECTED = (DriverError, DocumentError)
"""Errors that callers explain."""


def _foreign(text: str) -> None:
    for line in (redaction.foreign(text), redaction.words(ValueError(text))):
        assert not set(line) & {"\n", "\x1b"} and len(line) < 5 * redaction.FOREIGN_LIMIT
    redaction.redact(text), redaction.looks_secret(text), redaction.capped(text)


def _sent(parts: tuple[Any, str]) -> None:
    value, text = parts
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"a": value, "b": text}}
    shown = SentValues([manifest]).removed_from(text)
    assert len(shown) <= redaction.FOREIGN_LIMIT * (1 + len(redaction.REMOVED))


def _package(parts: tuple[str, str, list[Any]]) -> None:
    """One file of a package is replaced by a text."""
    name, text, objects = parts
    with tempfile.TemporaryDirectory() as folder:
        package = write_package(Path(folder), objects, vdus={"Web": "web"}, aspects=["web"])
        if text:
            (package / name).write_bytes(text.encode(errors="surrogatepass"))
        assert all(isinstance(problem, str) for _, problem in check.of_folder(package))
        schema.check(package_input.load(package, {}, lenient=True))


def _parameters(parts: tuple[Any, dict[str, Any]]) -> None:
    properties, given = parts
    inputs_ = {"additional_parameters": {"type": "request"}}
    definitions = {
        "vnfd.yaml": {
            "node_types": {"vnf": {"interfaces": {"Vnflcm": {"operations": {"instantiate": {"inputs": inputs_}}}}}},
            "data_types": {"request": {"properties": {"parameters": {"type": "values"}}}, "values": {"properties": properties}},
        }
    }
    parameters.resolve(parameters.declared(definitions), given)


def _inventory(parts: tuple[dict[str, str], dict[str, str]]) -> None:
    annotations, data = parts
    metadata = {"name": "a", "uid": "b", "resourceVersion": "1", "annotations": annotations}
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, "binaryData": data}
    stored_form.is_inventory(live)
    stored_form.parse_foreign(live)
    stored_form.parse(live)


def _response(live: Any) -> None:
    """An object of the server, as far as `checked` lets it pass."""
    live = responses.checked(live, kind_of(live), "GET")
    obj = resource_for(live)
    key_of(live), obj.health(live), obj.children(live), obj.has_finished(live), changes(live, live)


def _decoded(text: str) -> str:
    """As a file that is UTF-8 gives it."""
    return text.encode(errors="replace").decode()


_NAMES = ("TOSCA-Metadata/TOSCA.meta", "Definitions/vnfd.yaml", "Files/kubernetes/all.yaml")
_ANNOTATIONS = [f"applyset.kubernetes.io/{name}" for name in ("contains-group-kinds", "additional-namespaces")]
_DATA = ["members", "adopted", "adopted-uids", "finished", "members.gz", "adopted.gz"]


def _with_status(parts: tuple[Any, Any]) -> Any:
    live, status = parts
    identity = {"name": "a", "uid": "b", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**live, "metadata": {**live["metadata"], **identity}, "status": status}


SUBJECTS: dict[str, Subject] = {
    "texts of errors": (inputs.texts(40_000), _foreign),
    "sent values": (st.tuples(inputs.values(), inputs.texts()), _sent),
    "documents": (inputs.texts().map(_decoded), lambda text: list(documents(text))),
    "packages": (st.tuples(st.sampled_from(_NAMES), inputs.texts(4_000), st.just(spoiled.GOOD)), _package),
    "objects of packages": (st.tuples(st.just(""), st.just(""), spoiled.versions(spoiled.GOOD)), _package),
    "parameters": (st.tuples(inputs.values(), st.dictionaries(st.text(max_size=8), inputs.values(), max_size=3)), _parameters),
    "kubeconfigs": (inputs.texts(4_000), lambda text: kubeconfig.parse(text, "config")),
    "inventories": (
        st.tuples(
            st.dictionaries(st.sampled_from(_ANNOTATIONS), inputs.texts(500), max_size=3),
            st.dictionaries(st.sampled_from(_DATA), inputs.texts(500) | st.sampled_from(["[]", "{}", "[[]]", "[1]", "H4sI"])),
        ),
        _inventory,
    ),
    "responses": (st.tuples(st.sampled_from(spoiled.GOOD), inputs.values()).map(_with_status), _response),
}
