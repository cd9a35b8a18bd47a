# SPDX-License-Identifier: Apache-2.0
"""The tool as a whole: its help, and what starts without the modules of its commands."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from k8s_cr_driver.cli.commands import COMMANDS, main
from tests.cli.packages import write_package
from tests.cli.tool import Tool
from tests.instance import config_map

HEAVY = ("kubernetes", "asyncssh", "rich", "yaml", "toscaparser", "tacker")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_the_tool_says_of_a_command_what_its_own_does(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None and command.help is not None
    assert (command.name, " ".join(command.help.split("\n\n")[0].split())) == (name, COMMANDS[name])
    assert f"k8s-cr {name}" in str(command.epilog) or name == "explain"


def test_the_help_lists_all_commands(tool: Tool) -> None:
    shown = tool.run("--help").stdout
    assert all(f"\n  {name} " in shown for name in [*COMMANDS, "check-tacker"])


def test_an_unknown_command_is_reported(tool: Tool) -> None:
    assert "No such command 'inti'" in tool.run("inti", code=2).stderr


@pytest.mark.parametrize(
    ("words", "expected"), [("k8s-cr ", "validate"), ("k8s-cr va", "validate"), ("k8s-cr --", "--version")]
)
def test_completion_and_help_import_no_command(words: str, expected: str) -> None:
    """They are typed, and waited for."""
    found = f"print([name for name in {HEAVY} if name in sys.modules])"
    code = f"from k8s_cr_driver.cli import main\ntry:\n main()\nfinally: {found}"
    completing = {"_K8S_CR_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "1"}
    for arguments, environment in (([], completing), (["--help"], {})):
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.argv[0] = 'k8s-cr'\n{code}", *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        assert (expected in done.stdout, done.stdout.splitlines()[-1]) == (True, "[]")


def test_a_check_of_a_package_imports_no_table_no_log_and_no_client(tool: Tool, tmp_path: Path) -> None:
    """None is used in most runs, and each takes a tenth of a second or more; the parser has a process of its own."""
    package = write_package(tmp_path / "p", [config_map("a")])
    at_the_end = "import atexit, sys; atexit.register(lambda: print(sorted(sys.modules)))"
    process = tool.start("validate", str(package), before=at_the_end)
    shown, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    modules = set(ast.literal_eval(shown.splitlines()[-1]))
    assert "k8s_cr_driver.cli.validate" in modules
    assert modules & {"rich", "oslo_log", "oslo_config", "kubernetes", "urllib3", "requests", "toscaparser"} == set()
