# SPDX-License-Identifier: Apache-2.0
"""
The state of one object in a run: `Desired` for an object to apply, `ToDelete` for one to delete. No I/O.

The appliers and pruners change it; `report` says in one line why the object is not ready, or not deleted yet.
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, field

from k8s_cr_driver.engine.report.not_ready import Report
from k8s_cr_driver.journal.inventory import Inventory
from k8s_cr_driver.kube import backoff
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.kube.sent_values import SentValues
from k8s_cr_driver.objects import fields
from k8s_cr_driver.objects.crds import is_in_cleanup
from k8s_cr_driver.objects.keys import NAMESPACE, Object, ObjectKey, kind_of, owner_names
from k8s_cr_driver.objects.marks import SHARED
from k8s_cr_driver.resources import suggested
from k8s_cr_driver.resources.base import PODS, CustomResource
from k8s_cr_driver.resources.health import Health, State
from k8s_cr_driver.writes.manifest_digest import digest_of, is_of_manifest
from k8s_cr_driver.writes.write_errors import with_remedy

LONGEST_OF_SHARED = 60.0
"""Seconds, at most, between two deletions of a Namespace or CRD that fail: each lists all kinds that may hold guests."""

NOT_APPLIED = Health(State.WAITING, "NotApplied", "not applied yet")


class Phase(enum.Enum):
    """How far an object is."""

    BLOCKED = "blocked"
    SENDING = "sending"
    BACKOFF = "backing off"
    HELD = "held"
    """It is to be deleted, to be created again, as soon as the other objects are answered."""
    SENT = "sent"
    LEFT = "left"
    """Others have created an object of its name, which a rollback leaves to them."""


@dataclass(slots=True)
class Node:
    """One object of a run. `needs`: objects that must be ready (or deleted) first; `error`: why the last try failed."""

    obj: CustomResource
    resource: Resource
    needs: set[ObjectKey] = field(default_factory=set)
    phase: Phase = Phase.BLOCKED
    live: Object | None = None
    error: Exception | None = None
    attempts: int = 0
    key: ObjectKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.obj.key

    @property
    def in_trouble(self) -> bool:
        """Whether something went wrong, in distinction to work that takes its time."""
        return self.error is not None

    @property
    def longest_backoff(self) -> float:
        return backoff.LAST

    def backoff(self) -> float:
        """Seconds until the next try: exponential, or as the server says."""
        self.attempts += 1
        return backoff.delay(self.attempts, self.error, self.longest_backoff)


@dataclass(slots=True)
class Desired(Node):
    """An object that must exist and be ready."""

    after: set[ObjectKey] = field(default_factory=set)
    """Objects that it names, whose first write must have had its response."""
    written: str = ""
    """resourceVersion of our last write: events of earlier versions are outdated."""
    finished: bool = False
    """It has run to its end: it is not created again when it vanishes, as a Job does after its time to live."""
    has_former_end: bool = False
    """Another manifest of it has run to its end."""
    vanished: bool = False
    """It was ours, and the watch reported its deletion."""
    gone: str = ""
    """The uid of the object whose deletion the watch reported while a write of it was under way."""
    replaced: str = ""
    """The uid of an object that this run deletes to create it again."""
    is_new: bool = False
    """It did not exist when its last write was sent."""
    health: Health = NOT_APPLIED
    since: float | None = None
    """When it entered the state and the reason of its health, in seconds of time.time()."""
    failed_at: float | None = None

    def observe(self, live: Object) -> bool:
        """Keeps a newer state of the object; False for one that is known: the watch reports what a write has returned, too."""
        if is_older(live, self.written) or (self.live is not None and not is_newer(live, self.live)):
            return False
        self.live, self.vanished = live, False
        return True

    def replaces(self, live: Object) -> bool:
        """Whether `live` is the object that this run deletes to create it again."""
        return bool(fields.field(live, "metadata", "uid") == self.replaced)

    @property
    def is_settled(self) -> bool:
        """Whether it has run to its end and vanished, so that nothing is left to do for it."""
        return self.finished and self.vanished

    @property
    def digest(self) -> str:
        """Of the manifest: a Job that has changed runs again."""
        return digest_of(self.obj.manifest)

    def has_ended(self, inventory: Inventory, live: Object | None) -> bool:
        """Whether the end of this manifest is recorded, and `live` is not of another one."""
        ended = inventory.content.finished
        if not ended or not self.obj.runs_to_end() or (self.key, self.digest) not in ended:
            return False
        return live is None or is_of_manifest(live, self.obj.manifest, inventory.instance) is not False

    def judge(self, health: Health) -> None:
        if (health.state, health.reason) != (self.health.state, self.health.reason):
            self.since = time.time()
        self.health = health
        if health.state is not State.FAILED:
            self.failed_at = None
        elif self.failed_at is None:
            self.failed_at = time.monotonic()

    @property
    def in_trouble(self) -> bool:
        return self.error is not None or self.health.trouble

    def report(self, sent: SentValues) -> Report:
        """Without the values that were `sent`."""
        since = "" if self.since is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.since))
        is_replaced = self.live is not None and self.replaces(self.live)
        if self.error is not None:
            reason = "NotReplaced" if is_replaced else "NotApplied"
            return Report(self.key, State.WAITING.value, reason, sent.removed_from(with_remedy(self.error)), since)
        if self.live is not None and is_replaced:
            why = f"its deletion has begun: {_why_it_is_there(self.live)}"
            return Report(self.key, State.WAITING.value, "NotReplaced", why, since)
        if self.phase is Phase.BLOCKED:
            waits = ", ".join(sorted(map(str, self.needs | self.after))[:3]) or "the server to list its kind"
            return Report(self.key, State.WAITING.value, "Blocked", f"not applied yet, waits for {waits}")
        if self.phase is Phase.SENT and self.live is None:
            return Report(self.key, State.WAITING.value, "NotReported", "applied, but its watch has not reported it yet")
        return reported(self.key, self.health, since, sent, SentValues([self.live] if self.live else []))

    def ready_line(self) -> str:
        """The annotation that ends the wait, for somebody who knows that the object is ready; "" if no short one does."""
        is_judged = self.live is not None and self.error is None and self.phase is Phase.SENT
        return suggested.line(self.obj, self.live) if self.live is not None and is_judged else ""


@dataclass(slots=True)
class ToDelete(Node):
    """An object that must be deleted."""

    is_gone: bool = False
    """The watch reported its deletion while our request was in flight."""
    is_unwatched: bool = False
    """It has lost the label that the watch selects by: it must be read to see whether it no longer exists."""
    lingers: bool = False
    """It still existed after our request, so it is gone only if a read says so: its watch may miss what has no label."""
    is_collected: bool = False
    """It is left to the garbage collector, which deletes it with its owner."""
    stays: str = ""
    """Why it was released and stays on the cluster; "" if it is deleted."""

    @property
    def longest_backoff(self) -> float:
        return LONGEST_OF_SHARED if self.key.group_kind in SHARED else backoff.LAST

    def report(self, sent: SentValues) -> Report:
        """Without the values that were `sent`."""
        metadata = (self.live or {}).get("metadata") or {}
        since = metadata.get("deletionTimestamp") or ""
        if self.error is not None:
            return Report(self.key, State.WAITING.value, "NotDeleted", sent.removed_from(str(self.error)), since)
        if self.phase is Phase.BLOCKED:
            waits = ", ".join(sorted(map(str, self.needs))[:3])
            return Report(self.key, State.WAITING.value, "Blocked", f"not deleted yet, waits for the deletion of {waits}")
        if self.is_collected and not since:
            why = f"not deleted yet, the garbage collector deletes it after {owner_names(self.live or {})}"
            return Report(self.key, State.WAITING.value, "Blocked", sent.removed_from(why))
        message = _why_it_is_there(self.live or {})
        left = sent.removed_from(self._remaining_content())
        return Report(self.key, State.WAITING.value, "Terminating", left or message, since)

    def _remaining_content(self) -> str:
        """What a Namespace still holds, and which finalizers hold that: a condition is True for each kind of content left."""
        conditions = ((self.live or {}).get("status") or {}).get("conditions") or []
        left = [str(one.get("message")) for one in conditions if one.get("status") == "True"]
        if self.key.group_kind != NAMESPACE or not left:
            return ""
        remedy = "the controllers of these objects must remove their finalizers"
        return f"{'; '.join(left)}; {remedy}: kubectl get KIND -n {self.key.name}"


def _why_it_is_there(live: Object) -> str:
    """Of an object that is being deleted."""
    if is_in_cleanup(live):
        remedy = f"their controllers must remove them: kubectl get {fields.text(live, 'metadata', 'name')} -A"
        return f"the API server deletes the objects of its kind first, and finalizers hold some: {remedy}"
    held = ", ".join(set((live.get("metadata") or {}).get("finalizers") or []) - {"foregroundDeletion"})
    return f"held by finalizers {held}: their controller must remove them" if held else "its dependents still exist"


def reported(key: ObjectKey, health: Health, since: str, *hidden: SentValues) -> Report:
    """The report of an object's health, without `hidden` values: a controller may copy any into its status."""
    reason, message = health.reason, health.message
    for values in hidden:
        reason, message = values.removed_from_reason(reason), values.removed_from(message)
    return Report(key, health.state.value, reason, message, since)


