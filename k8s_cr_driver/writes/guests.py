# SPDX-License-Identifier: Apache-2.0
"""
Guests: objects of others for whose sake a Namespace or CRD stays.

In a CRD: any object of its kind. In a Namespace: any object without an owner that is a workload, a volume claim, or a custom
resource of a kind that a VNF package has brought; a Helm release; what an instance has kept. And whatever the inventory of
another instance names. What cannot be listed counts as there. All else goes with the Namespace. Those that go at the same time
are looked into together: the requests grow neither with the kinds of the cluster nor with the Namespaces.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from k8s_cr_driver.errors import ApiError, Contended, JustRestarted, TransportError, passes
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.kube import timing
from k8s_cr_driver.kube.client import CRDS
from k8s_cr_driver.kube.connection import METADATA_LIST
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.kube.lists import PAGE
from k8s_cr_driver.objects.crds import defined_by, is_established, is_refused
from k8s_cr_driver.objects.keys import NAMESPACE, GroupKind, Object, ObjectKey, annotations_of, key_of, kind_of, references
from k8s_cr_driver.objects.managed_fields import has_applier
from k8s_cr_driver.objects.marks import (
    KEEPS,
    KEPT_BY,
    is_released,
    users,
)
from k8s_cr_driver.writes.context import WriteContext
from k8s_cr_driver.writes.orphans import find_orphans
from k8s_cr_driver.writes.owners import LONGEST_CHAIN, Kin

SECRETS, PODS, CLAIMS = GroupKind("", "Secret"), GroupKind("", "Pod"), GroupKind("", "PersistentVolumeClaim")
WORKLOADS = (
    *(GroupKind("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
    *(GroupKind("batch", kind) for kind in ("CronJob", "Job")),
    PODS,
)
NAMED = 3
"""Guests that are named in the reason."""
LISTED = 1000
"""Guests that `delete_guests` takes along, and that are named before."""
TRIES = 4
"""How often a list that fails is repeated at least."""
_UNKNOWN = "it may hold objects of others"


Found = TypeVar("Found")


class _Content(NamedTuple):
    """What is listed in Namespaces. `may_be_hidden`: without the permission it is left out."""

    resource: Resource
    selector: str = ""
    may_be_hidden: bool = False


class _TooMany(Exception):
    pass


class Guests:
    """
    Looks for guests; one for each run, which remembers what it has learned of owners, and since when lists fail.

    `going`: objects that the instance will have deleted by then, whatever they look like now. `leaving`: objects of the
    instance that are deleted with all that their controllers leave, at whatever time these make it.
    """

    def __init__(
        self, context: WriteContext, going: Collection[ObjectKey] = (), leaving: Collection[Object] = ()
    ) -> None:
        self._context, self._client, self._leaving, self._kin = context, context.client, leaving, Kin(context, going)
        self.taken: dict[ObjectKey, list[ObjectKey]] = {}
        """By Namespace or CRD, what of others goes with it, as `delete_guests` permits."""
        self._failures: tuple[str, list[float]] = ("", [])
        """The request that has failed last, and when it has without another one between."""

    def reason(self, live: Object) -> str:
        """The same for one."""
        return self.reasons([live])[key_of(live)]

    def reasons(self, lives: Sequence[Object]) -> dict[ObjectKey, str]:
        """Why Namespaces and CRDs must stay; "" for one that nobody else needs.

        Any error but a missing permission may pass: it is raised, so that the caller repeats the call, until the same request
        has failed for long enough. The inventories come last: an instance that begins meanwhile claims its own before it
        writes any object.
        """
        self.taken |= {key_of(live): [] for live in lives}
        found: dict[ObjectKey, str] = {}
        of_kind: dict[GroupKind, list[Object]] = {}
        for live in lives:
            if kind_of(live) != NAMESPACE:
                found[key_of(live)] = self._in_crd(live, of_kind)
        namespaces = {key_of(live).name: live for live in lives if kind_of(live) == NAMESPACE}
        found |= self._in_namespaces(namespaces, of_kind) if namespaces else {}
        if not all(found.values()):
            others = self._context.inventory.others()
            found |= {key_of(live): claim_of(others, live) for live in lives if not found[key_of(live)]}
        return found

    def taken_with(self, key: ObjectKey) -> str:
        """What is said of the deletion of one that has been looked into; "" if it takes nothing of others along."""
        taken = self.taken.get(key, [])
        return f"with objects of others: {_shown(taken, LISTED)}" if taken else ""

    def strangers(self, found: Iterable[Object]) -> Iterator[Object]:
        """Those of the objects that neither are the instance's, nor descend from one, nor are deleted."""
        return (live for live in found if not self._kin.goes(live, LONGEST_CHAIN))

    def _in_crd(self, crd: Object, of_kind: dict[GroupKind, list[Object]]) -> str:
        served, kind = Resources(), defined_by(crd)
        served.add_crd(crd)
        resource = served.find(kind)
        if resource is None:
            return f"{_UNKNOWN}: no version of it is served, so that they cannot be listed"
        # Of a kind that was ever served there may be objects, also if a server does not know it, as one that lags.
        find = self._client.list if is_established(crd) else self._client.list_if_served

        def staying() -> list[Object]:
            of_kind[kind] = list(find(resource, "", "", METADATA_LIST))
            return list(self._staying(self.strangers(of_kind[kind]), self.taken[key_of(crd)]))

        found, why, _ = self._tried(resource.path(), staying)
        return why or _named(found)

    def _in_namespaces(
        self, namespaces: dict[str, Object], of_kind: dict[GroupKind, list[Object]]
    ) -> dict[ObjectKey, str]:
        guests: dict[str, list[Object]] = defaultdict(list)
        brought, why, _ = self._tried(CRDS.path(), self._brought)
        for content in () if why else self._contents(brought):
            known = of_kind.get(content.resource.group_kind)
            listed = functools.partial(self._listed, content, namespaces.keys(), known)
            found, failure, is_forbidden = self._tried(content.resource.path(), listed)
            why = why or ("" if is_forbidden and content.may_be_hidden else failure)
            for live in found:
                guests[key_of(live).namespace].append(live)
        named = namespaces.items()
        return {key_of(live): self._kept_in(live) or why or self._named_in(live, guests[name]) for name, live in named}

    def _contents(self, brought: Iterable[Resource]) -> Iterator[_Content]:
        """Users' data last. An account that may list Secrets may read them, and one of a tenant knows no kinds of others."""
        resources, own = self._context.resources, self._context.inventory.content.kinds
        if secrets := resources.find(SECRETS):
            yield _Content(secrets, "owner=helm", may_be_hidden=True)
        for one in brought:
            yield _Content(one, may_be_hidden=one.group_kind not in own)
        for found in filter(None, map(resources.find, (*WORKLOADS, CLAIMS))):
            yield _Content(found)

    def _brought(self) -> list[Resource]:
        """The kinds in namespaces whose CRDs instances have brought, also if none uses them now."""
        inventory = self._context.inventory
        members = (inventory.content.members or frozenset()) | (inventory.remembered.members or frozenset())
        found = self._client.list(CRDS, "", "", METADATA_LIST)
        is_brought = (users(one) or is_released(one) or has_applier(one, KEPT_BY) or key_of(one) in members for one in found)
        names = {key_of(one).name for one in itertools.compress(found, is_brought)}
        return [one for one in self._context.resources.defined_by(names) if one.namespaced]

    def _listed(
        self, content: _Content, namespaces: Collection[str], known: Iterable[Object] | None
    ) -> list[Object]:
        """What nobody owns of others: by one list for all namespaces, unless these would have fewer pages."""
        left = PAGE * len(namespaces)

        def keep(live: Object) -> Object | None:
            nonlocal left
            left -= 1
            if left < 0:
                raise _TooMany
            return live if is_free(live) else None

        def is_free(live: Object) -> bool:
            return key_of(live).namespace in namespaces and not references(live)

        if known is None:
            known = self._listed_in(content, namespaces, keep)
        return list(self.strangers(filter(is_free, known)))

    def _listed_in(
        self, content: _Content, namespaces: Collection[str], keep: Callable[[Object], Object | None]
    ) -> Sequence[Object]:
        listed = functools.partial(
            self._client.list_if_served, content.resource, selector=content.selector, accept=METADATA_LIST
        )
        if len(namespaces) > 1:
            try:
                return listed(keep=keep)
            except _TooMany:
                pass
            except ApiError as error:
                if error.status != 403:
                    raise
        return [live for namespace in sorted(namespaces) for live in listed(namespace)]

    def _named_in(self, namespace: Object, guests: list[Object]) -> str:
        if not guests:
            return ""
        key = key_of(namespace)
        leaving = [one for one in self._leaving if key_of(one).namespace == key.name]
        late = {key_of(one) for _, one in find_orphans(self._context, leaving)}
        return _named(self._staying((one for one in guests if key_of(one) not in late), self.taken[key]))

    def _kept_in(self, namespace: Object) -> str:
        """Whether instances have kept objects in it; `delete_guests` takes what this one has."""
        marks = {name for name in annotations_of(namespace) if name.startswith(f"{KEEPS}/")}
        if self._context.delete_guests:
            marks.discard(f"{KEEPS}/{self._context.instance}")
        return f"instances have kept objects in it: {', '.join(sorted(marks))}" if marks else ""

    def _tried(self, path: str, request: Callable[[], list[Found]]) -> tuple[list[Found], str, bool]:
        """What a request finds; why it does not, and whether that is a missing permission."""
        try:
            found = request()
        except JustRestarted:  # whether it may be listed is not known yet
            raise
        except (ApiError, TransportError, Contended) as error:
            is_forbidden = isinstance(error, ApiError) and error.status == 403
            if not is_forbidden and not self._keeps_failing(path):
                raise error if passes(error) else Contended(str(error)) from None
            return [], f"{_UNKNOWN}, which the driver cannot list: {error}", is_forbidden
        return found, "", False

    def _keeps_failing(self, path: str) -> bool:
        """
        Whether a request has failed TRIES times in a row in no less than `guests_fail` seconds: one may take a minute to fail.

        A server in trouble fails now this request and now that one, for hours perhaps, and each succeeds at times.
        """
        before, times = self._failures
        since = [*(times if before == path else ()), time.monotonic()]
        self._failures = path, since
        return len(since) >= TRIES and since[-1] - since[0] >= timing.TIMING.guests_fail

    def _staying(self, guests: Iterable[Object], taken: list[ObjectKey]) -> Iterator[Object]:
        """Those that may not be deleted; with `delete_guests` the others are `taken` along."""
        for live in guests:
            if not self._context.delete_guests or self._kin.is_left(live) or self._kin.is_of_another(live, LONGEST_CHAIN):
                yield live
            else:
                taken.append(key_of(live))


def claimed_by_others(inventory: Inventory, live: Object) -> str:
    """Why other instances may use a shared object, by their inventories, with or without their label; "" if none does."""
    return claim_of(inventory.others(), live)


def claim_of(others: Iterable[InventoryContent | None], live: Object) -> str:
    """
    The same by these inventories.

    They name kinds: what others have of the kind of a refused CRD is of the CRD that has its names.
    """
    if is_refused(live):
        return ""
    key, kind = key_of(live), defined_by(live)
    for other in others:
        if other is None:
            return "another instance, whose inventory makes no sense, may use it"
        if (key.name in other.namespaces) if key.group_kind == NAMESPACE else (kind in other.kinds):
            return "other instances use it"
    return ""


def _named(guests: Iterable[Object]) -> str:
    keys = list(map(key_of, guests))
    return f"it holds objects of others: {_shown(keys)}" if keys else ""


def _shown(keys: Sequence[ObjectKey], most: int = NAMED) -> str:
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(map(str, keys[:most])) + more
