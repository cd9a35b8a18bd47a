# SPDX-License-Identifier: Apache-2.0
"""Long steps without root over a real SSH connection: they outlive it, and never run twice."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from k8s_cr_driver.ssh import detached
from k8s_cr_driver.ssh.command import Command
from k8s_cr_driver.ssh.host import CommandFailed
from k8s_cr_driver.ssh.hosts import Hosts
from tests.credentials.web import wait_until

from .server import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(lambda _: None) as one:
        yield one


def step(folder: Path, name: str, text: str, *args: str, stdin: str = "", within: float = 60) -> Command:
    return detached.step("the playbook", str(folder), name, ("sh", "-euc", text, "sh", *args), stdin, within)


COUNTED = 'echo run >>"$1/runs"; while [ ! -e "$1/go" ]; do sleep 0.02; done; echo "ended"'


def is_running(folder: Path) -> bool:
    return (folder / "runs").exists()


def is_awaited(folder: Path) -> bool:
    """Whether somebody waits for the lock beside who has begun the step (proc_locks(5))."""
    inode = f":{(folder / 'lock').stat().st_ino} "
    return sum("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines()) > 1


@pytest.fixture
def begin() -> Iterator[Callable[[Path, str], None]]:
    """Begins a step that waits for the file `go`, and does not wait for its end."""
    with contextlib.ExitStack() as stack:

        def start(folder: Path, name: str) -> None:
            argv, pipes = ["sh", "-c", step(folder, name, COUNTED, str(folder)).line], ("stdin", "stdout", "stderr")
            child = subprocess.Popen(argv, start_new_session=True, **dict.fromkeys(pipes, subprocess.DEVNULL))  # type: ignore[call-overload]
            stack.callback(child.wait, 30)
            wait_until(lambda: is_running(folder))

        yield start


def test_a_step_gets_its_arguments_and_input_and_its_output_is_returned(server: Server, hosts: Hosts, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    assert hosts.run(server.host(), step(folder, "one", 'printf "%s|" "$1"; cat', "a 'b", stdin="secret")) == "a 'b|secret"
    assert "secret" not in "".join(path.read_text() for path in folder.iterdir() if path.name != "log")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_its_status_is_the_commands(server: Server, hosts: Hosts, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="the playbook ended with status 4: broken"):
        hosts.run(server.host(), step(tmp_path, "one", "echo broken; exit 4"))


def test_a_retry_waits_for_the_step_that_runs_and_starts_no_second(
    server: Server, hosts: Hosts, tmp_path: Path, begin: Callable[[Path, str], None]
) -> None:
    begin(tmp_path, "one")
    results = list[str]()
    retry = threading.Thread(
        target=lambda: results.append(hosts.run(server.host(), step(tmp_path, "one", COUNTED, str(tmp_path))))
    )
    retry.start()
    wait_until(lambda: is_awaited(tmp_path))
    (tmp_path / "go").touch()
    retry.join(30)
    assert results == ["ended\n"]
    assert (tmp_path / "runs").read_text() == "run\n"


def test_another_step_waits_and_follows(
    server: Server, hosts: Hosts, tmp_path: Path, begin: Callable[[Path, str], None]
) -> None:
    begin(tmp_path, "one")
    waiting = threading.Thread(target=lambda: (wait_until(lambda: is_awaited(tmp_path)), (tmp_path / "go").touch()))
    waiting.start()
    assert hosts.run(server.host(), step(tmp_path, "two", 'cat "$1/runs"; ls "$1/go"', str(tmp_path))).startswith("run\n/")
    waiting.join(30)


def test_what_takes_too_long_is_ended(server: Server, hosts: Hosts, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="the playbook ended with status 124"):
        hosts.run(server.host(), step(tmp_path, "one", "sleep 600", within=1))


def test_a_step_is_ended_with_all_that_it_has_started(
    server: Server, hosts: Hosts, tmp_path: Path, begin: Callable[[Path, str], None]
) -> None:
    begin(tmp_path, "one")
    hosts.run(server.host(), detached.stop("the end", str(tmp_path)))
    hosts.run(server.host(), detached.stop("the end", str(tmp_path)))
    hosts.run(server.host(), detached.stop("the end", str(tmp_path / "missing")))
    (tmp_path / "go").touch()
    assert hosts.run(server.host(), step(tmp_path, "one", COUNTED, str(tmp_path))) == "ended\n"
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
