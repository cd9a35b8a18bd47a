# SPDX-License-Identifier: Apache-2.0
"""What is sent when: a kubeconfig when it is new or has changed, and that a cluster is going or deleted.

All is decided by the record of what was delivered, which survives the objects: after a terminate nothing else says which
clusters there were, and where their kubeconfigs went.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from k8s_cr_driver.credentials import envelope, secrets
from k8s_cr_driver.credentials.envelope import GOING, GONE, READY, Envelope
from k8s_cr_driver.credentials.management import ManagementCluster, WorkloadCluster
from k8s_cr_driver.credentials.opening import Opening
from k8s_cr_driver.credentials.post import NotDelivered, Poster, poster
from k8s_cr_driver.credentials.settings import Settings
from k8s_cr_driver.errors import ApiError, DriverError, InvalidRequest, Unreadable, passes
from k8s_cr_driver.kube.pools import Judge
from k8s_cr_driver.objects.fields import mapping


class NotListed(DriverError):
    """Clusters that no record names may exist, but the account may not list them. The recorded ones have been dealt with."""


@dataclass(frozen=True)
class Delivery:
    """What was sent last of one cluster. No part of it is secret."""

    url: str
    endpoint: str
    digest: str
    event: str = READY
    """The event that the receiver has accepted; "" if a message may have arrived whose response was lost."""


@dataclass
class Record:
    """The deliveries of an instance, by cluster."""

    deliveries: dict[str, Delivery] = field(default_factory=dict)

    @classmethod
    def read(cls, stored: Any) -> Record:
        """Of what `as_dict` returned; users of Tacker's API may have changed it since."""
        found = {name: mapping(stored, name) for name in mapping(stored) if envelope.is_cluster(name)}
        keys = {"url": "", "endpoint": "", "digest": "", "event": READY}
        return cls(
            {
                name: Delivery(**{key: str(one.get(key, default)) for key, default in keys.items()})
                for name, one in found.items()
            }
        )

    def as_dict(self) -> dict[str, dict[str, str]]:
        return {name: asdict(delivery) for name, delivery in sorted(self.deliveries.items())}


