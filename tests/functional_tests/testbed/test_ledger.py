# SPDX-License-Identifier: Apache-2.0
"""The bed's record undoes what it holds, and nothing else; with real processes and folders, without root."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from functional_tests.testbed import processes
from functional_tests.testbed.ledger import Ledger

SLEEP = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]
# Overwrites SIGTERM's default, as a server does that wants an orderly end.
STUBBORN = [
    sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]  # fmt: skip
WITH_CHILD = [
    sys.executable, "-c",
    ("import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
    " start_new_session=True); print(child.pid, flush=True); child.wait()"),
]  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path):
    ledger = Ledger(tmp_path / "bed")
    yield ledger
    if ledger.home.exists():
        ledger.undo()


def started(ledger: Ledger, argv: list[str], **options):
    process = ledger.spawn("server", argv, **options)
    process.wait_until(process.log.read_text, 10, "it has said something")
    return process


def test_undo_ends_processes_and_removes_the_state_folder(ledger: Ledger):
    process = started(ledger, SLEEP)
    ledger.undo()
    assert not process.is_running()
    assert not ledger.home.exists()


def test_undo_ends_grandchildren_in_sessions_of_their_own(ledger: Ledger):
    process = started(ledger, WITH_CHILD)
    grandchild = processes.identify(int(process.log.read_text()))
    assert grandchild is not None
    ledger.undo()
    assert not processes.is_running(grandchild)


def test_undo_of_another_ledger_object_reads_the_record_alone(ledger: Ledger):
    process = started(ledger, SLEEP)
    Ledger(ledger.home).undo()
    assert not process.is_running()


def test_undo_finds_a_process_whose_pid_was_never_written(ledger: Ledger):
    environment = {**os.environ, processes.TOKEN: f"{ledger.token}/lost"}
    with subprocess.Popen(SLEEP, env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        ledger.undo()
        assert child.wait(10) == -signal.SIGTERM


def test_undo_leaves_a_process_that_has_got_the_pid_of_a_recorded_one(ledger: Ledger):
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE) as bystander:
        identity = processes.identify(bystander.pid)
        assert identity is not None
        ledger._record("started", name="old", identity=[*identity._replace(start=identity.start - 1)])
        ledger.undo()
        assert bystander.poll() is None
        bystander.kill()


def test_what_has_ended_is_named_unless_it_was_to_end(ledger: Ledger):
    process = started(ledger, SLEEP)
    assert ledger.ended() == []
    process.stop()
    assert ledger.ended() == ["server"]
    ledger.stopped("server")
    assert ledger.ended() == []


def test_a_process_that_ignores_its_stop_signal_is_killed(ledger: Ledger):
    process = started(ledger, STUBBORN)
    processes.stop(lambda: [process.identity], patience=0.2)
    assert not process.is_running()


def test_a_process_is_asked_to_end_before_it_is_killed(ledger: Ledger):
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), exit()));"
        "print('up', flush=True); time.sleep(600)"
    )
    with started(ledger, [sys.executable, "-c", script]).log.open() as log:
        ledger.undo()
        assert log.read() == "up\nbye\n"


def test_waiting_ends_at_once_with_the_log_when_the_process_dies(ledger: Ledger, tmp_path: Path):
    asked = tmp_path / "asked"
    dies = f"import os, time\nwhile not os.path.exists({str(asked)!r}): time.sleep(0.01)\nprint('no such database'); exit(1)"
    process = ledger.spawn("server", [sys.executable, "-c", dies])
    with pytest.raises(RuntimeError, match=r"(?s)it answers.*no such database"):
        process.wait_until(lambda: asked.touch() is not None, 600, "it answers")


def test_waiting_names_what_did_not_come(ledger: Ledger):
    process = started(ledger, SLEEP)
    with pytest.raises(TimeoutError, match="it answers"):
        process.wait_until(lambda: False, 0, "it answers")


def test_the_last_process_of_a_name_is_found_again(ledger: Ledger):
    first = started(ledger, SLEEP)
    first.stop()
    second = ledger.spawn("server", SLEEP)
    assert Ledger(ledger.home).process("server").identity == second.identity


def test_folders_and_files_go_with_what_others_put_in(ledger: Ledger, tmp_path: Path):
    folder = ledger.folder(tmp_path / "etc")
    ledger.file(folder / "conf", "a = 1")
    (folder / "more").write_text("b = 2")
    ledger.undo()
    assert not folder.exists()


def test_what_programs_leave_behind_goes_unless_it_was_there_before_or_holds_something(ledger: Ledger, tmp_path: Path):
    before, folder, used, lock = (tmp_path / name for name in ("before", "folder", "used", "folder/lock"))
    before.touch()
    for path in (before, folder, lock, used, tmp_path / "never"):
        ledger.foreseen(path)
    folder.mkdir()
    lock.touch()
    used.mkdir()
    (used / "of-somebody-else").touch()
    ledger.undo()
    assert before.exists() and not folder.exists() and (used / "of-somebody-else").exists()


def test_what_exists_already_is_refused_and_left(ledger: Ledger, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("text")
    with pytest.raises(FileExistsError, match="not the bed's"):
        ledger.folder(tmp_path / "mine")
    with pytest.raises(FileExistsError, match="not the bed's"):
        ledger.file(tmp_path / "mine" / "file", "other text")
    ledger.undo()
    assert (tmp_path / "mine" / "file").read_text() == "text"


def test_records_below_a_folder_are_undone_with_the_one_that_knows_of_it(ledger: Ledger, tmp_path: Path):
    ledger.others(ledger.folder(tmp_path / "servers"))
    server = Ledger(tmp_path / "servers" / "one")
    server.folder(tmp_path / "of-the-server")
    process = started(server, SLEEP)
    ledger.undo()
    assert not process.is_running() and not (tmp_path / "of-the-server").exists()


def test_a_setting_of_the_kernel_is_as_it_was_before(ledger: Ledger, tmp_path: Path):
    setting = tmp_path / "ip_forward"
    setting.write_text("0")
    ledger.setting(str(setting), "1")
    assert setting.read_text() == "1"
    ledger.undo()
    assert setting.read_text() == "0"


def test_a_limit_of_the_kernel_is_raised_and_never_lowered(ledger: Ledger, tmp_path: Path):
    limit = tmp_path / "max_user_instances"
    limit.write_text("128")
    ledger.at_least(str(limit), 1024)
    assert limit.read_text() == "1024"
    ledger.at_least(str(limit), 512)
    assert limit.read_text() == "1024"
    ledger.undo()
    assert limit.read_text() == "128"


def test_undo_passes_over_what_was_recorded_and_never_made(ledger: Ledger, tmp_path: Path):
    ledger._record("folder", path=str(tmp_path / "never"))
    ledger._record("netns", name="k8s-cr-never")
    ledger._record("link", name="k8s-cr-never")
    ledger._record("mount", path=str(tmp_path / "never"))
    ledger._record("process", name="never", token=f"{ledger.token}/never")
    ledger.undo()
    assert not ledger.home.exists()


def test_a_line_that_a_crash_cut_short_is_not_read(ledger: Ledger):
    with (ledger.home / "ledger.jsonl").open("a") as file:
        file.write('{"kind": "fol')
    Ledger(ledger.home).undo()
    assert not ledger.home.exists()


def test_a_ledger_killed_before_its_first_line_starts_again(tmp_path: Path):
    (tmp_path / "bed").mkdir()
    (tmp_path / "bed" / "ledger.jsonl").write_text('{"kind": "b')
    assert Ledger(tmp_path / "bed").token == Ledger(tmp_path / "bed").token


_LOSETUP = """\
#!/bin/sh
case $1 in
--find)
  number=$(($(cat "$DEVICES/count") + 1))
  echo "$number" >"$DEVICES/count"; echo "$3" >"$DEVICES/$number"; echo "$number" ;;
--associated) cd "$DEVICES"; for one in $(grep -lx "$2" * || true); do echo "$one: ($2)"; done ;;
--detach) rm "$DEVICES/$2" ;;
esac
"""


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Loop devices as files with the names of theirs."""
    found, programs = tmp_path / "devices", tmp_path / "bin"
    for folder in (found, programs):
        folder.mkdir()
    (found / "count").write_text("0")
    (programs / "losetup").write_text(_LOSETUP)
    (programs / "losetup").chmod(0o755)
    monkeypatch.setenv("DEVICES", str(found))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return found


def test_undo_leaves_the_device_of_a_file_that_was_released_to_others(ledger: Ledger, devices: Path, tmp_path: Path):
    volume, own = tmp_path / "volume", tmp_path / "own"
    other = Ledger(tmp_path / "other")
    ledger.loop(own)
    ledger.loop(volume)
    ledger.release_loop(volume)
    kept = other.loop(volume)
    ledger.undo()
    assert {one.name for one in devices.iterdir()} == {"count", kept.name}
    other.undo()
    assert {one.name for one in devices.iterdir()} == {"count"}
