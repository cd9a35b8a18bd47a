# SPDX-License-Identifier: Apache-2.0
"""What an operation would do to each object of a set: the engine's own writes, as dry runs of the server.

The only difference to a real run is the connection: it marks every write as a dry run, so that nothing can be stored.
Where the package itself brings the kind or the namespace, a dry run cannot be made; then the manifests decide.
"""

from __future__ import annotations

import contextlib
import copy
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k8s_cr_driver.cli.cluster import THREADS, Cluster, Instance
from k8s_cr_driver.cli.descendants import crd_of
from k8s_cr_driver.cli.fates import Fates
from k8s_cr_driver.cli.field_diff import Change, changes
from k8s_cr_driver.engine import api_services
from k8s_cr_driver.engine.nodes import Desired
from k8s_cr_driver.engine.not_ready import NotReady
from k8s_cr_driver.errors import ApiError, Conflict, Contended, DriverError, Refused
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import crds_of
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, kind_of, split
from k8s_cr_driver.ownership.context import WriteContext
from k8s_cr_driver.ownership.inventory import Inventory
from k8s_cr_driver.ownership.write import write
from k8s_cr_driver.ownership.write_errors import NOT_RESTORED, Immutable, NotReplaced, OtherOwners, missing
from k8s_cr_driver.package import manifests, schema, vnfd
from k8s_cr_driver.redaction import redact
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.registry import resource_for
from k8s_cr_driver.vnf import counts, rotation, shared_crds, vdus
from k8s_cr_driver.vnf.vdus import VduObjects

_NOBODY = "00000000-0000-0000-0000-000000000000"
"""Stands for an instance that does not exist yet."""
_BY_CRD = "fits the CustomResourceDefinition that the package brings"


@dataclass(frozen=True)
class Outcome:
    """The verdict on one object: created, changed, replaced, unchanged, deleted, released, conflict or refused."""

    key: ObjectKey
    verdict: str
    changes: Sequence[Change] = ()
    message: str = ""

    def as_json(self) -> dict[str, Any]:
        fields = [{"field": one.path, "before": one.before, "after": one.after} for one in self.changes]
        return {"object": str(self.key), "verdict": self.verdict, "changes": fields, "message": self.message}


def outcomes_of(
    cluster: Cluster, instance: Instance | None, folder: Path, desired: Sequence[Object], namespace: str
) -> list[Outcome]:
    """The outcomes for a new instance, or for a change of `instance` to `desired`; `cluster` is on a DryRun.

    Raises InvalidPackage, and NotReady where the server of an API that is needed is down.
    """
    if down := api_services.reports(cluster.resources, manifests.foreign_kinds(desired)):
        raise NotReady("Kinds that are needed are unavailable:", down)
    manifests.place(desired, cluster.resources.scope_of, namespace)
    crds = crds_of(desired)
    schema.remove_nulls(desired, lambda kind: crds.get(kind) or crd_of(cluster, kind, {}))
    schema.check(desired)
    dependencies.check(desired)
    if instance:
        rotation.rotate(desired, rotation.Lives(cluster.client, instance.id))
    else:
        rotation.mark(desired)
    wanted = [_resource(cluster, obj, crds) for obj in desired]
    counted = _counted(folder, wanted) if instance else {}
    trial = _Trial(cluster, instance, {obj.key for obj in wanted}, crds, counted)
    with ThreadPoolExecutor(THREADS) as pool:
        ordered = sorted(wanted, key=lambda one: (dependencies.rank(one.key.group_kind), one.key))
        outcomes = list(pool.map(trial.outcome, ordered))
    return outcomes + (list(_unwanted(cluster, instance, {obj.key for obj in wanted})) if instance else [])


def _resource(cluster: Cluster, obj: Object, crds: Mapping[GroupKind, Object]) -> CustomResource:
    """The object with the CRD that names the path of its count."""
    sent = resource_for(obj, crds.get(kind_of(obj)))
    resource = cluster.resources.find(sent.key.group_kind)
    if sent.crd is None and not is_builtin(sent.key.group_kind) and resource is not None and "scale" in resource.subresources:
        return type(sent)(obj, crd_of(cluster, sent.key.group_kind, {}))
    return sent


def _counted(folder: Path, wanted: Sequence[CustomResource]) -> dict[ObjectKey, dict[str, CustomResource]]:
    """The VDUs of each object in one of the flavours, which keep their counts; `validate` reports bad flavours."""
    found: dict[ObjectKey, dict[str, CustomResource]] = defaultdict(dict)
    for template in vnfd.flavours(folder).values():
        with contextlib.suppress(Refused):
            for obj in vdus.assign(wanted, vnfd.vdu_nodes(template), partial=True).values():
                found[obj.key][obj.part] = obj
    return found


def _with_live_counts(counted: VduObjects, live: Object) -> CustomResource:
    """The object of the VDUs in `counted`, which are all or parts of it, with the counts that they have on the cluster."""
    now = counts.live(counted, dict.fromkeys((obj.key for obj in counted.values()), live))
    return next(iter(counts.with_counts(counted, now).values())).whole()


