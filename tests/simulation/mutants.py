# SPDX-License-Identifier: Apache-2.0
"""
The engine without one of its mends, to show that lives notice: each takes out one function, or two that serve one end.

The first seed, counted from 0, that finds it is in the table.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from unittest import mock

from k8s_cr_driver.kube.watch import Reflector, Relist
from k8s_cr_driver.objects.keys import key_of


@dataclass(frozen=True)
class Mutant:
    """Names are replaced; lives with these `features` then report `words`, the first that of `found_by`."""

    without: Mapping[str, object]
    features: frozenset[str]
    words: str
    found_by: int

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for name, other in self.without.items():
                stack.enter_context(mock.patch(f"k8s_cr_driver.{name}", other))
            yield


def _no(*_: object, **__: object) -> bool:
    return False


class _AllGone(Relist):
    """In place of `Unserved`: an empty list."""

    def __init__(self, reflector: Reflector) -> None:
        super().__init__(reflector, {}, math.inf)


def _features(*names: str) -> frozenset[str]:
    return frozenset(names)


MUTANTS = {
    "containers of wanted objects are pruned": Mutant(
        {"engine.apply.desired_set.DesiredSet.uses": _no}, _features("dropped containers"), "COMPLETED without", found_by=20
    ),
    "the first worker may write while the second deletes": Mutant(
        {"journal.fence.Fence.has_former": False}, _features("two workers", "latency"), "is left", found_by=388
    ),
    "what others have created again is no member": Mutant(
        {"journal.stored_form.InventoryContent.is_member": _no}, _features("recreated"), "is left", found_by=1
    ),
    "guests do not keep a Namespace or CRD": Mutant(
        {"writes.guests.Guests.reasons": lambda _, lives: dict.fromkeys(map(key_of, lives), "")},
        _features("neighbours", "guests"),
        "deleted what is not its own",
        found_by=0,
    ),
    "what stays is not released from owners that go": Mutant(
        {"engine.delete.rest.Rest._release_from_owners": lambda _, members: members},
        _features("owners"),
        "an owner has taken along",
        found_by=538,
    ),
    "one 404 on a stream counts as all gone": Mutant(
        {"kube.watch.Reflector._is_served": _no, "kube.watch.Unserved": _AllGone, "engine.delete.rest.Rest._misses": _no},
        _features("streams not found"),
        "is left",
        found_by=48,
    ),
}
