# SPDX-License-Identifier: Apache-2.0
"""Judges the audit log of the API server: the driver writes and deletes only what is an instance's.

An object is an instance's if the driver has created it for that instance, if it was created with that instance's label (by
Tacker's own driver before a takeover, or by a user who has replaced it), or if an object of the instance owns it (a Pod that
a heal deletes, a Machine that a scale in marks). Beside these the driver may write, but not delete, what an instance has
adopted, and it deletes the claims that the StatefulSet controller has made for a StatefulSet of an instance.

A crash of the API server, or of etcd, loses the event of what was created last: the first event that shows such an object
stands for its creation. So it does for an object that a write of the driver has created which was cut off: the API server says
504 of the request of a process that was killed, also where etcd has stored the object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from k8s_cr_driver.journal.inventory import INVENTORY_LABEL
from k8s_cr_driver.journal.stored_form import parse
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, ObjectKey, key_of, kind_of, labels
from k8s_cr_driver.objects.marks import INSTANCE_LABEL, manager

Event = dict[str, Any]
"""An Event of audit.k8s.io/v1, of level RequestResponse."""

DRIVER = "k8s-cr-driver"
"""Its user agent, with whatever account it logs in."""
CONTROLLER_OF_CLAIMS = "system:serviceaccount:kube-system:statefulset-controller"
SHARED = (NAMESPACE, CRD)
LOST_WITHIN = timedelta(seconds=10)
"""Before a crash and after it: until the next server is up, requests are cut off whose objects etcd has stored."""

_MANAGER = re.compile(rf"[?&]fieldManager={re.escape(manager(''))}([0-9a-z-]+)")
_ORDINAL = re.compile(r"-[0-9]+$")


def strangers(log: Path, since: str, crashes: Iterable[datetime] = ()) -> list[str]:
    """One text for each write of the driver to an object of nobody's, of requests received at `since` (RFC 3339) or later."""
    with log.open() as lines:
        whole = (json.loads(line) for line in lines if line.endswith("\n"))  # the server may be writing the last one
        return [text for event, text in judge(whole, crashes) if event["requestReceivedTimestamp"] >= since]


def judge(events: Iterable[Event], crashes: Iterable[datetime] = ()) -> Iterator[tuple[Event, str]]:
    """The driver's wrong writes, with a text for each. `events` begin with the cluster: what is older is a stranger's.

    `crashes` are the times at which the API server or etcd was killed.
    """
    owners = _Owners(tuple(crashes))
    for event in events:
        if "dryRun=All" in event["requestURI"]:
            continue
        if event["responseStatus"].get("code", 0) // 100 != 2:
            owners.note_cut_off(event)
            continue
        owners.restore(event)
        if event["userAgent"] == DRIVER and not owners.allow(event):
            yield event, _text(event)
        owners.learn(event)


