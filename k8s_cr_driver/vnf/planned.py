# SPDX-License-Identifier: Apache-2.0
"""
The plan of an operation: the engine's own writes as dry runs of the server, and what becomes of the instance's other objects.

Where the package itself brings the kind or the namespace, a dry run cannot be made; then the manifests decide. A Namespace or
CRD is looked into as a terminate does, and only with requests that read. Between the plan and the operation others may still
change the cluster.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.errors import ApiError, Conflict, Contended, DriverError, Refused
from k8s_cr_driver.journal.store import check_outlives
from k8s_cr_driver.journal.stored_form import INVENTORY_LABEL
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource, discover
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, key_of, split
from k8s_cr_driver.objects.marks import SHARED
from k8s_cr_driver.plan.actions import Action, Answer, Contents, Do, digest, is_member, may_go, plan
from k8s_cr_driver.plan.field_diff import Change, changes
from k8s_cr_driver.redaction import lines, redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.replicas import explicit_count, without_replicas
from k8s_cr_driver.vnf import counts, preflight, shared_crds
from k8s_cr_driver.vnf.rotation import Persist
from k8s_cr_driver.vnf.vdus import VduObjects
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.create_or_apply import write
from k8s_cr_driver.writes.guests import Guests
from k8s_cr_driver.writes.orphans import find_orphans, may_leave
from k8s_cr_driver.writes.write_errors import Immutable, NotReplaced, OtherOwners, missing

THREADS = 8
NAMED = 20
"""Actions that an error names."""
_BY_CRD = "fits the CustomResourceDefinition that the package brings"
_NOT_HERE = (403, 404, 405, 503)


def planned(
    trial: WriteContext,
    wanted: Sequence[CustomResource],
    live: Mapping[ObjectKey, Object],
    counted: Mapping[ObjectKey, VduObjects] | None = None,
) -> list[Action]:
    """
    The actions on the objects of an instance; `trial` writes dry runs, and its inventory has the content that is stored.

    `live`: the metadata of the instance's objects. `counted`: the VDUs of each object, which keep the counts on the cluster.
    """
    trials = _Trial(trial, wanted, counted or {})
    with ThreadPoolExecutor(THREADS) as pool:
        ordered = sorted(wanted, key=lambda one: (dependencies.rank(one.key.group_kind), one.key))
        answers = dict(zip((obj.key for obj in ordered), pool.map(trials.answer, ordered), strict=True))
    return _with_others(trial, answers, live)


def digest_of(actions: Sequence[Action], wanted: Sequence[CustomResource]) -> str:
    """The digest of a plan; that of the same plan is the same for each instance of a package."""
    return digest(actions, {obj.key: ".".join(obj.replicas() or ()) for obj in wanted})


def check(
    context: WriteContext, wanted: Sequence[CustomResource], approved: str, operation: str, persist: Persist
) -> None:
    """
    Refused if what is to be done is not the plan of the digest `approved`.

    A retry goes on with what an attempt of the same operation has begun.
    """
    trial = preflight.trial(context, persist)
    if trial.inventory.content.operation == operation:
        return
    known = persist(lambda: discover(context.connection))  # without the kinds that the package brings
    trial = replace(trial, client=Client(trial.connection, known))
    live = persist(lambda: members(trial))
    actions = persist(lambda: planned(trial, wanted, live))
    if (now := digest_of(actions, wanted)) != approved:
        remedy = "Nothing was written. Look at the plan again by k8s-cr plan, and give its digest"
        changes = [str(one) for one in actions if one.do is not Do.LEAVE]
        rest = [f"and {len(changes) - NAMED} more"] if len(changes) > NAMED else []
        raise Refused(lines([f"additionalParams plan: the plan is now {now}. {remedy}. It is:", *changes[:NAMED], *rest]))


def members(context: WriteContext) -> dict[ObjectKey, Object]:
    """The metadata of the instance's objects, by one LIST for each kind and namespace of the inventory."""
    content = context.inventory.content
    found = map(context.resources.find, sorted(content.kinds))
    asked = [
        (resource, namespace)
        for resource in found
        if resource is not None and "list" in resource.verbs
        for namespace in (sorted(content.namespaces) if resource.namespaced else [""])
    ]

    def ask(one: tuple[Resource, str]) -> list[Object]:
        try:
            return context.client.list(*one, "", METADATA_LIST)
        except ApiError as error:
            if error.status in _NOT_HERE:
                return []
            raise

    with ThreadPoolExecutor(THREADS) as pool:
        lives = itertools.chain.from_iterable(pool.map(ask, asked))
        ours = (live for live in lives if INVENTORY_LABEL not in (live["metadata"].get("labels") or {}))
        return {key_of(live): live for live in ours if is_member(content, context.instance, live)}


def _with_others(
    context: WriteContext, answers: Mapping[ObjectKey, Answer], live: Mapping[ObjectKey, Object]
) -> list[Action]:
    """What becomes of all, with claims that a terminate deletes together with their StatefulSet."""
    content, instance, lives = context.inventory.content, context.instance, dict(live)
    if not answers:
        lives |= {key_of(orphan): orphan for orphan in _orphans(context, lives)}
    going = may_go(content, instance, answers, lives)
    guests, others = Guests(context, going=going), dict[ObjectKey, Contents]()
    for key in (key for key in going if key.group_kind in SHARED):
        try:
            if (whole := _whole(context, key)) is not None:
                lives[key] = whole
                others[key] = Contents(redact(guests.reason(whole)), guests.taken_with(key))
        except DriverError as error:
            others[key] = Contents(f"if it cannot be examined: {redact(str(error))}")
    return plan(content, instance, answers, lives, others)


