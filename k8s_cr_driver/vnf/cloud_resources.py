# SPDX-License-Identifier: Apache-2.0
"""
What a cloud has made for a workload cluster from inside it: load balancers of Services, and volumes of a CSI driver.

Their controllers run in the workload cluster, and end with it: whatever these have not deleted by then stays in the cloud. So
a terminate names it, or has it deleted first. It is no reason for a terminate to fail.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from k8s_cr_driver import logs
from k8s_cr_driver.capi import contract
from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import ApiError, DriverError, Superseded
from k8s_cr_driver.journal.stored_form import InventoryContent
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.client import Client
from k8s_cr_driver.kube.connection import Connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.kube.workload import read_secret, unquoted, workload_endpoint
from k8s_cr_driver.objects.fields import entries, mapping, text
from k8s_cr_driver.objects.keys import GroupKind, Object, SecretEntry, key_of
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, is_kept
from k8s_cr_driver.redaction import one_line, redact
from k8s_cr_driver.resources.registry import resource_for

CLUSTER = GroupKind(contract.GROUP, "Cluster")
CLUSTERS = 100
"""Workload clusters of an instance that are looked at."""
OPEN_WITHIN = 5.0
"""Seconds for all requests of one look into a cluster."""
LOOK_WITHIN = 60.0
"""Seconds for the first look into all clusters, or less: `Operation.share`."""
DELETE_WITHIN = 300.0
"""Seconds in which what is deleted is awaited, or less: `Operation.share`."""
PAGE = 500
"""Objects in one page of a list."""
PAGES = 10
"""Pages of Services, and of volumes, of a cluster that are read."""
DELETED = 500
"""Services and volumes of a cluster that are named or deleted."""
NAMED = 20
"""Of a cluster, in the log."""
LINES, LENGTH = 100, 500
"""Of what Tacker's record gets, and characters of each."""
RESPONSE_LIMIT = 16 * 1024 * 1024
"""Bytes of a page of a list."""
MIGRATED = "pv.kubernetes.io/migrated-to"
"""Annotation of a volume that has no `spec.csi`, and is a CSI driver's by now (Kubernetes, "CSI migration")."""

LOG = logs.logger(__name__)


@dataclass(frozen=True)
class Deletable:
    """Something of a cloud: `name` for people, and path and uid of the object whose deletion deletes it."""

    name: str
    path: str
    uid: str


@dataclass
class _Workload:
    name: str
    where: SecretEntry
    endpoint: Endpoint | None = None
    found: list[Deletable] = field(default_factory=list)
    trouble: str = ""


def of_service(live: Object) -> Deletable | None:
    """The load balancer of a Service."""
    if text(live, "spec", "type") != "LoadBalancer":
        return None
    return _deletable("Service {}", mapping(live, "metadata"), "services")


def of_volume(live: Object) -> Deletable | None:
    """The volume of a CSI driver that is deleted with its claim."""
    is_csi = text(live, "spec", "csi", "driver") or text(live, "metadata", "annotations", MIGRATED)
    if not is_csi or text(live, "spec", "persistentVolumeReclaimPolicy") != "Delete":
        return None
    volume = text(live, "metadata", "name")
    return _deletable("PersistentVolume " + volume + " (claim {})", mapping(live, "spec", "claimRef"), "persistentvolumeclaims")


def _deletable(shown: str, reference: Object, plural: str) -> Deletable | None:
    """None for a name that no object has: without one the path would be that of a collection."""
    namespace, name, uid = (text(reference, key) for key in ("namespace", "name", "uid"))
    if not (namespace and name and uid) or "/" in namespace + name:
        return None
    return Deletable(shown.replace("{}", f"{namespace}/{name}"), f"/api/v1/namespaces/{namespace}/{plural}/{name}", uid)


def mind(operation: Operation, client: Client, read: Callable[[], InventoryContent], *, delete: bool) -> list[str]:
    """
    Names in one WARNING what clouds would keep of the instance's workload clusters. With `delete` deletes it first.

    Returns the same, a line each, at most LINES. `read` returns the inventory. Raises nothing but Superseded.
    """
    try:
        clouds = _Clouds(operation, client)
        clouds.look(operation.persist(lambda: list(_clusters(operation, client, read())), operation.share(OPEN_WITHIN)))
        if delete:
            clouds.delete()
        return _limited(clouds.report(delete=delete))
    except Superseded:
        raise
    except DriverError as error:
        unknown = f"the load balancers and volumes of its workload clusters are not known: {redact(str(error))}"
        LOG.warning("%s: %s", operation.id, unknown)
        return _limited([unknown])


def _limited(lines: list[str]) -> list[str]:
    more = len(lines) - LINES
    cut = [one_line(line[:LENGTH]) for line in lines[:LINES]]
    return [*cut[:-1], f"and {more + 1} more"] if more > 0 else cut