class _Owners:
    """Whose the objects are that the log has shown so far, by their uids."""

    def __init__(self, crashes: tuple[datetime, ...]) -> None:
        self._crashes = crashes
        self._instances: set[str] = set()
        self._created_for: dict[str, str] = {}
        self._references: dict[str, set[str]] = {}
        self._stateful_sets: set[tuple[str, str]] = set()
        self._without_instance: set[str] = set()
        self._adopted: dict[str, frozenset[ObjectKey]] = {}
        self._cut_off: dict[tuple[str, ...], str] = {}

    def note_cut_off(self, event: Event) -> None:
        """A write that the driver did not hear of, and that may have created its object."""
        by = _instance_that_writes(event)
        if by and event["responseStatus"].get("code", 0) >= 500:
            self._cut_off[_place(event)] = by

    def restore(self, event: Event) -> None:
        """Takes the event for that of the object's creation if a crash has lost that one, or the write was cut off."""
        live = event.get("responseObject") or {}
        if _uid(event) in self._created_for or _is_creation(event):
            return
        if self._crashed_about(_born(live)):
            self._created(event, live, _instance_that_writes(event))
        elif _uid(event) and (by := self._cut_off.pop(_place(event), "")):
            self._created(event, live, by)

    def _crashed_about(self, born: datetime | None) -> bool:
        return born is not None and any(abs(born - crash) < LOST_WITHIN for crash in self._crashes)

    def allow(self, event: Event) -> bool:
        """Whether the driver may write so."""
        if event["verb"] == "deletecollection":
            return False
        uid, live = _uid(event), event.get("responseObject") or {}
        if not uid:
            return bool(event["verb"] != "delete")  # nothing is stored of a review
        if _is_creation(event) or _is_inventory(event):
            return True
        owner, by = self._instance_of(uid), _instance_that_writes(event)
        if owner:
            return not by or by == owner or kind_of(live) in SHARED or self._is_adopted(live)
        return uid in self._without_instance or (event["verb"] != "delete" and self._is_adopted(live))

    def learn(self, event: Event) -> None:
        live, by = event.get("responseObject") or {}, _instance_that_writes(event)
        if by:
            self._instances.add(by)
        if event["verb"] != "delete" and INVENTORY_LABEL in labels(live) and event["userAgent"] == DRIVER:
            self._instances.add(labels(live)[INVENTORY_LABEL])
            self._adopted[labels(live)[INVENTORY_LABEL]] = parse(live).adopted
        if _is_creation(event) and _uid(event):
            self._created(event, live, by)
        elif event["userAgent"] != DRIVER and _uid(event) in self._references:
            self._references[_uid(event)] |= _owners(live)

    def _created(self, event: Event, live: Event, by: str) -> None:
        uid, key = _uid(event), key_of(live)
        self._created_for[uid] = by or labels(live).get(INSTANCE_LABEL, "")
        self._references[uid] = _owners(live)
        if key.kind == "StatefulSet" and self._instance_of(uid):
            self._stateful_sets.add((key.namespace, key.name))
        is_claim = event["user"]["username"] == CONTROLLER_OF_CLAIMS and self._is_named_as_a_claim(key)
        if is_claim or (event["userAgent"] == DRIVER and not by):  # such as what the tool makes for an operator
            self._without_instance.add(uid)

    def _is_named_as_a_claim(self, key: ObjectKey) -> bool:
        """Of one of the StatefulSets: TEMPLATE-STATEFULSET-ORDINAL."""
        name = _ORDINAL.sub("", key.name)
        sets = (own for place, own in self._stateful_sets if place == key.namespace)
        return key.kind == "PersistentVolumeClaim" and any(name.endswith(f"-{own}") for own in sets)

    def _instance_of(self, uid: str) -> str:
        """The instance for which the object, or one that owns it, was created; "" if none was."""
        for above in self._lineage(uid):
            if self._created_for.get(above, "") in self._instances:
                return self._created_for[above]
        return ""

    def _lineage(self, uid: str) -> Iterator[str]:
        yield uid
        for owner in self._references.get(uid, ()):
            yield from self._lineage(owner)

    def _is_adopted(self, live: Event) -> bool:
        return any(key_of(live) in keys for keys in self._adopted.values())


def _is_creation(event: Event) -> bool:
    return bool(event["responseStatus"]["code"] == 201) and not event["objectRef"].get("subresource")


def _place(event: Event) -> tuple[str, ...]:
    """Which object the request is about, whatever its uid."""
    reference = event["objectRef"]
    return tuple(str(reference.get(part) or "") for part in ("apiGroup", "resource", "namespace", "name"))


def _is_inventory(event: Event) -> bool:
    """By its name, for the answer to its deletion has no labels."""
    reference = event["objectRef"]
    return reference["resource"] == "configmaps" and reference.get("name", "").startswith("k8s-cr-driver-")


def _instance_that_writes(event: Event) -> str:
    """By the field manager of the request, which deletions do not have."""
    found = _MANAGER.search(event["requestURI"]) if event["userAgent"] == DRIVER else None
    return found[1] if found else ""


def _uid(event: Event) -> str:
    """Of the object; "" for what is not stored. The answer to a deletion is the object, or a Status that names it."""
    answer = event.get("responseObject") or {}
    return str((answer.get("metadata") or {}).get("uid") or (answer.get("details") or {}).get("uid") or "")


def _owners(live: Event) -> set[str]:
    """The uids of the object's owners, which its controllers may add later; a Status has none."""
    return {owner["uid"] for owner in (live.get("metadata") or {}).get("ownerReferences") or []}


def _born(live: Event) -> datetime | None:
    """None for what is no object, such as a Status."""
    stamp = (live.get("metadata") or {}).get("creationTimestamp")
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")) if stamp else None


def _text(event: Event) -> str:
    reference = event["objectRef"]
    resource = ".".join(filter(None, (reference["resource"], reference.get("apiGroup"))))
    name = "/".join(filter(None, (reference.get("namespace"), reference.get("name"))))
    who = f"{event['userAgent']} ({event['user']['username']})"
    return f"{event['verb']} of {resource} {name} by {who} at {event['requestReceivedTimestamp']}: it is no instance's"
