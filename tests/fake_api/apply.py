# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: merge what a manager wants into the live object, keep who owns which field, find conflicts.

Follows the documented semantics: a field that its only owner no longer applies is removed; a field that another
manager owns and that would change is a conflict unless forced; equal values are shared.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from tests.fake_api import errors
from tests.fake_api.fields import Flat, Path, TypedError, changes, decode, display, encode, flatten, item_step
from tests.fake_api.objects import Object, now, without
from tests.fake_api.shapes import Shape

_SERVER_FIELDS = {("f:apiVersion",), ("f:kind",), ("f:metadata",)} | {
    ("f:metadata", "f:" + name) for name in (
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "selfLink", "managedFields")}


@dataclass(frozen=True)
class Manager:
    """Who writes: an Update manager is identified by its API version too, an Apply manager is not."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, version, self.subresource


class Ownership:
    """The managedFields of one object, decoded."""

    def __init__(self, managed_fields: list[Object]) -> None:
        self._entries: dict[tuple[str, str, str, str], Object] = {}
        self.sets: dict[tuple[str, str, str, str], set[Path]] = {}
        self._given: dict[tuple[str, str, str, str], set[Path]] = {}
        for entry in managed_fields:
            manager = Manager(entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", ""))
            self._entries[manager.identity] = entry
            self.sets[manager.identity] = self._given[manager.identity] = decode(entry.get("fieldsV1") or {})

    def of(self, manager: Manager) -> set[Path]:
        return self.sets.get(manager.identity, set())

    def others(self, manager: Manager) -> dict[tuple[str, str, str, str], set[Path]]:
        return {identity: paths for identity, paths in self.sets.items() if identity != manager.identity}

    def assign(self, manager: Manager, paths: set[Path]) -> None:
        if paths == self.sets.get(manager.identity):
            return
        self.sets[manager.identity] = paths
        self._given.pop(manager.identity, None)
        entry: Object = {"manager": manager.name, "operation": manager.operation, "apiVersion": manager.api_version,
                         "time": now(), "fieldsType": "FieldsV1"}
        if manager.subresource:
            entry["subresource"] = manager.subresource
        self._entries[manager.identity] = entry

    def touch(self, manager: Manager) -> None:
        """A write that changes values, also of fields that the manager has already, renews its time."""
        if manager.identity in self._entries:
            self._entries[manager.identity] = {**self._entries[manager.identity], "time": now()}

    def union(self) -> set[Path]:
        return set().union(*self.sets.values()) if self.sets else set()

    def encode(self) -> list[Object]:
        """Apply managers first, then by time and name, as the server sorts them."""
        entries = []
        for identity, paths in self.sets.items():
            if paths:
                entry = self._entries[identity]
                is_as_given = paths == self._given.get(identity)
                entries.append(entry if is_as_given else {**entry, "fieldsV1": encode(paths)})
        return sorted(entries, key=lambda e: (e["operation"], e["time"], e["manager"]))

    def describe(self, identity: tuple[str, str, str, str]) -> str:
        entry = self._entries[identity]
        text = errors.quoted(entry["manager"])
        if entry.get("subresource"):
            text += f' with subresource {errors.quoted(entry["subresource"])}'
        if entry["operation"] == "Update":
            text += f' using {entry["apiVersion"]}'
        return text


def owned(flat: Flat, manager: Manager, has_status: bool) -> set[Path]:
    """The paths that a write through this endpoint can own."""
    return {path for path in flat.leaves if _may_own(path, manager, has_status)}


def _may_own(path: Path, manager: Manager, has_status: bool) -> bool:
    if path in _SERVER_FIELDS or path[:2] in _SERVER_FIELDS:
        return False
    if manager.subresource == "status":
        return path[0] == "f:status"
    return not (has_status and path[0] == "f:status")


def apply(live: Object, config: Object, shape: Shape, manager: Manager, force: bool, has_status: bool) -> Object:
    """The merged object with its new managedFields.

    Raises ApiError 409 with one cause a conflicting field, TypedError for a config that does not fit.
    """
    config_paths = owned(flatten(config, shape, strict=True), manager, has_status)
    ownership = Ownership((live.get("metadata") or {}).get("managedFields") or [])
    if not ownership.sets and "uid" in live["metadata"]:
        unknown = Manager("before-first-apply", "Update", manager.api_version)
        ownership.assign(unknown, owned(flatten(live, shape), unknown, has_status))
    before = set(ownership.of(manager))
    merged = merge(live, config, shape)
    ownership.assign(manager, config_paths)
    kept = ownership.union()
    if removed := before - kept:
        merged = _prune(merged, shape, (), removed, kept, {path[:depth] for path in removed for depth in range(len(path) + 1)})
    changed = changes(live, merged, shape)
    conflicts = {identity: paths & (changed.added | changed.modified)
                 for identity, paths in ownership.others(manager).items()}
    if not force and any(conflicts.values()):
        raise _conflict(ownership, conflicts)
    if changed.added or changed.modified or changed.removed:
        ownership.touch(manager)
    for identity, taken in conflicts.items():
        ownership.sets[identity] = ownership.sets[identity] - taken - changed.removed
    return with_managed_fields(merged, ownership)


def update(old: Object, new: Object, shape: Shape, manager: Manager, has_status: bool) -> Object:
    """`new` with the managedFields that a plain write gives: who changes a field owns it.

    A writer may edit managedFields itself, and clear them with an empty list or entry.
    """
    given = new["metadata"].get("managedFields")
    if given in ([], [{}]):
        return with_managed_fields(new, Ownership([]))
    ownership = Ownership(given or (old.get("metadata") or {}).get("managedFields") or [])
    if not ownership.sets and "uid" in old["metadata"]:
        return new  # nobody is tracked before the first apply, except who creates
    changed = changes(old, new, shape)
    gained = {path for path in changed.added | changed.modified if _may_own(path, manager, has_status)}
    for identity, paths in ownership.others(manager).items():
        ownership.sets[identity] = paths - gained - changed.removed
    ownership.assign(manager, (ownership.of(manager) - changed.removed) | gained)
    if gained:
        ownership.touch(manager)
    return with_managed_fields(new, ownership)


def with_managed_fields(obj: Object, ownership: Ownership) -> Object:
    metadata = without(obj.get("metadata") or {}, "managedFields")
    entries = ownership.encode()
    return {**obj, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def _conflict(ownership: Ownership, conflicts: dict[tuple[str, str, str, str], set[Path]]) -> errors.ApiError:
    causes, lines = [], []
    for identity in sorted(conflicts):
        if conflicts[identity]:
            who = ownership.describe(identity)
            shown = [display(path) for path in sorted(conflicts[identity], key=_as_iterated)]
            causes += [errors.cause("FieldManagerConflict", f"conflict with {who}", path) for path in shown]
            lines += [f"conflicts with {who}:", *(f"- {path}" for path in shown)]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return errors.apply_conflict(causes, message)


def _as_iterated(path: Path) -> list[tuple[bool, str]]:
    """At each level a set lists its members before their children."""
    return [(depth + 1 < len(path), step) for depth, step in enumerate(path)]


def merge(old: Any, new: Any, shape: Shape) -> Any:
    """`new` laid over `old`; lists with keys keep the items and the order of both."""
    if isinstance(old, dict) and isinstance(new, dict) and not shape.atomic:
        merged = dict(old)
        for name, value in new.items():
            is_mergeable = name in old and isinstance(value, (dict, list))
            merged[name] = merge(old[name], value, shape.child(name)) if is_mergeable else value
        return merged
    if not (isinstance(old, list) and isinstance(new, list) and shape.granular_list):
        return new
    present = {item_step(item, shape): item for item in old}
    wanted = {item_step(item, shape): item for item in new}
    result = []
    for step in _merged_order(list(present), list(wanted)):
        if step in present and step in wanted:
            result.append(merge(present[step], wanted[step], shape.item()))
        else:
            result.append(present[step] if step in present else wanted[step])
    return result


def _merged_order(old: list[str], new: list[str]) -> list[str]:
    """Items of `new` in their order; those of `old` alone stay before the shared item that they preceded."""
    left, right, order = deque(old), deque(new), list[str]()
    while left or right:
        if left and left[0] not in new:
            order.append(left.popleft())
        elif left and right and left[0] == right[0]:
            left.popleft()
            order.append(right.popleft())
        elif left and right and left[0] != next((step for step in new if step in old and step not in order), left[0]):
            left.popleft()
        else:
            if left and left[0] in order:
                left.popleft()
            if right:
                order.append(right.popleft())
    return order


def _prune(value: Any, shape: Shape, path: Path, removed: set[Path], kept: set[Path], above: set[Path]) -> Any:
    """Without the fields that the manager applied before and that nobody applies now; `above`: with all that they are in."""
    if path not in above:
        return value
    if isinstance(value, dict) and not shape.atomic:
        result = {}
        for name, child in value.items():
            at = (*path, "f:" + name)
            if at not in above:
                result[name] = child
                continue
            pruned = _prune(child, shape.child(name), at, removed, kept, above)
            emptied = pruned in ({}, []) and child not in ({}, []) and at not in kept
            # An entry of a free map goes as a whole, a declared field only if nobody owns a part of it.
            dropped = at in removed and (shape.is_entry(name) or not any(path[:len(at)] == at for path in kept))
            if not emptied and not dropped:
                result[name] = pruned
        return result
    if isinstance(value, list) and shape.granular_list:
        steps = [(item_step(item, shape), item) for item in value]
        return [_prune(item, shape.item(), (*path, step), removed, kept, above)
                for step, item in steps if (*path, step) not in removed]
    return value


__all__ = ["Manager", "Ownership", "TypedError", "apply", "merge", "update"]
