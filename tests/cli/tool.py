# SPDX-License-Identifier: Apache-2.0
"""The tool as a shell runs it, on the fake API server."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from k8s_cr_driver.cli.commands import main
from tests.fake_api import FakeApi


class Tool:
    """Runs commands with the kubeconfig of one cluster."""

    def __init__(self, api: FakeApi, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(kubeconfig(api.url)))

    def run(self, *arguments: str, code: int = 0, input: str | None = None) -> Result:
        """The result of a command, which must end with that exit code."""
        result = CliRunner(env={"KUBECONFIG": str(self.kubeconfig)}).invoke(main, list(arguments), input=input)
        assert result.exit_code == code, (result.exit_code, result.output, result.exc_info)
        return result

    def start(self, *arguments: str, stdout: int = subprocess.PIPE, before: str = "pass") -> subprocess.Popen[str]:
        """A command in a process of its own, which heeds SIGINT also where the tests run in the background of a shell.

        It runs the code `before` it imports the tool.
        """
        heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = f"{heed}; {before}; from k8s_cr_driver.cli import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "TERM": "xterm", "COLUMNS": "200"},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def interrupt(process: subprocess.Popen[str]) -> int:
        """Presses Ctrl-C and returns the exit code.

        Once more if nothing happens: Python does not see a signal that comes right before a call that blocks. Not sooner than
        a busy machine takes to end it: one that comes while the interpreter ends is the process's own end.
        """
        for _ in range(4):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                return process.wait(20)
        process.kill()
        raise AssertionError(process.communicate())

    @contextmanager
    def on_terminal(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[str], str]]]:
        """(process, what it has shown when it shows a text) of a command whose output is a terminal."""
        ours, theirs = pty.openpty()
        process = self.start(*arguments, stdout=theirs)
        os.close(theirs)
        shown = ""

        def until(text: str) -> str:
            nonlocal shown
            while text not in shown:
                assert select.select([ours], [], [], 60)[0], shown
                shown += os.read(ours, 65536).decode()
            return shown

        try:
            yield process, until
        finally:
            process.kill()
            process.communicate()
            os.close(ours)

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "-o", "json", code=code).stdout)

    def judged(self, package: Path, *arguments: str, code: int = 0) -> tuple[list[str], list[str]]:
        """The errors and the warnings that `validate` finds."""
        said = self.json("validate", str(package), *arguments, code=code)
        return said["problems"], said["warnings"]


def kubeconfig(url: str, **user: Any) -> dict[str, Any]:
    return {
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
        "current-context": "a",
    }