def _clusters(operation: Operation, client: Client, content: InventoryContent) -> Iterator[_Workload]:
    """Those that the terminate deletes, and the driver may open."""
    resource = client.resources.find(CLUSTER)
    if resource is None:
        return
    for namespace in content.places(CLUSTER):
        for live in client.list_if_served(resource, namespace, f"{INSTANCE_LABEL}={operation.instance}"):
            is_own = content.may_own(live, operation.instance) and not content.is_adopted(live) and not is_kept(live)
            where = resource_for(live).kubeconfig()
            if is_own and where and not text(live, "metadata", "deletionTimestamp"):
                key = key_of(live)
                yield _Workload(f"{key.namespace}/{key.name}", where)


class _Clouds:
    def __init__(self, operation: Operation, client: Client) -> None:
        self._operation, self._connection = operation, client.connection
        self._workloads: list[_Workload] = []

    def look(self, workloads: Sequence[_Workload]) -> None:
        until = time.monotonic() + self._operation.share(LOOK_WITHIN)
        self._workloads = list(workloads)
        for number, one in enumerate(self._workloads):
            if number < CLUSTERS and time.monotonic() < until:
                self._look(one, until)
            else:
                one.trouble = "not looked at, because the others have taken the time or the number for it"

    def delete(self) -> None:
        """Returns when all that was found is gone, or the time for it is over."""
        until = time.monotonic() + self._operation.share(DELETE_WITHIN)
        awaited = [one for one in self._workloads if one.found]
        if awaited:
            self._operation.check_current()
        for one in awaited:
            self._delete(one, until)
        for tries in itertools.count(1):
            for one in awaited:
                self._look(one, until)
            awaited = [one for one in awaited if one.found]
            wait = min(backoff.delay(tries), until - time.monotonic())
            if not awaited or wait <= 0 or self._operation.stop.wait(wait):
                return

    def report(self, *, delete: bool) -> list[str]:
        """A line for each that is left, and with `delete` for each cluster of which that is not known."""
        troubled = [f"{one.name}: {one.trouble}" for one in self._workloads if one.trouble]
        if troubled:
            tell = LOG.warning if delete else LOG.info
            tell("%s: load balancers and volumes may stay in the cloud: %s", self._operation.id, "; ".join(troubled[:NAMED]))
        if left := [f"in {one.name} {_names(one.found)}" for one in self._workloads if one.found]:
            remedy = (
                "they were not gone in time. A volume goes after the last Pod that uses its claim"
                if delete
                else "delete them in the cloud; delete-cloud-resources: true in the request of a terminate deletes them first"
            )
            LOG.warning(
                "%s: of the workload clusters that are deleted now, these may stay in the cloud: %s; %s",
                self._operation.id,
                "; ".join(left),
                remedy,
            )
        lines = [f"{one.name}: {left.name}" for one in self._workloads for left in one.found]
        return lines + (troubled if delete else [])

    def _look(self, one: _Workload, until: float) -> None:
        """What was found before stays, if the cluster does not open now."""
        try:
            soon = min(until, time.monotonic() + OPEN_WITHIN)
            if one.endpoint is None:
                management = self._connection.until(soon, self._operation.stop.is_set)
                one.endpoint = workload_endpoint(management, read_secret(management, one.where), one.where)
            with self._opened(one.endpoint, soon) as opened, unquoted():
                services = _found(opened, "/api/v1/services", of_service)
                volumes = _found(opened, "/api/v1/persistentvolumes", of_volume)
                one.found = list(itertools.islice(itertools.chain(services, volumes), DELETED))
            one.trouble = ""
        except DriverError as error:
            one.trouble = redact(f"the kubeconfig in {one.where} does not open the cluster: {error}")

    def _delete(self, one: _Workload, until: float) -> None:
        assert one.endpoint is not None, "something was found there"
        with self._opened(one.endpoint, until) as opened:
            for deletable in one.found:
                try:
                    with unquoted():
                        body = {"preconditions": {"uid": deletable.uid}}
                        opened.request("DELETE", deletable.path, body=body, read_timeout=OPEN_WITHIN)
                except ApiError:  # what is left is named
                    continue
                except DriverError:
                    return

    def _opened(self, endpoint: Endpoint, until: float) -> Connection:
        return self._connection.until(until, self._operation.stop.is_set).to(endpoint, RESPONSE_LIMIT)


def _found(opened: Connection, path: str, of: Callable[[Object], Deletable | None]) -> Iterator[Deletable]:
    token = ""
    for _ in range(PAGES):
        query = [("limit", str(PAGE)), *([("continue", token)] if token else [])]
        page = opened.request("GET", path, query=query, read_timeout=OPEN_WITHIN)
        yield from filter(None, map(of, entries(page, "items")))
        token = text(page, "metadata", "continue")
        if not token:
            return


def _names(several: Sequence[Deletable]) -> str:
    """A cluster may say anything."""
    more = f" and {len(several) - NAMED} more" if len(several) > NAMED else ""
    return ", ".join(one_line(one.name[:600]) for one in several[:NAMED]) + more