def _unwanted(cluster: Cluster, instance: Instance, wanted: Collection[ObjectKey]) -> Iterator[Outcome]:
    for fate in Fates(cluster, instance, cluster.members([instance])[instance.id], wanted).all():
        why = NOT_RESTORED if fate.key in instance.content.adopted else fate.why
        yield Outcome(fate.key, "deleted" if fate.verb == "delete" else "released", message=why)


class _Trial:
    """Writes objects as dry runs."""

    def __init__(
        self,
        cluster: Cluster,
        instance: Instance | None,
        keys: Collection[ObjectKey],
        crds: Mapping[GroupKind, Object],
        counted: Mapping[ObjectKey, VduObjects],
    ) -> None:
        self._cluster, self._counted, self._crds = cluster, counted, crds
        self._namespaces = {key.name for key in keys if key.group_kind == NAMESPACE}
        inventory = Inventory(
            cluster.connection, instance.namespace if instance else "default", instance.id if instance else _NOBODY
        )
        if instance:
            inventory.content = instance.content
        inventory.check_not_in_set(keys)
        self._target = WriteContext(cluster.client, inventory, is_trial=True)

    def outcome(self, obj: CustomResource) -> Outcome:
        """The outcome by the server's response; TransportError without one."""
        resource = self._cluster.resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1])
        if resource is None:
            return self._in_new_version(obj)
        live = self._live(obj, resource)
        if live is not None and obj.key in self._counted:
            obj = _with_live_counts(self._counted[obj.key], live)
        try:
            finished = Desired(obj, resource).has_ended(self._target.inventory, live)
            if finished and live is None:
                return Outcome(obj.key, "unchanged")
            after = write(self._target, obj, resource, live, finished=finished)
        except Immutable:
            verdict = "changed" if self._is_redefined(obj.key.group_kind, resource) else "replaced"
            return Outcome(obj.key, verdict, self._by_manifest(obj, live))
        except OtherOwners:
            return Outcome(obj.key, "changed", self._by_manifest(obj, live))
        except Conflict as error:
            return Outcome(obj.key, "conflict", message=_words(obj.key, error))
        except (Refused, ApiError) as error:
            return self._failed(obj, resource, live, error)
        except Contended as error:  # it changes at this moment: the verdicts on the others count
            return Outcome(obj.key, "refused", message=_words(obj.key, error))
        if live is None:
            return Outcome(obj.key, "created")
        found = changes(live, after)
        judged = shared_crds.judged(self._target, live, after) if obj.key.group_kind == CRD else shared_crds.Verdict()
        name = "refused" if judged.refusal else "changed" if found else "unchanged"
        return Outcome(obj.key, name, found, redact(judged.refusal or judged.warning))

    def _in_new_version(self, obj: CustomResource) -> Outcome:
        """Of a kind, or a version of it, that only the package's CRD brings."""
        resource = self._cluster.resources.find(obj.key.group_kind)
        live = self._live(obj, resource) if resource else None
        return Outcome(obj.key, "changed" if live else "created", self._by_manifest(obj, live), _BY_CRD)

    def _live(self, obj: CustomResource, resource: Resource) -> Object | None:
        if "get" not in resource.verbs:
            return None
        try:
            return self._cluster.client.read(resource, obj.key)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _failed(
        self, obj: CustomResource, resource: Resource, live: Object | None, error: Refused | ApiError
    ) -> Outcome:
        """A refusal for what the server cannot know yet: a namespace of the package, fields that the package's CRD adds."""
        if live is None and obj.key.namespace in self._namespaces and getattr(error, "status", 0) == 404:
            return Outcome(obj.key, "created")
        if type(error) in (Refused, NotReplaced) and self._is_redefined(obj.key.group_kind, resource):
            return Outcome(obj.key, "changed" if live else "created", self._by_manifest(obj, live), _BY_CRD)
        return Outcome(obj.key, "refused", message=_words(obj.key, missing(error, obj.key)))

    def _is_redefined(self, kind: GroupKind, resource: Resource) -> bool:
        """Whether the package changes the CRD of a kind."""
        if kind not in self._crds:
            return False
        live = self._cluster.client.crd(resource)
        return bool(changes(live, _overlaid(live, self._crds[kind])))

    def _by_manifest(self, obj: CustomResource, live: Object | None) -> list[Change]:
        return changes(live, _overlaid(live, obj.manifest)) if live else []


def _words(key: ObjectKey, error: DriverError) -> str:
    """The text of an error without the object that it begins with."""
    return redact(str(error)).removeprefix(str(key)).removeprefix(":").lstrip()


def _overlaid(live: Any, given: Any) -> Any:
    """`live` overlaid by `given`, mapping by mapping."""
    if not isinstance(live, Mapping) or not isinstance(given, Mapping):
        return copy.deepcopy(given)
    return {**live, **{name: _overlaid(live.get(name), value) for name, value in given.items()}}
