# SPDX-License-Identifier: Apache-2.0
"""The script of a management driver as Tacker runs it: a process that is given a pickle, and may die at any moment."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k8s_cr_driver.package import scripts

from ..testbed.processes import until

Body = dict[str, Any]
KilledWhen = Callable[[str], bool]
"""Asked with what the script has logged; if it is true, the process is killed."""
# Seconds for one operation, however busy the host is.
PATIENCE = 600.0


@dataclass
class Outcome:
    """What an operation has come to."""

    failure: str
    """"" if it has succeeded."""
    log: list[str]
    """What the script has logged, without the time."""

    @property
    def changes(self) -> int:
        """Of the cluster and of its volumes."""
        return sum(self._counted(r"(\d+) changes"))

    @property
    def connections(self) -> int:
        return self._counted(r"(\d+) connections")[-1]

    def _counted(self, pattern: str) -> list[int]:
        found = re.findall(pattern, "\n".join(self.log))
        assert found, self
        return list(map(int, found))


@dataclass(frozen=True)
class Conductor:
    """The folder of a package, whose script writes to the log of a conductor with the options of `tacker.conf`."""

    folder: Path

    def write(self, path: str, text: str) -> None:
        """A file of the package, or of the conductor."""
        file = self.folder / path
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)

    def run(self, driver: str, given: Body, killed_when: KilledWhen | None = None) -> tuple[Body, Outcome]:
        """What the script returns to Tacker, {} if it was killed, as when the conductor dies."""
        script, position = f"Scripts/{driver}.py", len(self.lines())
        self.write(script, scripts.text(driver))
        process = subprocess.Popen(
            [sys.executable, self.folder / script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "K8S_CR_CONDUCTOR_CONFIG": json.dumps([f"--config-file={self.folder / 'tacker.conf'}"])},
        )
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(given))
        process.stdin.close()
        process.stdin = None
        if killed_when:
            until(lambda: process.poll() is not None or killed_when("\n".join(self.lines()[position:])), PATIENCE)
            assert process.poll() is None, (process.communicate()[1], self.lines()[position:])
            process.kill()
            process.communicate()
            return {}, Outcome("killed", self.lines()[position:])
        output, errors = process.communicate(timeout=PATIENCE)
        outcome = Outcome(errors.decode(), self.lines()[position:])
        assert bool(outcome.failure) == bool(process.returncode)
        return pickle.loads(output), outcome

    @property
    def log(self) -> Path:
        return self.folder / "conductor.log"

    def lines(self) -> list[str]:
        """Whole lines of the log, without the time."""
        text = self.log.read_text() if self.log.exists() else ""
        return [line.partition(" INFO ")[2] or line for line in text.splitlines()]
