# SPDX-License-Identifier: Apache-2.0
"""
The script of a management driver as Tacker runs it: a process that is given a pickle, and may die at any moment.

It is forked from one that has imported the driver, which takes 2 s of a processor. Tacker starts a new program each time, which
the tests with a cloud show.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import re
import runpy
import sys
import uuid
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
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([f"k8s_cr_driver.lcm.{name}" for name in ("node_clusters", "kubespray", "node_ports")])


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
        options = json.dumps([f"--config-file={self.folder / 'tacker.conf'}"])
        streams = [self.folder / f"{uuid.uuid4()}.{name}" for name in ("stdin", "stdout", "stderr")]
        streams[0].touch(mode=0o600)  # it has secrets
        streams[0].write_bytes(pickle.dumps(given))
        process = _FORKS.Process(target=_execute, args=(self.folder / script, options, *streams))
        process.start()
        if killed_when:
            until(lambda: not process.is_alive() or killed_when("\n".join(self.lines()[position:])), PATIENCE)
            assert process.is_alive(), (streams[2].read_text(), self.lines()[position:])
            process.kill()
            process.join()
            return {}, Outcome("killed", self.lines()[position:])
        process.join(PATIENCE)
        outcome = Outcome(streams[2].read_text(), self.lines()[position:])
        assert process.exitcode == bool(outcome.failure)
        return pickle.loads(streams[1].read_bytes()), outcome

    @property
    def log(self) -> Path:
        return self.folder / "conductor.log"

    def lines(self) -> list[str]:
        """Whole lines of the log, without the time."""
        text = self.log.read_text() if self.log.exists() else ""
        return [line.partition(" INFO ")[2] or line for line in text.splitlines()]


def _execute(script: Path, options: str, stdin: Path, stdout: Path, stderr: Path) -> None:
    """In the process: the script with these files as its standard streams."""
    write = os.O_WRONLY | os.O_CREAT
    for number, (path, flags) in enumerate(((stdin, os.O_RDONLY), (stdout, write), (stderr, write))):
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin = os.fdopen(0)
    os.environ["K8S_CR_CONDUCTOR_CONFIG"] = options
    runpy.run_path(str(script), run_name="__main__")
