# SPDX-License-Identifier: Apache-2.0
"""How a verb ends for Tacker: it returns, raises a SolException, or ends its worker.

A SolException has no chain, and its detail may be read by every user of the API: Tacker logs chains and sends details to
every subscriber. Tacker's conductor stores the result of its driver whatever another conductor has stored since. So a
worker whose operation another conductor has taken up must end without a result.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from oslo_context import context as oslo_context
from oslo_log import log as logging
from tacker import context
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.objects.v2 import fields

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.operation import Statistics
from k8s_cr_driver.errors import DriverError, InvalidRequest, NotPermitted, Stopped, Superseded
from k8s_cr_driver.lcm import permitted, vim
from k8s_cr_driver.lcm.initiator import UNKNOWN, Initiator, of_operation
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.redaction import capped, foreign, redact

LOG = logs.logger(__name__)
CONF = config.CONF

_State = tuple[str, datetime.datetime]
_FAILED_TEMP = fields.LcmOperationStateType.FAILED_TEMP


class Overtaken(BaseException):
    """
    Ends a worker without a result.

    In the conductor of Tacker 16 an `except Exception` writes FAILED_TEMP over the state that the other worker has stored
    (`ConductorV2._retry_lcm_op` and others), and a `finally` releases its lock. The executors of oslo.messaging store a
    BaseException in a future that nobody reads, except SystemExit, which ends their thread.
    """


@dataclass
class Verb:
    """One call of the driver."""

    name: str
    instance: str
    operation: str
    """Id of the VnfLcmOpOcc; "" for what is no LCM operation."""
    package: str = ""
    """Id of the VNFD."""
    initiator: Initiator = UNKNOWN
    statistics: Statistics = field(default_factory=Statistics)
    note: str = ""
    """What its error says at the end, should it fail."""

    def __str__(self) -> str:
        return f"{self.name} of VNF instance {self.instance}"

    def begins(self, cluster: str, applies: int | None) -> None:
        """`applies` is the number of objects to apply, None if the verb only deletes or reads."""
        what = "" if applies is None else f", applies {applies} objects"
        LOG.log(self.level, "%s begins: package %s, cluster %s%s", self, self.package, cluster, what)

    def ends(self, result: str) -> None:
        LOG.log(self.level, "%s %s %s", self, result, self.statistics)

    @property
    def level(self) -> int:
        """The database synchronization looks at each instance, again and again."""
        return int(logging.INFO if self.operation else logging.DEBUG)


@contextlib.contextmanager
def boundary(name: str, instance: str, req: Any = None, grant_req: Any = None, vnfd: Any = None) -> Iterator[Verb]:
    """Encloses a verb; the grant request names the VnfLcmOpOcc, and is None for what is no LCM operation."""
    operation = str(grant_req.vnfLcmOpOccId) if grant_req else ""
    began = of_operation(operation, req, grant_req)
    verb = Verb(name, instance, operation, vnfd.vnfd_id if vnfd else "", initiator=began)
    with _log_context(instance, operation):
        before = _state(operation)
        failure: Any = None
        superseded = False
        try:
            if vnfd is not None:
                permitted.check_scripts(vnfd, began)
            yield verb
        except Exception as error:
            failure, superseded = _failure(verb, error), isinstance(error, Superseded)
        now = _state(operation)
        if now and _is_taken_up(before, now, superseded):
            LOG.warning("%s ends without a result: operation %s runs elsewhere, and is %s", verb, operation, now[0])
            raise Overtaken(operation) from None
        is_failed = failure is not None and not isinstance(failure, sol_ex.DbSyncNoDiff)
        verb.ends("failed" if is_failed else "completed")
        if failure is not None:
            raise failure from None


@contextlib.contextmanager
def _log_context(instance: str, operation: str) -> Iterator[None]:
    """
    Within it, log lines of this thread name the instance and the operation, if any: oslo.log writes what its context has as
    `instance` before each message, also of libraries. The audit log (`kube.audit`) takes `vnf_instance` and `vnf_operation`.
    """
    before = oslo_context.get_current()
    current = copy.copy(before) if before else oslo_context.RequestContext(overwrite=False)
    current.instance = f"{instance} operation {operation}" if operation else instance
    current.vnf_instance, current.vnf_operation = instance, operation
    current.update_store()
    try:
        yield
    finally:
        (before or oslo_context.RequestContext(overwrite=False)).update_store()


def is_current(operation: str) -> Callable[[], bool]:
    """Whether nobody has taken up the operation since this call; see `Operation.is_current`."""
    before = _state(operation)
    return lambda: not _is_taken_up(before, _state(operation), False)


def _is_taken_up(before: _State | None, now: _State | None, superseded: bool) -> bool:
    return bool(before and now and now != before and (superseded or now[0] != _FAILED_TEMP))


@contextlib.contextmanager
def abandoning(stored: StoredInstance) -> Iterator[None]:
    """A terminate that cannot delete everything completes and logs what is left, unless another worker took over."""
    try:
        yield
    except Exception as error:  # also of the driver itself: whoever abandons an instance wants no more of it
        if isinstance(error, (InvalidRequest, Superseded, Stopped)) and not isinstance(error, NotPermitted):
            raise
        if not isinstance(error, DriverError):
            LOG.error("The driver itself has failed: %s", _traceback(error))
        LOG.warning(
            "VNF instance %s is abandoned: %s. Left on %s: %s. If that can be reached again, `k8s-cr purge %s` removes it.",
            stored.id,
            redact(str(error)),
            stored.endpoint or stored.vim.interfaceInfo["endpoint"],
            stored.on_cluster(CONF.k8s_cr.inventory_namespace),
            stored.id,
        )


def _failure(verb: Verb, error: Exception) -> Any:
    if isinstance(error, (sol_ex.SolException, sol_ex.DbSyncNoDiff, sol_ex.DbSyncFailed)):
        return error
    if isinstance(error, DriverError):
        text = redact(vim.with_remedy(error))
        LOG.error("%s failed: %s", verb, text)
        detail = f"{text.rstrip('.')}. {verb.note}" if verb.note else text
        return sol_ex.SolException(sol_status=error.status, sol_title=error.title, sol_detail=capped(detail))
    LOG.error("%s failed: %s", verb, _traceback(error))
    return sol_ex.SolException(
        sol_detail=f"{verb.name} failed in the driver itself ({type(error).__name__}); see the conductor's log"
    )


def _traceback(error: Exception) -> str:
    return foreign("".join(traceback.format_exception(error)))


def _state(operation: str) -> _State | None:
    """The operation's state in Tacker's database and when it was entered; None if that cannot be read."""
    try:
        found = objects.VnfLcmOpOccV2.get_by_id(context.get_admin_context(), operation) if operation else None
    except Exception as error:
        LOG.warning("The state of operation %s cannot be read: %s", operation, redact(str(error)))
        return None
    return (found.operationState, found.stateEnteredTime) if found else None
