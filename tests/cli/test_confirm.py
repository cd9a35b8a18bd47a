# SPDX-License-Identifier: Apache-2.0
"""`k8s-cr confirm`: changes of VIMs that wait for an operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from k8s_cr_driver.credentials.store import Store, Stored
from tests.cli.tool import Tool
from tests.credentials.messages import READY, SENT, SERVER
from tests.instance import BLUE

NAME = f"{BLUE}_default_red"
OTHER = "https://192.0.2.66:6443"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "received")


@pytest.fixture
def held(store: Store) -> Stored:
    """A cluster whose VIM leads to SERVER, and would come to lead to OTHER."""
    store.registered(store.accept(READY), "vim-1")
    assert not store.clusters()[0].is_held
    return store.accept(replace(READY, endpoint=OTHER, kubeconfig=SENT.replace(SERVER, OTHER)))


def test_changes_that_wait_are_listed_with_what_they_are(tool: Tool, store: Store, held: Stored) -> None:
    line = tool.run("confirm", "--folder", str(store.folder)).stdout
    assert line == f"{NAME}  VIM vim-1: from {held.vim_identity} to {held.identity}\n"
    assert f"from {SERVER} with CA sha256:" in line and f"to {OTHER} with CA sha256:" in line
    assert held.is_held and not store.is_confirmed(held)


def test_a_change_is_confirmed_by_a_yes(tool: Tool, store: Store, held: Stored) -> None:
    command = ("confirm", "--folder", str(store.folder), NAME)
    tool.run(*command, input="n\n", code=1)
    tool.run(*command, input="", code=1)
    assert not store.is_confirmed(held)
    tool.run(*command, input="y\n")
    assert store.is_confirmed(held)


def test_yes_does_without_a_question(tool: Tool, store: Store, held: Stored) -> None:
    found = tool.run("confirm", "--folder", str(store.folder), NAME, "--yes")
    assert f"{NAME}: confirmed; the receiver changes VIM vim-1 now" in found.stderr
    assert store.is_confirmed(held)


def test_what_does_not_wait_is_a_usage_error(tool: Tool, store: Store) -> None:
    store.registered(store.accept(READY), "vim-1")
    assert f"{NAME}: no change of it waits" in tool.run("confirm", "--folder", str(store.folder), NAME, code=2).output
