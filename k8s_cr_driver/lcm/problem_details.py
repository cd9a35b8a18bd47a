# SPDX-License-Identifier: Apache-2.0
"""How a verb ends for Tacker: it returns, raises a SolException, or ends its worker.

A SolException has no chain, and its detail may be read by every user of the API: Tacker logs chains and sends details to
every subscriber. Tacker's conductor stores the result of its driver whatever another conductor has stored since. So a
worker whose operation another conductor has taken up must end without a result.
"""

from __future__ import annotations

import contextlib
import datetime
import time
import traceback
from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging
from tacker import context
from tacker.sol_refactored import objects
from tacker.sol_refactored.common import config
from tacker.sol_refactored.common import exceptions as sol_ex
from tacker.sol_refactored.objects.v2 import fields

from k8s_cr_driver.errors import DriverError, InvalidRequest, Stopped, Superseded
from k8s_cr_driver.lcm import vim
from k8s_cr_driver.lcm.instance_info import StoredInstance
from k8s_cr_driver.redaction import capped, foreign, redact

LOG = logging.getLogger(__name__)
CONF = config.CONF

_FAILED_TEMP = fields.LcmOperationStateType.FAILED_TEMP


class Overtaken(BaseException):
    """
    Ends a worker without a result.

    In the conductor of Tacker 16 an `except Exception` writes FAILED_TEMP over the state that the other worker has stored
    (`ConductorV2._retry_lcm_op` and others), and a `finally` releases its lock. The executors of oslo.messaging store a
    BaseException in a future that nobody reads, except SystemExit, which ends their thread.
    """


@contextlib.contextmanager
def boundary(verb: str, instance: str, grant_req: Any = None) -> Iterator[None]:
    """Encloses a verb; the grant request names the VnfLcmOpOcc, and is None for what is no LCM operation."""
    operation = grant_req.vnfLcmOpOccId if grant_req else ""
    begun, before = time.monotonic(), _state(operation)
    failure: Any = None
    superseded = False
    try:
        yield
    except Exception as error:
        failure, superseded = _failure(verb, instance, error), isinstance(error, Superseded)
    now = _state(operation)
    if before and now and now != before and (superseded or now[0] != _FAILED_TEMP):
        LOG.warning(
            "%s of VNF instance %s ends here without an answer: operation %s was taken up elsewhere, and is %s",
            verb, instance, operation, now[0],
        )  # fmt: skip
        raise Overtaken(operation) from None
    if failure is not None:
        raise failure from None
    LOG.info("%s of VNF instance %s was done in %.1f s", verb, instance, time.monotonic() - begun)


@contextlib.contextmanager
def abandoning(stored: StoredInstance) -> Iterator[None]:
    """A terminate that cannot delete everything completes and logs what is left, unless another worker took over."""
    try:
        yield
    except (InvalidRequest, Superseded, Stopped):
        raise
    except DriverError as error:
        LOG.warning(
            "VNF instance %s is abandoned: %s\nLeft on %s: %s. If that can be reached again, `k8s-cr purge %s` removes it.",
            stored.id,
            redact(str(error)),
            stored.endpoint or stored.vim.interfaceInfo["endpoint"],
            stored.on_cluster(CONF.k8s_cr.inventory_namespace),
            stored.id,
        )


def _failure(verb: str, instance: str, error: Exception) -> Any:
    if isinstance(error, (sol_ex.SolException, sol_ex.DbSyncNoDiff, sol_ex.DbSyncFailed)):
        return error
    if isinstance(error, DriverError):
        text = redact(vim.with_remedy(error))
        LOG.error("%s of VNF instance %s failed: %s", verb, instance, text)
        return sol_ex.SolException(sol_status=error.status, sol_title=error.title, sol_detail=capped(text))
    LOG.error("%s of VNF instance %s failed: %s", verb, instance, foreign("".join(traceback.format_exception(error))))
    return sol_ex.SolException(
        sol_detail=f"{verb} failed in the driver itself ({type(error).__name__}); see the conductor's log"
    )


def _state(operation: str) -> tuple[str, datetime.datetime] | None:
    """The operation's state in Tacker's database and when it was entered; None if that cannot be read."""
    try:
        found = objects.VnfLcmOpOccV2.get_by_id(context.get_admin_context(), operation) if operation else None
    except Exception as error:
        LOG.warning("The state of operation %s cannot be read: %s", operation, redact(str(error)))
        return None
    return (found.operationState, found.stateEnteredTime) if found else None
