# SPDX-License-Identifier: Apache-2.0
"""
What objects of others lose by a write that makes a CRD narrower, and a CRD that stays as it is for their sake.

A CRD that another instance has left is written by the next instance that brings it. Whatever other objects of its kind have,
that one's package does not know. No request for a CRD that does not become narrower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.errors import ApiError, Refused
from k8s_cr_driver.kube.discovery import Resources
from k8s_cr_driver.objects.crds import defined_by, served_versions
from k8s_cr_driver.objects.fields import shown
from k8s_cr_driver.objects.keys import CRD, Object, ObjectKey
from k8s_cr_driver.objects.marks import is_managed
from k8s_cr_driver.package.crd_changes import Loss, losses, narrowed
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.guests import Guests

LOG = logs.logger(__name__)

NAMED = 3
"""Objects, or parts of a schema, that a message names."""
KEEP = "Bring a CRD that only adds to the one on the cluster"
_EFFECTS = {
    "drop": "would lose {fields}",
    "refuse": "could not be written any more because of {fields}",
    "not serve": "would not be served any more in version {version}",
}


def of_others(context: WriteContext, live: Object, merged: Object, versions: Iterable[str]) -> list[Loss]:
    """
    What others lose by a change of the CRD `live` to `merged`, in these versions.

    ApiError or TransportError if their objects cannot be read.
    """
    return losses(live, merged, [one for version in versions for one in _objects_of_others(context, live, version)])


def described(lost: Sequence[Loss]) -> str:
    """The first objects, each with its fields."""
    by_object: dict[tuple[ObjectKey, str, str], list[str]] = {}
    for one in lost:
        by_object.setdefault((one.key, one.version, one.effect), []).append(shown(one.path))
    texts = [
        f"{key} {_EFFECTS[effect].format(fields=', '.join(paths), version=version)}"
        for (key, version, effect), paths in by_object.items()
    ]
    return redact(few(texts))


def few(texts: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f"; and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return "; ".join(texts[:NAMED]) + more


def stays(context: WriteContext, obj: CustomResource, live: Object) -> bool:
    """
    Whether a CRD that another instance has left stays as it is, as objects of others need what the manifest does not have.

    Refused if the manifest has other values, too, or if these objects cannot be listed.
    """
    less = narrowed(live, obj.manifest) if obj.key.group_kind == CRD and not context.narrows_crds else []
    if not less:
        return False
    try:
        lost = of_others(context, live, obj.manifest, sorted({one.version for one in less}))
    except ApiError as error:
        if error.status != 403:
            raise
        raise Refused(f"{obj.key}: whether objects of others need more than the manifest has is not known: {error}") from None
    if lost and narrowed(obj.manifest, live):
        raise Refused(f"{obj.key}: the manifest takes from objects of others: {described(lost)}. {KEEP}, or delete them first.")
    if lost and not context.is_trial:
        LOG.warning("%s stays as it is, wider than the manifest, for the sake of others: %s", obj.key, described(lost))
    return bool(lost)


def _objects_of_others(context: WriteContext, crd: Object, version: str) -> Iterator[Object]:
    """The objects of the CRD's kind that neither belong to the instance nor descend from objects of it."""
    kinds = Resources()
    kinds.add_crd(crd)
    resource = kinds.find(defined_by(crd), version)
    if resource is not None and version in served_versions(crd):
        found = [one for one in context.client.list_if_served(resource) if not is_managed(one, context.instance)]
        yield from Guests(context).strangers(found)
