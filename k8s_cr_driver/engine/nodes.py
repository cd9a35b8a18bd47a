"""What a run knows of each object: one `Wanted` for what shall be, one `Doomed` for what shall go. State, no I/O."""

from __future__ import annotations

import datetime
import enum
import time
from dataclasses import dataclass, field

from k8s_cr_driver.engine.not_ready import Report
from k8s_cr_driver.kube.discovery import Resource
from k8s_cr_driver.objects.keys import NAMESPACE, Object, ObjectKey
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health import Health, State

FIRST_BACKOFF, LAST_BACKOFF = 0.2, 5.0


class Phase(enum.Enum):
    """Where an object is on its way."""

    BLOCKED = "blocked"
    SENDING = "sending"
    BACKOFF = "backing off"
    SENT = "sent"


@dataclass
class Node:
    """One object of a run. `needs`: those that must be ready (or gone) first; `error`: why the last try failed."""

    obj: CustomResource
    resource: Resource
    needs: set[ObjectKey] = field(default_factory=set)
    phase: Phase = Phase.BLOCKED
    live: Object | None = None
    error: Exception | None = None
    attempts: int = 0

    @property
    def key(self) -> ObjectKey:
        return self.obj.key

    def backoff(self) -> float:
        """Seconds until the next try: exponential, or as the server says."""
        self.attempts += 1
        told = getattr(self.error, "retry_after", None)
        return float(told) if told else min(FIRST_BACKOFF * 2.0 ** (self.attempts - 1), LAST_BACKOFF)


@dataclass
class Desired(Node):
    """An object that shall exist and be ready."""

    floor: str = ""
    """resourceVersion of our last write: what a stream tells of earlier ones is history."""
    health: Health = field(default_factory=lambda: Health(State.WAITING, "NotApplied", "not applied yet"))
    since: str = ""
    failed_at: float | None = None

    def sees(self, live: Object) -> bool:
        """Takes in a newer state of the object; False if it is an older one."""
        if is_older(live, self.floor) or (self.live is not None and is_older(live, version(self.live))):
            return False
        self.live = live
        return True

    def judge(self, health: Health) -> None:
        if (health.state, health.reason) != (self.health.state, self.health.reason):
            self.since = utcnow()
        self.health = health
        if health.state is not State.FAILED:
            self.failed_at = None
        elif self.failed_at is None:
            self.failed_at = time.monotonic()

    def report(self) -> Report:
        if self.error is not None:
            return Report(self.key, State.WAITING.value, "NotApplied", str(self.error), self.since)
        if self.phase is Phase.BLOCKED:
            waits = ", ".join(sorted(map(str, self.needs))[:3]) or "the server to list its kind"
            return Report(self.key, State.WAITING.value, "Blocked", f"not applied yet, waits for {waits}")
        return Report(self.key, self.health.state.value, self.health.reason, self.health.message, self.since)


@dataclass
class ToDelete(Node):
    """An object that shall be gone."""

    is_gone: bool = False
    """Its stream has said so while our request was under way."""
    is_unheard: bool = False
    """It has lost the label by which its stream selects: only reading it tells whether it is gone."""
    left: str = ""
    """Why it stays on the cluster though this instance has done with it."""

    def report(self) -> Report:
        metadata = (self.live or {}).get("metadata") or {}
        since = metadata.get("deletionTimestamp") or ""
        if self.error is not None:
            return Report(self.key, State.WAITING.value, "NotDeleted", str(self.error), since)
        if self.phase is Phase.BLOCKED:
            waits = ", ".join(sorted(map(str, self.needs))[:3])
            return Report(self.key, State.WAITING.value, "Blocked", f"not deleted yet, waits until these are gone: {waits}")
        held = ", ".join(set(metadata.get("finalizers") or []) - {"foregroundDeletion"})
        message = f"held by finalizers {held}: their controller must remove them" if held else "its dependents are not gone yet"
        return Report(self.key, State.WAITING.value, "Terminating", self._content_left() or message, since)

    def _content_left(self) -> str:
        """What a Namespace still holds, and which finalizers hold that: its conditions are True where something is left."""
        conditions = ((self.live or {}).get("status") or {}).get("conditions") or []
        left = [str(one.get("message")) for one in conditions if one.get("status") == "True"]
        if self.key.group_kind != NAMESPACE or not left:
            return ""
        return f"{'; '.join(left)}; the controllers of these objects must let them go: kubectl get KIND -n {self.key.name}"


def version(live: Object) -> str:
    return str((live.get("metadata") or {}).get("resourceVersion") or "")


def is_older(live: Object, than: str) -> bool:
    """Whether `live` precedes a resourceVersion. They are whole numbers that grow (KEP-5504); others tell nothing."""
    own = version(live)
    return own.isdigit() and than.isdigit() and int(own) < int(than)


def utcnow() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
