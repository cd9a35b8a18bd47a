# SPDX-License-Identifier: Apache-2.0
"""
Admission webhooks in the way of a run: those that do not respond, those that deny, and those that a rollback deletes first.

The API server's error names a webhook, but neither its configuration nor its Service, which are what a user can look at.
Webhooks of the instance go last, as they may protect what their server needs. If that server never comes back, nothing would
ever go, and a user would have to delete the configuration on the cluster: one that does not respond goes first.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Phase, ToDelete
from k8s_cr_driver.errors import DriverError, Said
from k8s_cr_driver.journal.stored_form import NOTHING
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.refusals import unanswered_webhook
from k8s_cr_driver.objects.fields import entries, field
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.objects.marks import is_managed
from k8s_cr_driver.plan.actions import stays
from k8s_cr_driver.writes.context import WriteContext, by_uid, has_gone, selector
from k8s_cr_driver.writes.write_errors import ADMISSION, is_denied

LOG = logs.logger(__name__)

_CONFIGURATIONS = sorted(kind for kind in ADMISSION if kind.kind.endswith("WebhookConfiguration"))

DENIED_GRACE = 10.0
"""Seconds after a deletion for which a webhook may still deny another one: it may see the cluster through a cache."""
SILENT_FOR = 30.0
"""Seconds, or a part of the time that is left if that is shorter, for which a webhook may not respond: it may be starting."""


def is_unanswered(error: BaseException) -> bool:
    """Whether a write was refused because a webhook does not respond."""
    return bool(unanswered_webhook(str(error)))


def names_denial(error: BaseException) -> bool:
    """Whether the text of a refusal, of whatever class, says that a webhook or policy denies it."""
    return Said.DENIED in Said.of(str(error))


def remedy(client: Client, text: str) -> str:
    """Which configuration has the webhook that does not respond by `text`, and what to do; "" if `text` says no such thing."""
    name = unanswered_webhook(text)
    if not name:
        return ""
    for live in (live for kind in _CONFIGURATIONS for live in _listed(client, kind)):
        for webhook in _of_name(live, name):
            return f"{key_of(live)} has this webhook: {_server(webhook)}, or delete that configuration"
    return ""


def _of_name(configuration: Object | None, name: str) -> list[Object]:
    return [webhook for webhook in entries(configuration, "webhooks") if webhook.get("name") == name]


def _server(webhook: Object) -> str:
    service = field(webhook, "clientConfig", "service")
    if service is None:
        return "see that its URL responds"
    return f"see that Pods of Service {field(service, 'namespace')}/{field(service, 'name')} are ready"


def _listed(client: Client, kind: GroupKind) -> Collection[Object]:
    resource = client.resources.find(kind)
    try:
        return client.list(resource) if resource else ()
    except DriverError:
        return ()  # the error itself is reported in any case


def first_to_go(context: WriteContext, wanted: Collection[ObjectKey]) -> list[tuple[str, list[Object]]]:
    """
    The webhooks and policies of the instance that `wanted` does not have: what they deny or do not answer cannot be restored.

    As `Replacement.to_delete` has them. Lists those kinds alone that the inventory names.
    """
    content, instance = context.inventory.read() or NOTHING, context.instance
    several: list[tuple[str, list[Object]]] = []
    for kind in sorted(ADMISSION & content.kinds):
        resource, labelled = context.resources.find(kind), selector(instance, kind)
        lives = context.client.list(resource, selector=labelled) if resource else []
        others = [one for one in lives if key_of(one) not in wanted and is_managed(one, instance)]
        going = [one for one in others if content.may_own(one, instance) and not stays(content, one)]
        several += [(labelled, going)] if going else []
    return several


def delete_first(context: WriteContext, to_delete: Iterable[tuple[str, Sequence[Object]]]) -> bool:
    """
    Deletes the webhooks and policies among these before the instance is claimed; whether there were any.

    One that does not respond, or denies, keeps even the inventory from being written, and with it the token of the fence.
    """
    found = False
    for live in (live for _, lives in to_delete for live in lives if kind_of(live) in ADMISSION):
        resource = context.resources.find(kind_of(live))
        if resource is not None and not has_gone(context, key_of(live), resource, live["metadata"]["uid"]):
            context.client.delete(resource, by_uid(live), propagation="Background")
            found = True
    return found


class StoppedDeletions:
    """`nodes`: what the run has yet to delete."""

    def __init__(self, run: Run, nodes: Mapping[ObjectKey, ToDelete]) -> None:
        self._run, self._nodes = run, nodes
        self._timed: set[ObjectKey] = set()

    def may_be_admitted_later(self, node: ToDelete, error: DriverError, last_gone_at: float) -> bool:
        """Whether a webhook has denied the deletion, and an object still goes that may be the reason: a user of this one."""
        if not is_denied(error):
            return False
        others = (other for other in self._nodes.values() if other is not node)
        return time.monotonic() - last_gone_at < DENIED_GRACE or any(not is_denied(other.error) for other in others)

    async def silent(self, node: ToDelete) -> list[ToDelete]:
        """The configurations that have not responded to the deletion of `node`, and that do not respond later either."""
        name = unanswered_webhook(str(node.error))
        found = [one for one in self._nodes.values() if one.phase is Phase.BLOCKED and _of_name(one.live, name)] if name else []
        asked = {one.key: one for one in found if one.key not in self._timed}
        if not asked:
            return []
        self._timed |= asked.keys()
        await self._run.loop.pause(self._run.operation.share(SILENT_FOR))
        self._timed -= asked.keys()
        stopped = [one.key for one in self._nodes.values() if one.error and unanswered_webhook(str(one.error)) == name]
        silent = [one for one in asked.values() if stopped and one.phase is Phase.BLOCKED]
        for one in silent:
            LOG.warning("%s is deleted before %s, as it does not respond", one.key, stopped[0])
        return silent
