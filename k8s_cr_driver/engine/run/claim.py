# SPDX-License-Identifier: Apache-2.0
"""The beginning of a run: it makes itself the only one that writes the objects of its instance."""

from __future__ import annotations

import math
import time

from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.engine.delete.stopped_deletions import DENIED_GRACE
from k8s_cr_driver.engine.report import permissions, webhooks
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.errors import ApiError, Contended, DriverError, Refused, Superseded
from k8s_cr_driver.journal.store import CONFIG_MAPS
from k8s_cr_driver.writes.orphans import leaving_kinds


class Claim:
    """Of one run. With `deletes_all` the webhooks of the instance go in any case."""

    def __init__(self, run: Run, desired: DesiredSet, replacement: Replacement, *, deletes_all: bool) -> None:
        self._operation, self._context, self._set = run.operation, run.context, desired
        self._replacement, self._deletes_all = replacement, deletes_all
        self._freed_at = -math.inf

    def make(self) -> bool:
        """False if the instance has nothing and shall have nothing. Widens the inventory by the set."""
        may_read = self._operation.persist(self._check_permissions)
        try:
            is_claimed = self._operation.persist(lambda: self._claim(unread=may_read))
        except ApiError as error:
            if why := webhooks.remedy(self._context.client, str(error)):
                raise Refused(f"{error}. {why}.") from None
            raise
        if is_claimed:
            self._check_current()
        return is_claimed

    def _check_permissions(self) -> bool:
        objects = [(key, node.resource) for key, node in self._set.nodes.items()]
        return permissions.check(self._context.connection, objects, CONFIG_MAPS)

    def _claim(self, *, unread: bool) -> bool:
        self._operation.check_current()
        try:
            return self._context.inventory.claim(
                self._operation.id,
                self._set.kinds,
                self._set.namespaces,
                create=bool(self._set.nodes),
                members=self._set.nodes,
                leaving=[key for key in self._set.nodes if key.group_kind in leaving_kinds()],
                unread=unread,
            )
        except DriverError as error:
            self._mind_refusal(error)
            raise

    def _mind_refusal(self, error: DriverError) -> None:
        """
        Deletes the webhooks and policies of the instance that go, if they may have refused the claim.

        Contended if they have denied it, as API servers notice the deletion a little later.
        """
        is_denied = webhooks.is_denied(error)
        if not (is_denied or webhooks.is_unanswered(error)):
            return
        self._operation.check_current()
        first = webhooks.first_to_go(self._context, ()) if self._deletes_all else self._replacement
        if webhooks.delete_first(self._context, first):
            self._freed_at = time.monotonic()
        if is_denied and time.monotonic() - self._freed_at < DENIED_GRACE:
            raise Contended(str(error)) from None

    def _check_current(self) -> None:
        """A rollback that has begun meanwhile may have found no inventory, so no token could stop this run."""
        try:
            self._operation.check_current()
        except Superseded:
            if self._context.inventory.is_new:
                self._operation.persist(self._context.inventory.delete)
            raise
