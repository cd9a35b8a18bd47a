"""The tool as a shell runs it, on the fake API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from k8s_cr_driver.cli import main
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

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command in a process of its own."""
        code = "from k8s_cr_driver.cli import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "-o", "json", code=code).stdout)


def kubeconfig(url: str, **user: Any) -> dict[str, Any]:
    return {
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
        "current-context": "a",
    }
