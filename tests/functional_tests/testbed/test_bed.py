# SPDX-License-Identifier: Apache-2.0
"""What the bed says of itself, from its state folder alone."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from builds import commands
from builds.progress import step
from functional_tests.testbed import bed, paths, preconditions, processes
from functional_tests.testbed.__main__ import main
from functional_tests.testbed.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """The record of a bed in which nothing runs yet."""
    monkeypatch.setattr(paths, "STATE", tmp_path / "bed")
    ledger = Ledger(paths.STATE)
    yield ledger
    ledger.undo()


def complete(ledger: Ledger, part: str, **environment: str) -> None:
    ledger.file(ledger.home / f"{part}.json", json.dumps(environment))


def test_env_prints_what_a_shell_reads_back_whatever_is_in_it(ledger: Ledger):
    complete(ledger, "kubernetes", KUBECONFIG="/state/kubeconfig")
    complete(ledger, "tacker", OS_PASSWORD="it's $HOME")
    printed = CliRunner().invoke(main, ["env"]).output
    assert printed == "export KUBECONFIG=/state/kubeconfig\nexport OS_PASSWORD='it'\"'\"'s $HOME'\n"


def test_env_of_a_bed_that_is_down_says_how_to_start_it(ledger: Ledger):
    result = CliRunner().invoke(main, ["env"])
    assert result.exit_code == 1
    assert "testbed up" in result.output


def test_status_names_a_process_that_has_died(ledger: Ledger):
    complete(ledger, "kubernetes")
    process = ledger.spawn("machine-node1", [sys.executable, "-c", "print('up', flush=True); input()"])
    process.wait_until_ended(10)
    result = CliRunner().invoke(main, ["status"])
    assert result.exit_code == 1
    assert result.output == "kubernetes: up\ntacker: down\nmachines: down\nopenstack: down\nthese have ended: machine-node1\n"


def test_a_bed_is_broken_while_a_part_is_unfinished(ledger: Ledger):
    assert bed._is_broken()  # nothing is complete
    complete(ledger, "kubernetes")
    assert not bed._is_broken()
    (ledger.home / "unfinished").touch()
    assert bed._is_broken()


def test_a_bed_is_broken_when_the_run_that_started_it_was_killed(ledger: Ledger):
    """What it was at work on is in it; a run that lives has the lock, wherever it is asked from."""
    complete(ledger, "kubernetes")
    (ledger.home / "run").touch()
    with bed._lock(bed._RUN, "taken"):
        assert not bed._is_broken()
    assert bed._is_broken()


def test_a_bed_with_the_code_of_another_folder_is_not_taken(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preconditions, "check", lambda: None)
    complete(ledger, "kubernetes")
    (ledger.home / "code").write_text("/elsewhere")
    with pytest.raises(bed.BusyError, match="up with the code in /elsewhere: `down` removes it"):
        bed.up(["kubernetes"])


def test_what_runs_side_by_side_fails_as_one_of_it_does(ledger: Ledger):
    done = []
    with pytest.raises(RuntimeError, match="ended with 1"), bed._side_by_side(ledger) as begin:
        begin(commands.run, ["false"])
        begin(done.append, "the other")
    assert done == ["the other"]


def test_ctrl_c_ends_what_runs_side_by_side(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(processes.TOKEN, ledger.token)
    with pytest.raises(KeyboardInterrupt), bed._side_by_side(ledger) as begin:
        begin(commands.run, ["sleep", "600"])
        raise KeyboardInterrupt
    assert not processes.with_token(ledger.token)


def test_a_step_prints_its_seconds_and_its_failure(capsys: pytest.CaptureFixture[str]):
    with step("Building"):
        pass
    with pytest.raises(KeyError), step("Waiting"):
        raise KeyError
    lines = re.sub(r"\d+\.\d", "N", capsys.readouterr().err).splitlines()
    assert lines == ["Building ...", "Building: N s", "Waiting ...", "Waiting: failed after N s"]
