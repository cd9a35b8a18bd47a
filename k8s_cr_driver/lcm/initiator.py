# SPDX-License-Identifier: Apache-2.0
"""
Who began an LCM operation. Another user may retry it, and the conductor begins some by itself.

Tacker keeps no user with an operation, but it keeps the request for the grant until the operation ends. The first attempt adds
its user there. What the user has given as additionalParams is in the same field: an entry of that name is one of the user's
own, and is not believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oslo_context import context as oslo_context
from tacker import context
from tacker.sol_refactored import objects

from k8s_cr_driver import logs
from k8s_cr_driver.redaction import redact

LOG = logs.logger(__name__)

KEY = "k8s-cr-driver/begun-by"
"""In additionalParams of the stored request for the grant: user, project, roles, and whether Tacker takes it for an admin."""


@dataclass(frozen=True)
class Initiator:
    """`user`: Tacker's context of the user; None for the conductor, or for somebody who is not known."""

    user: Any = None
    is_known: bool = True

    @property
    def is_conductor(self) -> bool:
        """Whether no user is behind the operation, as with an automatic heal."""
        return self.is_known and self.user is None

    @property
    def project(self) -> str:
        return (self.user.tenant_id or "") if self.user else ""


UNKNOWN = Initiator(is_known=False)
"""The first attempt has failed before the driver was called, or an earlier version of the driver has made it."""


def of_operation(operation: str, req: Any, grant_req: Any) -> Initiator:
    """Of the operation with the id; of what is no LCM operation, with the id "", who has called the driver."""
    caller = current()
    if not operation:
        return caller
    admin = context.get_admin_context()
    try:
        found = objects.VnfLcmOpOccV2.get_by_id(admin, operation)
        if found and found.obj_attr_is_set("error") and found.error:
            return _recorded(req, grant_req)
        _record(admin, operation, caller)
    except Exception as error:
        LOG.warning("Who began operation %s cannot be read or stored: %s", operation, redact(str(error)))
        return UNKNOWN
    return caller


def current() -> Initiator:
    """Who has called the driver."""
    found = oslo_context.get_current()
    is_user = isinstance(found, context.Context) and (found.user_id or found.tenant_id)
    return Initiator(found if is_user else None)


def _recorded(req: Any, grant_req: Any) -> Initiator:
    """What `_record` has stored; UNKNOWN if it has not, or if the user's own request has such an entry."""
    stored = _params(grant_req).get(KEY)
    if not isinstance(stored, dict) or KEY in _params(req):
        return UNKNOWN
    if not stored:
        return Initiator()
    return Initiator(
        context.Context(
            user_id=stored["user"],
            tenant_id=stored["project"],
            roles=stored["roles"],
            is_admin=stored["is_admin"],
            overwrite=False,
        )
    )


def _record(admin: Any, operation: str, caller: Initiator) -> None:
    user = caller.user
    entry = {} if user is None else {
        "user": user.user_id, "project": user.tenant_id, "roles": list(user.roles), "is_admin": bool(user.is_admin),
    }  # fmt: skip
    for stored in objects.GrantRequestV1.get_by_filter(admin, vnfLcmOpOccId=operation):
        stored.additionalParams = {**_params(stored), KEY: entry}
        stored.update(admin)


def _params(request: Any) -> dict[str, Any]:
    is_set = request is not None and request.obj_attr_is_set("additionalParams")
    return (request.additionalParams or {}) if is_set else {}
