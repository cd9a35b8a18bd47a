"""The whole bed: its parts in order, one bed a host, and what is known about the one that runs.

A part's environment file in the state folder is written when the part is complete.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from builds.progress import say, step

from . import apt, kubernetes, paths, preconditions, processes
from .ledger import Ledger

Environment = dict[str, str]


class BusyError(Exception):
    """Another run is at work on the bed."""


def up(parts: list[str]) -> None:
    """Start the parts that do not run yet, after removing a bed that is broken or was never completed."""
    preconditions.check()
    with _alone():
        if _is_broken():
            _remove("Removing what an interrupted run has left")
        wanted = [part for part in parts if part not in environments()]
        if not wanted:
            say("The bed is up.")
            return
        ledger = Ledger(paths.STATE)
        # Every child has the token, so that `undo` finds it even when this run is killed now.
        os.environ[processes.TOKEN] = ledger.token
        try:
            for part in wanted:
                _unfinished().touch()
                environment = _START[part](ledger)
                ledger.file(_environment_file(part), json.dumps(environment))
                _unfinished().unlink()
        except KeyboardInterrupt:
            _remove("Interrupted: removing what was started")
            raise
        except Exception:
            say(f"What was started is left for a look, with its logs in {paths.STATE}; `down` removes it.")
            raise


def down() -> None:
    """Remove everything that `up` made."""
    with _alone():
        if paths.STATE.exists():
            _remove("Removing the bed")
        else:
            say("The bed is down.")


def environments() -> dict[str, Environment]:
    """The complete parts, and the variables with which programs find each."""
    files = {part: _environment_file(part) for part in _START}
    return {part: json.loads(file.read_text()) for part, file in files.items() if file.exists()}


def ended() -> list[str]:
    """Names of processes of the bed that should run and do not."""
    return Ledger(paths.STATE).ended() if paths.STATE.exists() else []


def _start_kubernetes(ledger: Ledger) -> Environment:
    apt.install(ledger, kubernetes.PACKAGES)
    return {"KUBECONFIG": str(kubernetes.up(ledger).kubeconfig)}


def _start_tacker(ledger: Ledger) -> Environment:
    from . import tacker  # its clients take a second to import, which `down` and `env` need not wait for

    apt.install(ledger, ("mariadb-server", "rabbitmq-server"))
    return tacker.up(ledger)


# In the order in which they are started.
_START: dict[str, Callable[[Ledger], Environment]] = {"kubernetes": _start_kubernetes, "tacker": _start_tacker}
PARTS = tuple(_START)


def _environment_file(part: str) -> Path:
    return paths.STATE / f"{part}.json"


def _unfinished() -> Path:
    """There while a part is being started."""
    return paths.STATE / "unfinished"


def _is_broken() -> bool:
    if not paths.STATE.exists():
        return False
    return _unfinished().exists() or not environments() or bool(ended())


def _remove(why: str) -> None:
    with step(why):
        Ledger(paths.STATE).undo()


@contextmanager
def _alone() -> Iterator[None]:
    """An abstract socket is a lock that leaves no file and ends with its holder."""
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind("\0k8s-cr-driver-testbed")
        except OSError:
            raise BusyError("another `up` or `down` of the test bed is at work on this host") from None
        yield
