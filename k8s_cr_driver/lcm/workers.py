# SPDX-License-Identifier: Apache-2.0
"""How many workers of a conductor one project holds: an operation waits in its worker, for as long as its request says.

So some instances of one project could keep all others from being operated. An operation beyond the share fails at once: it
would wait in a worker, too. Its worker is free then, and it can be retried.

The conductor and the scripts of management drivers that it runs are several processes. So a share is a number of abstract
socket addresses (unix(7)) of the host: who has bound one holds a worker, and the kernel frees it however the process ends.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
from collections.abc import Iterator
from typing import Any

from k8s_cr_driver.errors import DriverError

POOL = 64
"""The default of oslo.messaging's executor_thread_pool_size, which it registers when its server starts."""


class Busy(DriverError):
    """The project has as many operations as it may."""

    status = 503
    title = "Too many operations of the project"


def most_of_a_project(conf: Any) -> int:
    """Operations of one project at the same time, one at least."""
    return max(1, int(conf.k8s_cr.project_share * getattr(conf, "executor_thread_pool_size", POOL)))


@contextlib.contextmanager
def worker_of(project: str, most: int) -> Iterator[None]:
    """Encloses an operation; Busy if `most` operations of its project run already. A project that is not known has no limit."""
    with socket.socket(socket.AF_UNIX) as worker:
        if project and not any(_takes(worker, project, number) for number in range(most)):
            raise Busy(
                f"The project of the VNF instance has as many running operations as [k8s_cr] project_share lets it have on one "
                f"conductor: {most}. Retry this one when another has ended."
            )
        yield


def _takes(worker: socket.socket, project: str, number: int) -> bool:
    """Whether nobody else has that worker of the project."""
    digest = hashlib.sha256(project.encode()).hexdigest()
    try:
        worker.bind(f"\0k8s-cr-driver/{os.getuid()}/{digest[:32]}/{number}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True
