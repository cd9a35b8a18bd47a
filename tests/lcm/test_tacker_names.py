# SPDX-License-Identifier: Apache-2.0
"""The tables of what `lcm` uses of Tacker name all that its source uses, and are compared with the installed Tacker."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tacker import context
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config, vim_utils
from tacker.sol_refactored.nfvo import nfvo_client

from k8s_cr_driver import lcm
from k8s_cr_driver.lcm import tacker_names
from k8s_cr_driver.lcm.tacker_names import CONF, FIELDS, NAMES, OBJECTS, OPTIONS

SOURCES = sorted(Path(str(lcm.__file__)).parent.glob("*.py"))
OWN_GROUP = "k8s_cr"


class Uses:
    """What a module's source uses of Tacker: dotted names, and calls of them."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.known: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tacker":
                self.known |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (name := self.name(node.value)):
                self.known[node.targets[0].id] = name

    def name(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self.known.get(node.id, "")
        if isinstance(node, ast.Call):  # of a class whose method is called; what a function returns is not followed
            made = self.name(node.func)
            return made if made.rpartition(".")[2][:1].isupper() else ""
        if isinstance(node, ast.Attribute) and (owner := self.name(node.value)):
            return f"{owner}.{node.attr}"
        return ""

    def attributes(self) -> set[str]:
        return {name for node in ast.walk(self.tree) if isinstance(node, ast.Attribute) and (name := self.name(node))}

    def calls(self) -> Iterator[tuple[str, int, set[str]]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and (name := self.name(node.func)):
                yield name, len(node.args), {str(one.arg) for one in node.keywords}


USES = {path.name: Uses(path.read_text()) for path in SOURCES}


def is_declared(name: str) -> bool:
    """An option is declared by its group, an object by its fields, and what is inside of a declared name with that."""
    if name.startswith(f"{CONF}."):
        group, _, option = name.removeprefix(f"{CONF}.").partition(".")
        if group == OWN_GROUP:
            return True
        return option in ("", *OPTIONS.get(group, ())) if group in OPTIONS else group in OPTIONS["DEFAULT"]
    if name.rpartition(".")[2] in FIELDS and name.startswith(OBJECTS):
        return True
    prefixes = [*NAMES, *(f"{OBJECTS}.{one}" for one in FIELDS)]
    return any(known == name or known.startswith(f"{name}.") for known in prefixes) or name.startswith(
        "tacker.policy._ENFORCER."
    )


@pytest.mark.parametrize("module", USES)
def test_each_name_that_the_source_uses_is_declared(module: str) -> None:
    assert sorted(name for name in USES[module].attributes() if not is_declared(name)) == []


@pytest.mark.parametrize("module", USES)
def test_each_call_in_the_source_is_declared(module: str) -> None:
    for name, positional, keywords in USES[module].calls():
        if name.startswith((CONF, "tacker.policy._ENFORCER.")):
            continue
        if (kind := name.removeprefix(f"{OBJECTS}.")) in FIELDS:
            assert keywords <= set(FIELDS[kind].split()), name
            continue
        given = NAMES[name].strip("()").split(", ")
        declared = [one for one in given if one and not one.endswith("=") and one != "self"]
        is_free = not NAMES[name]  # an exception whose signature is not known
        assert is_free or (positional == len(declared) and keywords <= {one[:-1] for one in given if one.endswith("=")}), name


def test_the_tables_have_what_the_source_uses_and_little_more() -> None:
    used = set().union(*(uses.attributes() for uses in USES.values()))
    handed_over = ("tacker.context.Context.", "tacker.sol_refactored.common.vnfd_utils.Vnfd.")
    assert [name for name in NAMES if name not in used and not name.startswith(handed_over)] == []


def test_the_installed_tacker_has_all_of_it() -> None:
    assert tacker_names.differences() == []


def test_a_name_a_signature_a_field_and_an_option_that_are_other_have_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_vim(context: Any, vim_id: str, project: str) -> None: ...

    class Conf(dict[str, Any]):
        v2_vnfm = dict.fromkeys(OPTIONS["v2_vnfm"])

    monkeypatch.setattr(vim_utils, "get_vim", get_vim)
    monkeypatch.delattr(context, "get_admin_context")
    monkeypatch.setattr(nfvo_client.NfvoClient, "get_vnfd", "a text")
    monkeypatch.setattr(objects.VnfcInfoV2, "fields", {"id": None, "vduId": None, "vnfcState": None})
    monkeypatch.delattr(objects, "ScaleInfoV2")
    monkeypatch.setattr(config, "CONF", Conf(v2_vnfm={"kubernetes_vim_rsc_wait_timeout": 1}))
    assert tacker_names.differences() == [
        "it has no tacker.context.get_admin_context",
        "its tacker.sol_refactored.common.vim_utils.get_vim cannot be called with (context, vim_id): "
        "missing a required argument: 'project'",
        "its tacker.sol_refactored.nfvo.nfvo_client.NfvoClient.get_vnfd cannot be called with (self, context, vnfd_id): "
        "it is no function",
        "it has no tacker.sol_refactored.objects.ScaleInfoV2",
        "its tacker.sol_refactored.objects.VnfcInfoV2 has no field vnfcResourceInfoId",
        "it has no option [DEFAULT] db_synchronization_interval",
        "it has no option [v2_vnfm] default_graceful_termination_timeout",
    ]
