# SPDX-License-Identifier: Apache-2.0
"""
A change asks first: what differs is sent as a dry run, so that what the cluster refuses is refused with nothing written.

One step between the first lists and the first write. An object that does not differ costs no request. What only the writes
before it would allow is not known yet: such a refusal is left to the write itself.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from k8s_cr_driver.engine.informers import Informers
from k8s_cr_driver.engine.nodes import Desired
from k8s_cr_driver.engine.run import Run
from k8s_cr_driver.engine.tolerance import can_do_without
from k8s_cr_driver.errors import DriverError, Forbidden, Refused, Said, passes
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, ObjectKey
from k8s_cr_driver.ownership.trial import refusal, trial_of
from k8s_cr_driver.ownership.unchanged import differs
from k8s_cr_driver.ownership.write_errors import ADMISSION, NotReplaced, missing, with_policy_remedy

LISTED_WITHIN = 10.0
"""Seconds, at most, until what can be listed is listed: the server of a kind may be an object of the set."""
PATIENCE = 3.0
"""Seconds for which a dry run is repeated that got no response, 429 or 5xx. The write itself is repeated much longer."""

_QUOTA = GroupKind("", "ResourceQuota")
_DEFINITIONS = frozenset({CRD, _QUOTA})
"""What no webhook, nor another admission plugin, asks about an object."""
_RULES = ADMISSION | _DEFINITIONS


class Asks:
    """The questions about the objects of a set before the first of them is written."""

    def __init__(self, run: Run, nodes: Mapping[ObjectKey, Desired], informers: Informers) -> None:
        self._run, self._nodes, self._informers = run, nodes, informers
        self._trial = trial_of(run.context)
        self._needs = {key: frozenset(node.needs) for key, node in nodes.items()}
        self._waits, self._asked = True, 0
        self._changed: set[ObjectKey] = set()
        run.loop.after(run.operation.share(LISTED_WITHIN), self._stop_waiting)

    def is_listed(self) -> bool:
        """Whether it is known which objects exist, as far as that can be known now."""
        kinds = {key.group_kind for key in self._nodes} & self._informers.objects.keys()
        return not self._waits or all(map(self._informers.is_listed, kinds))

    def is_answered(self) -> bool:
        return self._asked == 0

    def start(self) -> None:
        """Sends what differs. A refusal ends the run."""
        self._changed = {key for key, node in self._nodes.items() if self._differs(node)}
        for key in self._changed:
            node = self._nodes[key]
            ask = functools.partial(self._ask, node)
            self._asked += 1
            self._run.loop.send(ask, functools.partial(self._answered, node), self._not_answered)

    def _stop_waiting(self) -> None:
        self._waits = False

    def _differs(self, node: Desired) -> bool:
        is_known = self._informers.is_listed(node.key.group_kind) and "patch" in node.resource.verbs
        has_ended = node.finished and node.live is None
        return is_known and not has_ended and differs(self._trial, node.obj, node.live)

    def _ask(self, node: Desired) -> DriverError | None:
        def once() -> DriverError | None:
            why = refusal(self._trial, node.obj, node.resource, node.live, finished=node.finished)
            if why is not None and passes(why):
                raise why
            return why

        return self._run.operation.persist(once, PATIENCE)

    def _answered(self, node: Desired, why: DriverError | None) -> None:
        self._asked -= 1
        if why is not None and not self._can_do_without(node, why) and is_final(why, node.key, self._written_before(node)):
            kinds = self._run.context.inventory.content.kinds
            self._run.loop.refuse(with_policy_remedy(missing(why, node.key), kinds))

    def _can_do_without(self, node: Desired, why: DriverError) -> bool:
        """Whether the run ends well though the object is refused."""
        dependents: dict[ObjectKey, list[Desired]] = {}
        for one in self._nodes.values() if node.obj.is_optional() and isinstance(why, Refused) else ():
            for need in self._needs[one.key]:
                dependents.setdefault(need, []).append(one)
        return isinstance(why, Refused) and can_do_without(node, dependents)

    def _not_answered(self, error: DriverError) -> None:
        """The write itself is repeated until the deadline."""
        del error
        self._asked -= 1

    def _written_before(self, node: Desired) -> list[Desired]:
        """What changes before the object is written: what it waits for, and the rules of the set."""
        found, todo = set[ObjectKey](), [node.key]
        while todo:
            needed = self._needs.get(todo.pop(), frozenset()) - found
            found |= needed
            todo += needed
        rules = {key for key in self._changed if key.group_kind in _RULES}
        return [self._nodes[key] for key in sorted(self._changed & found | rules) if key != node.key]


def is_final(why: DriverError, key: ObjectKey, before: Collection[Desired]) -> bool:
    """
    Whether the cluster would refuse an object for the same reason after `before` is written.

    A webhook may look at any object that this one waits for, or be served by it; a policy sees the object and its Namespace.
    So do other admission plugins look at the labels of a Namespace, roles and classes. A quota, and the CRD of a kind, decide
    as they are then.
    """
    said, kinds = Said.of(str(why)), {one.key.group_kind for one in before}
    if Said.DENIED in said:
        is_policy = "ValidatingAdmissionPolicy '" in str(why)
        return kinds.isdisjoint({*ADMISSION, NAMESPACE}) if is_policy else kinds <= _DEFINITIONS
    if Said.QUOTA in said:
        return all(one.key[:3] != (*_QUOTA, key.namespace) for one in before)
    if isinstance(why, Forbidden):
        return kinds <= _DEFINITIONS
    if type(why) in (Refused, NotReplaced):
        return key.group_kind not in {defined_by(one.obj.manifest) for one in before if one.key.group_kind == CRD}
    return True
