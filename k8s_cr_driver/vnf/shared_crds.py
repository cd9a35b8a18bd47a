# SPDX-License-Identifier: Apache-2.0
"""
A change of a CRD takes nothing from objects of others: what would is refused before the first write.

While another instance uses a CRD, a change of it may only add. The objects of users are judged one by one; `delete-guests`
permits what they lose. A rollback cannot be refused: it leaves such a CRD as the failed change has made it. If no CRD
becomes narrower, this costs one list of the instance's CRDs, and nothing in a change without CRDs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, DriverError, Refused, passes
from k8s_cr_driver.kube.discovery import Resources
from k8s_cr_driver.objects.crds import defined_by, served_versions
from k8s_cr_driver.objects.keys import CRD, Object, ObjectKey, key_of
from k8s_cr_driver.objects.marks import is_managed, used_by, users
from k8s_cr_driver.package.crd_changes import Loss, Narrowing, losses, narrowed, shown
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.vnf import preflight
from k8s_cr_driver.vnf.rotation import Persist
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.create_or_apply import write
from k8s_cr_driver.writes.guests import Guests
from k8s_cr_driver.writes.shared import claimed_by_others

LOG = logs.logger(__name__)

NAMED = 3
"""Objects, or parts of a schema, that a message names."""
_EFFECTS = {
    "drop": "would lose {fields}",
    "refuse": "could not be written any more because of {fields}",
    "not serve": "would not be served any more in version {version}",
}
_KEEP = "Bring a CRD that only adds to the one on the cluster"


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
    lives = persist(lambda: _lives(context)) if any(map(context.resources.is_served, kinds)) else {}
    return [_guarded(context, obj, lives[obj.key], persist) if obj.key in lives else obj for obj in wanted]


def _lives(context: WriteContext) -> dict[ObjectKey, Object]:
    """The CRDs that the instance uses, all of them with one request; none if the account may not list them: the run says so."""
    resource = context.resources.find(CRD)
    try:
        found = context.client.list(resource, selector=used_by(context.instance)) if resource else []
    except ApiError as error:
        if error.status != 403:
            raise
        return {}
    return {key_of(one): one for one in found}


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
    lost = _lost(context, live, merged, sorted({one.version for one in less}))
    is_used = bool(users(live) - {context.instance}) or bool(claimed_by_others(context.inventory, live))
    if lost and (is_used or not context.delete_guests):
        remedy = "" if is_used else ", or give a new change of package additionalParams delete-guests: true to permit it"
        whose = "others" if is_used else "users"
        return Verdict(
            f"the change takes from objects of {whose}: {_objects(lost)}. {_KEEP}, or delete these objects first{remedy}.",
            takes_from_objects=True,
        )
    if is_used:
        return Verdict(f"other VNF instances use it, and the change does not only add to it: {_parts(less)}. {_KEEP}.")
    return Verdict(warning=f"its schema becomes narrower: {_parts(less)}{_permitted(lost)}")


def _permitted(lost: Sequence[Loss]) -> str:
    return f"; as delete-guests permits, {_objects(lost)}" if lost else ""


def _lost(context: WriteContext, live: Object, merged: Object, versions: Iterable[str]) -> list[Loss]:
    return losses(live, merged, [one for version in versions for one in _of_others(context, live, version)])


def _of_others(context: WriteContext, crd: Object, version: str) -> Iterator[Object]:
    """The objects of the CRD's kind that neither belong to the instance nor descend from objects of it."""
    kinds = Resources()
    kinds.add_crd(crd)
    resource = kinds.find(defined_by(crd), version)
    if resource is not None and version in served_versions(crd):
        found = [one for one in context.client.list_if_served(resource) if not is_managed(one, context.instance)]
        yield from Guests(context).strangers(found)


def _objects(lost: Sequence[Loss]) -> str:
    by_object: dict[tuple[ObjectKey, str, str], list[str]] = {}
    for one in lost:
        by_object.setdefault((one.key, one.version, one.effect), []).append(shown(one.path))
    texts = [
        f"{key} {_EFFECTS[effect].format(fields=', '.join(paths), version=version)}"
        for (key, version, effect), paths in by_object.items()
    ]
    return redact(_few(texts))


def _parts(less: Sequence[Narrowing]) -> str:
    return redact(_few([str(one) for one in less]))


def _few(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return "; ".join(texts[:NAMED]) + more
