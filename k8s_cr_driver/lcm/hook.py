# SPDX-License-Identifier: Apache-2.0
"""How Tacker v2 runs a management driver: once for each operation, as a process of its own.

Tacker pickles the operation and the instance into the script's standard input, and waits for the process without a limit of
time (`VnfLcmDriverV2._exec_mgmt_driver_script`). It reads a pickled dictionary from standard output, also after a failure:
`vnf_instance` replaces the instance, which Tacker stores when the operation has succeeded, and
`user_script_err_handling_data` is stored with a failed operation, and given again to its retry or rollback. An exit code
other than 0 fails the operation with what stands on standard error.

The script in a package is a few lines that name a management driver of the group `k8s_cr_driver.management_drivers`. So a
package runs with the driver that is installed today.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from k8s_cr_driver.errors import DriverError, Refused
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.lcm import conf, vim
from k8s_cr_driver.logs import logger
from k8s_cr_driver.objects.fields import mapping, text, texts
from k8s_cr_driver.objects.keys import Object
from k8s_cr_driver.redaction import foreign

LOG = logger(__name__)
GROUP = "k8s_cr_driver.management_drivers"
_ROLLBACKS = ("instantiate_rollback_start", "instantiate_rollback_end")
T = TypeVar("T")


class DeadlinePassed(BaseException):
    """Raised within `deadline`, also where an `except Exception` would go on."""


@dataclass
class Call:
    """What Tacker gives. A management driver may change `instance` and `error_data`, which go back to Tacker."""

    operation: str
    """Such as instantiate_end, change_current_package_end, instantiate_rollback_start."""
    script: Path
    """The script in the package; files of the package stand beside it."""
    request: Mapping[str, Any] = field(repr=False)
    instance: Object = field(repr=False)
    """The VnfInstance of SOL003, with the credentials in vimConnectionInfo."""
    error_data: Object = field(repr=False)
    """Of the same operation's last try; {} if it has not failed before."""
    grant_request: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The GrantRequest of SOL003, which names the VNFCs that the operation removes; {} without one."""
    package: Path = Path()
    """The folder with the content of the VNF package."""

    @property
    def additional_params(self) -> Mapping[str, Any]:
        return mapping(self.request, "additionalParams")

    @functools.cached_property
    def options(self) -> Any:
        """What the operator sets for the conductor in [k8s_cr]."""
        return conf.of_conductor()

    def endpoint(self) -> Endpoint | None:
        """The cluster on which the instance is; None after a terminate.

        Raises InvalidRequest, also for a URL to which the conductor may not connect.
        """
        vims = list(mapping(self.instance, "vimConnectionInfo").values())
        if not vims:
            return None
        return vim.endpoint(
            mapping(vims[0], "interfaceInfo"),
            mapping(vims[0], "accessInfo"),
            verify_without_ca=self.options.verify_tls_without_ca,
            rules=conf.endpoint_rules(self.options),
        )

    def namespaces(self) -> list[str]:
        """The namespaces of the instance's objects, as its record has them (`instance_info`); [""] if it has none."""
        metadata = mapping(self.instance, "instantiatedVnfInfo", "metadata")
        return texts(metadata, "k8s_cr", "inventory", "namespaces") or [str(metadata.get("namespace") or "")]

    def project(self, key: str) -> str:
        """
        The project that has instantiated the instance; "" if it is not known.

        Before an instantiate has succeeded and after a terminate only what this operation keeps under its key says so. Not the
        metadata, which users of Tacker's API may change.
        """
        recorded = text(self.instance, "instantiatedVnfInfo", "metadata", "k8s_cr", "project")
        return recorded or text(self.error_data, key, "project")

    def kept(self, key: str) -> Object:
        """What the driver has kept under its key in the metadata of the instance, and in an operation that has failed."""
        return {**mapping(self.instance, "metadata", key), **mapping(self.error_data, key)}

    def keep(self, key: str, content: Mapping[str, Any], **of_operation: Any) -> None:
        """Replaces it, in both: a failed operation stores no instance. `of_operation` is not in the instance."""
        metadata = self.instance["metadata"] = mapping(self.instance, "metadata")
        for owner, now in ((metadata, {**content}), (self.error_data, {**content, **of_operation})):
            owner.pop(key, None)
            if now:
                owner[key] = now


Driver = Callable[[Call], None]


def run(name: str, script: str) -> int:
    """Runs the management driver `name` for the script at that path; returns the exit code."""
    with _only_ours() as (output, errors):
        conf.begin_log()
        given = pickle.load(sys.stdin.buffer)  # noqa: S301 (Tacker, the parent process, writes it)  # nosec B301
        returned, failure = respond(name, Path(script).resolve(), given)
        pickle.dump(returned, output)
        errors.write(failure.encode("ascii", "backslashreplace"))
    return 1 if failure else 0


def respond(name: str, script: Path, given: Mapping[str, Any]) -> tuple[Object, str]:
    """What goes back to Tacker for the dictionary that it has given, and the line of a failure, "" without one."""
    call = Call(
        given["operation"],
        script,
        given["request"],
        given["vnf_instance"],
        # On a retry Tacker gives a dictionary of oslo.versionedobjects, which pickles as a class of Tacker's.
        dict(given["user_script_err_handling_data"]),
        given.get("grant_request") or {},
        Path(given.get("tmp_csar_dir") or script.parent.parent),
    )
    failure = _failure(name, call)
    return {"vnf_instance": call.instance, "user_script_err_handling_data": call.error_data}, failure


class Operation(Protocol):
    """What a driver makes of a call."""

    def act(self) -> None:
        """Raises DriverError."""


def act(call: Call, key: str, make: Callable[[Call], Operation]) -> None:
    """Acts, unless it is the rollback of an instantiate whose request was refused. Raises DriverError."""
    if operation := unless_refused(call, call.kept(key), lambda: make(call)):
        operation.act()


def unless_refused(call: Call, kept: Mapping[str, Any], read: Callable[[], T]) -> T | None:
    """What `read` makes of the request. None for the rollback of an instantiate that was refused for the same mistake.

    Such a one has made nothing that would have to go, and has `kept` nothing. Raises Refused otherwise.
    """
    try:
        return read()
    except Refused as error:
        if call.operation not in _ROLLBACKS or kept:
            raise
        LOG.warning("%s %s: nothing was made of this request: %s", call.instance["id"], call.operation, line(error))
        return None


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises DeadlinePassed after so many seconds, whatever the process waits for. In the main thread only."""

    def end(*_: object) -> None:
        raise DeadlinePassed

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def line(error: BaseException) -> str:
    """An error on one line, without secrets."""
    if isinstance(error, DriverError):
        return foreign("; ".join(vim.with_remedy(error).splitlines()))
    if isinstance(error, DeadlinePassed):
        return "its deadline has passed"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"failed in the driver itself: {type(error).__name__} in {last.name}, {Path(last.filename).name}:{last.lineno}"


def _failure(name: str, call: Call) -> str:
    """Runs the driver; "" if it has succeeded."""
    try:
        [found] = importlib.metadata.entry_points(group=GROUP, name=name)
        found.load()(call)
    except (Exception, DeadlinePassed) as error:
        return f"{name}: {line(error)}"
    return ""


@contextlib.contextmanager
def _only_ours() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Standard output and error; what libraries write there meanwhile, warnings and logs, is dropped."""
    null = os.open(os.devnull, os.O_WRONLY)
    with os.fdopen(os.dup(1), "wb") as output, os.fdopen(os.dup(2), "wb") as errors:
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
        yield output, errors