def version(live: Object) -> str:
    return str((live.get("metadata") or {}).get("resourceVersion") or "")


def spec_version(live: Object) -> str:
    """Changes whenever the spec does: the generation, else the resourceVersion."""
    generation = _generation(live)
    return version(live) if generation is None else f"generation {generation}"


def changes_spec(before: Object | None, live: Object) -> bool:
    """Whether a write that found `before` and returned `live` has changed the spec."""
    if before is None:
        return False
    if _generation(live) is None and kind_of(live) == PODS:  # before Kubernetes 1.33
        return bool(before.get("spec") != live.get("spec"))
    return _generation(before) != _generation(live)


def _generation(live: Object) -> int | None:
    return (live.get("metadata") or {}).get("generation")


def is_older(live: Object, than: str) -> bool:
    """Whether `live` precedes a resourceVersion. They are integers that grow (KEP-5504); others cannot
    be compared.
    """
    own = version(live)
    return own.isdigit() and than.isdigit() and int(own) < int(than)


def is_newer(live: Object, known: Object) -> bool:
    """Whether `live` says something that `known` does not: a server may compute a part at each read, without a new version."""
    return live != known and not is_older(live, version(known))


def is_another(live: Object, other: Object) -> bool:
    """Whether two objects of one name are not the same one: it was deleted and created again."""
    return bool(live["metadata"]["uid"] != other["metadata"]["uid"])
