"""
What a verb answers to Tacker: nothing, a SolException, or not at all.

A SolException has no chain and a detail that may be read by every user of the API: Tacker logs chains and sends details
to every subscriber. Tacker's conductor stores what its driver answers without a look at what another conductor has
stored since, so a worker whose operation was given to another one must not answer at all.
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
from tacker.sol_refactored.common import vnf_instance_utils as inst_utils
from tacker.sol_refactored.objects.v2 import fields

from k8s_cr_driver.errors import DriverError, InvalidRequest, Stopped, Superseded
from k8s_cr_driver.lcm import instance_info, vim
from k8s_cr_driver.redaction import capped, foreign, redact

LOG = logging.getLogger(__name__)
CONF = config.CONF

_FAILED_TEMP = fields.LcmOperationStateType.FAILED_TEMP


class Overtaken(BaseException):
    """
    Ends a worker without an answer.

    The conductor of Tacker 16 has `except Exception` write FAILED_TEMP over what the other worker has stored
    (`ConductorV2._retry_lcm_op` and its like), and releases its lock in a `finally`. The executors of oslo.messaging
    keep any BaseException in a future that nobody asks, but for SystemExit, which ends their thread.
    """


@contextlib.contextmanager
def boundary(verb: str, inst: Any, grant_req: Any = None) -> Iterator[None]:
    """For the length of a verb; the grant request names the VnfLcmOpOcc, and lacks for what is no LCM operation."""
    operation = grant_req.vnfLcmOpOccId if grant_req else ""
    begun, before = time.monotonic(), _state(operation)
    answer: Any = None
    superseded = False
    try:
        yield
    except Exception as error:
        answer, superseded = _answer(verb, inst, error), isinstance(error, Superseded)
    now = _state(operation)
    if before and now and now != before and (superseded or now[0] != _FAILED_TEMP):
        LOG.warning(
            "%s of VNF instance %s ends here without an answer: operation %s was taken up elsewhere, and is %s",
            verb, inst.id, operation, now[0],
        )  # fmt: skip
        raise Overtaken(operation) from None
    if answer is not None:
        raise answer from None
    LOG.info("%s of VNF instance %s was done in %.1f s", verb, inst.id, time.monotonic() - begun)


@contextlib.contextmanager
def abandoning(inst: Any) -> Iterator[None]:
    """Any failure to delete is logged with what is left, but not that another worker is at it."""
    try:
        yield
    except (InvalidRequest, Superseded, Stopped):
        raise
    except DriverError as error:
        LOG.warning(
            "VNF instance %s is abandoned: %s\nLeft on %s: %s. If that can be reached again, `k8s-cr purge %s` removes it.",
            inst.id,
            redact(str(error)),
            inst_utils.select_vim_info(inst.vimConnectionInfo).interfaceInfo["endpoint"],
            instance_info.told(inst, instance_info.remembered(inst)[0] or CONF.k8s_cr.inventory_namespace),
            inst.id,
        )


def _answer(verb: str, inst: Any, error: Exception) -> Any:
    if isinstance(error, (sol_ex.SolException, sol_ex.DbSyncNoDiff, sol_ex.DbSyncFailed)):
        return error
    if isinstance(error, DriverError):
        text = redact(vim.with_remedy(error))
        LOG.error("%s of VNF instance %s failed: %s", verb, inst.id, text)
        return sol_ex.SolException(sol_status=error.status, sol_title=error.title, sol_detail=capped(text))
    LOG.error("%s of VNF instance %s failed: %s", verb, inst.id, foreign("".join(traceback.format_exception(error))))
    return sol_ex.SolException(
        sol_detail=f"{verb} failed in the driver itself ({type(error).__name__}); see the conductor's log"
    )


def _state(operation: str) -> tuple[str, datetime.datetime] | None:
    """The operation's state in Tacker's database and when it was entered; None if that cannot be told."""
    try:
        found = objects.VnfLcmOpOccV2.get_by_id(context.get_admin_context(), operation) if operation else None
    except Exception as error:
        LOG.warning("The state of operation %s cannot be read: %s", operation, redact(str(error)))
        return None
    return (found.operationState, found.stateEnteredTime) if found else None
