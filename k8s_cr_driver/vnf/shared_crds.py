# SPDX-License-Identifier: Apache-2.0
"""
A change of a CRD takes nothing from objects of others: what would is refused before the first write.

While another instance uses a CRD, a change of it may only add. The objects of users are judged one by one; `delete-guests`
permits what they lose. A rollback cannot be refused: it leaves such a CRD as the failed change has made it. If no CRD
becomes narrower, this costs one list of the instance's CRDs, and nothing in a change without CRDs.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import NamedTuple

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, DriverError, Refused, passes
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import CRD, Object, ObjectKey, key_of, labels
from k8s_cr_driver.objects.marks import used_by, users
from k8s_cr_driver.package.crd_changes import Loss, Narrowing, narrowed
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf import preflight
from k8s_cr_driver.vnf.rotation import Persist
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.crd_losses import KEEP, described, few, of_others
from k8s_cr_driver.writes.create_or_apply import NotAdopted, write
from k8s_cr_driver.writes.guests import claimed_by_others

LOG = logs.logger(__name__)


class Verdict(NamedTuple):
    """Of a change of one CRD: what refuses it, and what it loses without a loss of others; "" for nothing."""

    refusal: str = ""
    warning: str = ""
    takes_from_objects: bool = False


def guarded(context: WriteContext, wanted: Sequence[CustomResource], persist: Persist) -> list[CustomResource]:
    """
    The objects that may be written; Refused for a CRD whose change takes something from others.

    A rollback (`context.yields`) gets such a CRD as it is on the cluster.
    """
    kinds = [defined_by(obj.manifest) for obj in wanted if obj.key.group_kind == CRD]
    keys = [obj.key for obj in wanted if obj.key.group_kind == CRD]
    lives = persist(lambda: _lives(context, keys)) if any(map(context.resources.is_served, kinds)) else {}
    return [_guarded(context, obj, lives[obj.key], persist) if obj.key in lives else obj for obj in wanted]


def _lives(context: WriteContext, keys: Collection[ObjectKey]) -> dict[ObjectKey, Object]:
    """
    The CRDs that the instance uses, all of them with one request, and those that it may adopt by force.

    None if the account may not list them: the run says so.
    """
    resource = context.resources.find(CRD)
    try:
        found = context.client.list(resource, selector=used_by(context.instance)) if resource else []
    except ApiError as error:
        if error.status != 403:
            raise
        return {}
    lives = {key_of(one): one for one in found}
    others = [key for key in keys if key not in lives] if context.adopt and context.force else []
    return lives | {key: live for key in others if (live := context.client.find(resource, key))}


def _guarded(context: WriteContext, obj: CustomResource, live: Object, persist: Persist) -> CustomResource:
    if not narrowed(live, obj.manifest):
        return obj
    trial = preflight.trial(context, persist)
    verdict = persist(functools.partial(_tried, trial, obj, live))
    if verdict.warning:
        LOG.warning("%s: %s", obj.key, verdict.warning)
    if not verdict.refusal:
        return obj
    if not context.yields:
        raise Refused(f"{obj.key}: {verdict.refusal}")
    if not verdict.takes_from_objects:
        return obj
    LOG.warning("%s: the rollback leaves it as it is: %s", obj.key, verdict.refusal)
    return obj.with_manifest({**obj.manifest, "spec": live["spec"]})


def _tried(trial: WriteContext, obj: CustomResource, live: Object) -> Verdict:
    resource = trial.resources.find(CRD)
    assert resource is not None  # it was read
    try:
        merged = write(trial, obj, resource, live)
    except NotAdopted:
        merged = {**live, "spec": {**live["spec"], **obj.manifest["spec"]}}
    except DriverError as error:
        if passes(error):
            raise
        return Verdict()  # the run says why
    return judged(trial, live, merged)


def judged(context: WriteContext, live: Object, merged: Object) -> Verdict:
    """The verdict on a change of the CRD `live` to `merged`. ApiError or TransportError if others' objects cannot be read."""
    less = narrowed(live, merged)
    if not less:
        return Verdict()
    lost = of_others(context, live, merged, sorted({one.version for one in less}))
    is_used = bool(users(live) - {context.instance}) or bool(claimed_by_others(context.inventory, live))
    if lost and (is_used or not context.delete_guests):
        is_users = not is_used and used_by(context.instance) in labels(live)
        remedy = ", or give a new change of package additionalParams delete-guests: true to permit it" if is_users else ""
        whose = "others" if is_used else "users"
        return Verdict(
            f"the change takes from objects of {whose}: {described(lost)}. {KEEP}, or delete these objects first{remedy}.",
            takes_from_objects=True,
        )
    if is_used:
        return Verdict(f"other VNF instances use it, and the change does not only add to it: {_parts(less)}. {KEEP}.")
    return Verdict(warning=f"its schema becomes narrower: {_parts(less)}{_permitted(lost)}")


def _permitted(lost: Sequence[Loss]) -> str:
    return f"; as delete-guests permits, {described(lost)}" if lost else ""


def _parts(less: Sequence[Narrowing]) -> str:
    return redact(few([str(one) for one in less]))

