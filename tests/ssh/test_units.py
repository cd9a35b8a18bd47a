# SPDX-License-Identifier: Apache-2.0
"""Long steps, with a systemd of two small programs: one starts a process, the other says whether it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from k8s_cr_driver.ssh import units

RUN = """#!/bin/sh
while [ "$1" != -- ]; do case $1 in --unit=*) unit=${1#--unit=} ;; esac; shift; done
shift
echo started >>$STATE/starts
setsid "$@" &
echo $! >$STATE/$unit.service
"""
CTL = """#!/bin/sh
echo look >>$STATE/looks
for unit; do :; done
if [ -d "/proc/$(cat "$STATE/$unit" 2>/dev/null || echo none)" ]; then echo active; else echo inactive; fi
"""
Step = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the steps keep what they keep."""
    for name, text in (("systemd-run", RUN), ("systemctl", CTL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("STATE", str(tmp_path))
    monkeypatch.setattr(units, "FOLDER", str(tmp_path / "steps"))
    return tmp_path


def start(text: str, stdin: str = "", made: str = "") -> subprocess.Popen[str]:
    command = units.step("a step", "one", ("sh", "-c", text), stdin, made=made)
    process = subprocess.Popen(command.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdin is not None
    process.stdin.write(command.stdin)
    process.stdin.close()
    process.stdin = None
    return process


def await_begin(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until the step has printed a line, and systemd knows that it runs."""
    log, service = folder / "steps" / "one.log", folder / "one.service"
    while not all(file.exists() and file.read_text().endswith("\n") for file in (log, service)):
        assert process.poll() is None
        time.sleep(0.01)


def ended(process: subprocess.Popen[str]) -> tuple[str, int]:
    return process.communicate(timeout=60)[0], process.returncode


def looks(folder: Path) -> int:
    return len((folder / "looks").read_text().splitlines())


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text().splitlines())


def is_unfinished(folder: Path) -> bool:
    argv = ["sh", "-euc", f'{units.UNFINISHED}unfinished "$1" one', "sh", str(folder / "steps")]
    return subprocess.run(argv).returncode == 0


@pytest.mark.parametrize("status", [0, 3])
def test_a_step_has_its_input_its_output_and_its_status(folder: Path, status: int) -> None:
    assert ended(start(f"cat; exit {status}", "given\n")) == ("given\n", status)
    assert is_unfinished(folder) is (status != 0)
    assert not (folder / "steps" / "one.input").exists(), "it may have secrets"


def test_what_a_step_prints_is_read_by_root_only(folder: Path) -> None:
    """`kubeadm init` prints a token. The folder may be there before, made for a script of the package."""
    kept = folder / "steps"
    kept.mkdir(mode=0o755)
    assert ended(start("echo --token abcdef.0123456789abcdef"))[1] == 0
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_step_that_runs_already_is_waited_for_and_not_started_again(folder: Path) -> None:
    end = folder / "end"
    first = start(f"echo begun; until [ -e {end} ]; do sleep 0.02; done; echo done")
    await_begin(folder, first)
    first.kill()  # the connection of the conductor, which dies
    first.communicate()
    assert is_unfinished(folder)
    before = looks(folder)
    second = start("echo another")
    while looks(folder) < before + 4:  # it waits
        assert second.poll() is None
        time.sleep(0.01)
    end.touch()
    assert ended(second) == ("begun\ndone\n", 0)
    assert starts(folder) == 1 and not is_unfinished(folder)


def test_a_step_that_is_killed_is_unfinished_and_starts_again(folder: Path) -> None:
    first = start("echo $$; exec sleep 600")
    await_begin(folder, first)
    os.killpg(int((folder / "one.service").read_text()), signal.SIGKILL)
    said, status = ended(first)
    assert status == 124 and "ended at its limit of 600 s, or was killed" in said
    assert is_unfinished(folder)
    assert ended(start("echo again")) == ("again\n", 0)


def test_what_has_been_made_is_not_made_again(folder: Path) -> None:
    made = folder / "kubelet.conf"
    assert ended(start(f"touch {made}", made=str(made)))[1] == 0
    assert ended(start("exit 3", made=str(made))) == ("", 0)
    assert starts(folder) == 1
    made.unlink()
    assert ended(start("exit 3", made=str(made)))[1] == 3
    made.touch()
    assert ended(start("echo again", made=str(made))) == ("again\n", 0), "the last one had failed"