@dataclass(frozen=True)
class Sender:
    """One operation on one instance. Changes `record` with each message that the receiver accepts, or may have."""

    instance: str
    settings: Settings
    record: Record
    management: ManagementCluster | None
    """None after a terminate, which removes the VIM from the instance, and in one that abandons the instance."""
    poster: Poster

    def send_changes(self, namespaces: Iterable[str]) -> None:
        """Sends the kubeconfigs that have changed, and `gone` for clusters that no longer exist. Raises DriverError."""
        assert self.management is not None, "an instance that exists has a VIM"
        present = self.management.clusters(self.instance, namespaces)
        removed = sorted(self.record.deliveries.keys() - set(present))
        opening = Opening(present, self._opened, self.poster.end)
        _each(
            itertools.chain(
                (partial(self._send_removed, cluster) for cluster in removed),
                (partial(self._send_kubeconfig, opened) for opened in opening),
            )
        )

    def send_going(self, namespaces: Iterable[str]) -> None:
        """Raises DriverError. A cluster that the terminate keeps is not going, and nothing more is said of it."""
        refused = self._record_present(namespaces)
        going = [partial(self._send_going, cluster) for cluster in sorted(self.record.deliveries)]
        if refused is None:
            _each(going)
            return
        unknown = f"the receiver is not told of clusters that a failed operation has delivered, if there are any: {refused}"
        try:
            _each(going)
        except NotDelivered as error:
            raise NotDelivered(f"{error}; {unknown}") from None
        raise NotListed(unknown)

    def send_gone(self) -> None:
        """Raises NotDelivered."""
        _each(partial(self._send_gone, cluster) for cluster in sorted(self.record.deliveries))

    def _record_present(self, namespaces: Iterable[str]) -> ApiError | None:
        """Adds clusters that a failed operation may have delivered. Its record was lost if a user has given it up.

        Returns the refusal if the account may not list them, or may not read whether they had a kubeconfig.
        """
        if self.management is None:
            return None
        try:
            present = set(self.management.clusters(self.instance, namespaces))
        except ApiError as error:
            if error.status != 403:
                raise
            return error
        refused = None
        for cluster in present - self.record.deliveries.keys():
            try:
                workload = self.management.workload(cluster)
            except (ApiError, InvalidRequest) as error:
                if passes(error):
                    raise
                if isinstance(error, ApiError) and error.status == 403:
                    refused = error
                continue  # without a kubeconfig nothing was delivered
            self.record.deliveries[cluster] = Delivery(self.settings.url, workload.endpoint.url, workload.digest, event="")
        return refused

    def _send_kubeconfig(self, workload: WorkloadCluster | Exception) -> None:
        if isinstance(workload, Exception):
            raise workload
        delivery = Delivery(self.settings.url, workload.endpoint.url, workload.digest)
        if self.record.deliveries.get(workload.name) == delivery and not self.settings.resend:
            return
        self._send(READY, workload.name, delivery, workload.kubeconfig)

    def _send_going(self, cluster: str) -> None:
        if self._is_kept(cluster):
            del self.record.deliveries[cluster]
        else:
            self._send(GOING, cluster, self.record.deliveries[cluster])

    def _is_kept(self, cluster: str) -> bool:
        """A Cluster that may not be read, or whose kind is not served any more, is not known to be kept."""
        try:
            return self.management is not None and self.management.is_kept(cluster)
        except (ApiError, Unreadable) as error:
            if isinstance(error, ApiError) and error.status != 403:
                raise
            return False

    def _send_removed(self, cluster: str) -> None:
        """A list by label misses a Cluster that has lost the label, or that a change of package has released."""
        assert self.management is not None
        if not self.management.exists(cluster, self.instance):
            self._send_gone(cluster)

    def _send_gone(self, cluster: str) -> None:
        self._send(GONE, cluster, self.record.deliveries[cluster])
        del self.record.deliveries[cluster]

    def _send(self, event: str, cluster: str, delivery: Delivery, kubeconfig: str = "") -> None:
        """Recorded before it is sent, too: the process may be killed, or the response lost."""
        before = self.record.deliveries.copy()
        self.record.deliveries[cluster] = replace(delivery, event="")
        try:
            self.poster.post(Envelope(event, self.instance, cluster, delivery.endpoint, kubeconfig, delivery.digest))
        except NotDelivered as error:
            if not error.may_have_arrived:
                self.record.deliveries = before
            raise
        self.record.deliveries[cluster] = replace(delivery, event=event)

    def _opened(self, cluster: str) -> WorkloadCluster:
        """The cluster after it has opened, unless it is unreachable from here. Raises DriverError."""
        assert self.management is not None
        workload = self.management.workload(cluster)
        if not self.management.is_unreachable(cluster):
            workload.open(self.poster.end)
        return workload


@contextlib.contextmanager
def sender(
    instance: str,
    project: str,
    settings: Settings,
    record: Record,
    management: ManagementCluster | None,
    end: float,
    judge: Judge,
) -> Iterator[Sender]:
    """A Sender that stops trying at `end`, a time.monotonic(), and whose receiver `judge` permits.

    Raises InvalidRequest for a secret that cannot be used.
    """
    with poster(settings, secrets.read(settings.sources, management), end, judge, project) as post:
        yield Sender(instance, settings, record, management, post)


def _each(actions: Iterable[Callable[[], None]]) -> None:
    """Does all of them although some fail; then raises the first failure, with the number of the others."""
    failures: list[DriverError] = []
    for act in actions:
        try:
            act()
        except DriverError as error:
            failures.append(error)
    if failures:
        others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise NotDelivered(f"{failures[0]}{others}")
