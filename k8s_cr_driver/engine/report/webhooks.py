# SPDX-License-Identifier: Apache-2.0
"""
Admission webhooks in the way of a run: those that do not respond, and those that a rollback deletes first.

The API server's error names a webhook, but neither its configuration nor its Service, which are what a user can look at.
"""

from __future__ import annotations

from collections.abc import Collection

from k8s_cr_driver.engine.delete.replacer import Replacement
from k8s_cr_driver.errors import DriverError, Said
from k8s_cr_driver.journal.stored_form import NOTHING
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.refusals import unanswered_webhook
from k8s_cr_driver.objects.fields import entries, field
from k8s_cr_driver.objects.keys import GroupKind, Object, ObjectKey, key_of, kind_of
from k8s_cr_driver.objects.marks import is_managed
from k8s_cr_driver.plan.actions import stays
from k8s_cr_driver.writes.context import WriteContext, has_gone, selector
from k8s_cr_driver.writes.write_errors import ADMISSION

_CONFIGURATIONS = sorted(kind for kind in ADMISSION if kind.kind.endswith("WebhookConfiguration"))


def is_unanswered(error: BaseException) -> bool:
    """Whether a write was refused because a webhook does not respond."""
    return bool(unanswered_webhook(str(error)))


def is_denied(error: BaseException) -> bool:
    """Whether a write was refused because a webhook or policy denies it."""
    return Said.DENIED in Said.of(str(error))


def remedy(client: Client, text: str) -> str:
    """Which configuration has the webhook that does not respond by `text`, and what to do; "" if `text` says no such thing."""
    name = unanswered_webhook(text)
    if not name:
        return ""
    for kind in _CONFIGURATIONS:
        for live in _listed(client, kind):
            for webhook in entries(live, "webhooks"):
                if webhook.get("name") == name:
                    return f"{key_of(live)} has this webhook: {_server(webhook)}, or delete that configuration"
    return ""


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


def first_to_go(context: WriteContext, wanted: Collection[ObjectKey]) -> Replacement:
    """
    The webhooks and policies of the instance that `wanted` does not have: what they deny or do not answer cannot be restored.

    Lists those kinds alone that the inventory names.
    """
    content, instance = context.inventory.read() or NOTHING, context.instance
    several: list[tuple[str, list[Object]]] = []
    for kind in sorted(ADMISSION & content.kinds):
        resource, labelled = context.resources.find(kind), selector(instance, kind)
        lives = context.client.list(resource, selector=labelled) if resource else []
        others = [one for one in lives if key_of(one) not in wanted and is_managed(one, instance)]
        own = [one for one in others if content.may_own(one, instance)]
        going = [one for one in own if not stays(content, one)]
        several += [(labelled, going)] if going else []
    return Replacement(several)


def delete_first(context: WriteContext, replacement: Replacement) -> bool:
    """
    Deletes the webhooks and policies of `replacement` before the instance is claimed; whether there were any.

    One that does not respond, or denies, keeps even the inventory from being written, and with it the token of the fence.
    """
    found = False
    for _, lives in replacement.to_delete:
        for live in filter(lambda one: kind_of(one) in ADMISSION, lives):
            resource = context.resources.find(kind_of(live))
            if resource is not None and not has_gone(context, key_of(live), resource, live["metadata"]["uid"]):
                context.client.delete(resource, _only_uid(live), propagation="Background")
                found = True
    return found


def _only_uid(live: Object) -> Object:
    """An object as a precondition: others may have changed it since it was read."""
    metadata = {name: value for name, value in live["metadata"].items() if name != "resourceVersion"}
    return {**live, "metadata": metadata}