def _orphans(context: WriteContext, lives: Mapping[ObjectKey, Object]) -> list[Object]:
    leaving = (key for key in lives if may_leave(key.group_kind))
    whole = [_whole(context, key) for key in leaving]
    return [orphan for _, orphan in find_orphans(context, [live for live in whole if live is not None])]


def _whole(context: WriteContext, key: ObjectKey) -> Object | None:
    """Lists have metadata only."""
    resource = context.resources.find(key.group_kind)
    return context.client.read(resource, key) if resource else None


def _with_live_counts(counted: VduObjects, live: Object) -> CustomResource:
    """The object of the VDUs in `counted`, which are all or parts of it, with the counts that they have on the cluster."""
    now = counts.live(counted, dict.fromkeys((obj.key for obj in counted.values()), live))
    return next(iter(counts.with_counts(counted, now).values())).whole()


class _Trial:
    """Writes objects as dry runs."""

    def __init__(
        self, target: WriteContext, wanted: Sequence[CustomResource], counted: Mapping[ObjectKey, VduObjects]
    ) -> None:
        self._target, self._counted = target, counted
        self._namespaces = {obj.key.name for obj in wanted if obj.key.group_kind == NAMESPACE}
        self._crds = crds_of([obj.manifest for obj in wanted])
        check_outlives(target.inventory.key, [obj.key for obj in wanted])

    def answer(self, obj: CustomResource) -> Answer:
        """By the server's response; TransportError without one."""
        resource = self._target.resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1])
        if resource is None:
            return self._in_new_version(obj)
        live = self._live(obj, resource)
        if live is not None and obj.key in self._counted:
            obj = _with_live_counts(self._counted[obj.key], live)
        try:
            finished = Desired(obj, resource).has_ended(self._target.inventory, live)
            if finished and live is None:
                return Answer(Do.LEAVE)
            after = write(self._target, obj, resource, live, finished=finished)
        except Immutable:
            do = Do.APPLY if self._is_redefined(obj.key.group_kind, resource) else Do.REPLACE
            return Answer(do, "", _by_manifest(obj, live))
        except OtherOwners:
            return Answer(Do.APPLY, "", _by_manifest(obj, live))
        except Conflict as error:
            return Answer(Do.CONFLICT, _words(obj.key, error))
        except (Refused, ApiError) as error:
            return self._failed(obj, resource, live, error)
        except Contended as error:  # it changes at this moment: the verdicts on the others count
            return Answer(Do.REFUSE, _words(obj.key, error))
        if live is None:
            return _created(obj)
        found = changes(live, after)
        judged = shared_crds.judged(self._target, live, after) if obj.key.group_kind == CRD else shared_crds.Verdict()
        do = Do.REFUSE if judged.refusal else Do.APPLY if found else Do.LEAVE
        return Answer(do, redact(judged.refusal or judged.warning), found)

    def _in_new_version(self, obj: CustomResource) -> Answer:
        """Of a kind, or a version of it, that only the package's CRD brings."""
        resource = self._target.resources.find(obj.key.group_kind)
        live = self._live(obj, resource) if resource else None
        return Answer(Do.APPLY, _BY_CRD, _by_manifest(obj, live)) if live else _created(obj, _BY_CRD)

    def _live(self, obj: CustomResource, resource: Resource) -> Object | None:
        if "get" not in resource.verbs:
            return None
        try:
            return self._target.client.read(resource, obj.key)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _failed(
        self, obj: CustomResource, resource: Resource, live: Object | None, error: Refused | ApiError
    ) -> Answer:
        """A refusal for what the server cannot know yet: a namespace of the package, fields that the package's CRD adds."""
        if live is None and obj.key.namespace in self._namespaces and getattr(error, "status", 0) == 404:
            return _created(obj)
        if type(error) in (Refused, NotReplaced) and self._is_redefined(obj.key.group_kind, resource):
            return Answer(Do.APPLY, _BY_CRD, _by_manifest(obj, live)) if live else _created(obj, _BY_CRD)
        return Answer(Do.REFUSE, _words(obj.key, missing(error, obj.key)))

    def _is_redefined(self, kind: GroupKind, resource: Resource) -> bool:
        """Whether the package changes the CRD of a kind."""
        if kind not in self._crds:
            return False
        live = self._target.client.crd(resource)
        return bool(changes(live, _overlaid(live, self._crds[kind])))


def _created(obj: CustomResource, why: str = "") -> Answer:
    """With the fields of its manifest but for a count, which only Tacker knows."""
    sent = obj if explicit_count(obj) is None else without_replicas(obj)
    return Answer(Do.CREATE, why, changes({"metadata": {}}, sent.manifest))


def _by_manifest(obj: CustomResource, live: Object | None) -> list[Change]:
    return changes(live, _overlaid(live, obj.manifest)) if live else []


def _words(key: ObjectKey, error: DriverError) -> str:
    """The text of an error without the object that it begins with."""
    return redact(str(error)).removeprefix(str(key)).removeprefix(":").lstrip()


def _overlaid(live: Any, given: Any) -> Any:
    """`live` overlaid by `given`, mapping by mapping."""
    if not isinstance(live, Mapping) or not isinstance(given, Mapping):
        return copy.deepcopy(given)
    return {**live, **{name: _overlaid(live.get(name), value) for name, value in given.items()}}
