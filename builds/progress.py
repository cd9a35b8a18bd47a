# SPDX-License-Identifier: Apache-2.0
"""What is being done and for how long: a live table on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_console = Console(stderr=True, highlight=False, soft_wrap=True)
_lock = threading.Lock()
_live: Progress | None = None


def say(text: str) -> None:
    """One line for the person at the terminal, above whatever is in progress."""
    _console.print(text, markup=False)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Show `what` while the block runs, and its seconds afterwards. Steps nest, and may run in several threads."""
    start = time.monotonic()
    if not _console.is_terminal:
        say(f"{what} ...")
    task = _show(what)
    try:
        yield
    except BaseException:
        _hide(task)
        say(f"{what}: failed after {time.monotonic() - start:.1f} s")
        raise
    _hide(task)
    say(f"{what}: {time.monotonic() - start:.1f} s")


def _show(what: str) -> int:
    global _live
    with _lock:
        if _live is None:
            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            _live = Progress(*columns, console=_console, transient=True, disable=not _console.is_terminal)
            _live.start()
        return _live.add_task(what, total=None)


def _hide(task: int) -> None:
    global _live
    with _lock:
        assert _live is not None
        _live.remove_task(task)  # type: ignore[arg-type]
        if not _live.tasks:
            _live.stop()
            _live = None
        sys.stderr.flush()
