# SPDX-License-Identifier: Apache-2.0
"""
A change asks first: what differs is sent as a dry run, so that what the cluster refuses is refused with nothing written.

One step between the first lists and the first write. An object that does not differ costs no request. What the refusal may
depend on and the change writes, too, is written first: such a refusal is left to the write itself.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection

from k8s_cr_driver.engine.apply.desired_set import DesiredSet
from k8s_cr_driver.engine.run.loop import Run
from k8s_cr_driver.engine.run.nodes import Desired
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import DriverError, Forbidden, Refused, Said, passes
from k8s_cr_driver.objects.api_groups import is_builtin
from k8s_cr_driver.objects.crds import defined_by
from k8s_cr_driver.objects.fields import text
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, ObjectKey, split
from k8s_cr_driver.writes.apply import differs
from k8s_cr_driver.writes.create_or_apply import refusal, trial_of
from k8s_cr_driver.writes.write_errors import ADMISSION, NotReplaced, missing, with_policy_remedy

LISTED_WITHIN = 10.0
"""Seconds, at most, until what can be listed is listed: the server of a kind may be an object of the set."""
PATIENCE = 3.0
"""Seconds for which a dry run is repeated that got no response, 429 or 5xx. The write itself is repeated much longer."""

_QUOTA = GroupKind("", "ResourceQuota")
_LIMITS = frozenset({_QUOTA, GroupKind("", "LimitRange")})
"""What the API server itself looks up in the namespace of an object."""
_DEFINITIONS = _LIMITS | {CRD}
"""What no webhook asks about an object."""
_POLICY = GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
_BY_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)'")
"""From the API server's words: plugin/policy/validating, dispatcher."""
_Kinds = Collection[GroupKind]


class DryRuns:
    """Those of one run, before the first of its objects is written."""

    def __init__(self, run: Run, desired: DesiredSet, informers: Informers) -> None:
        self._run, self._set, self._nodes, self._informers = run, desired, desired.nodes, informers
        self._trial = trial_of(run.context)
        self._first: dict[ObjectKey, set[ObjectKey]] = {key: node.needs | node.after for key, node in self._nodes.items()}
        self._waits, self._asked = True, 0
        self._changed: set[ObjectKey] = set()
        run.loop.after(run.operation.share(LISTED_WITHIN), self._stop_waiting)

    def is_listed(self) -> bool:
        """Whether it is known which objects exist, as far as that can be known now."""
        return not self._waits or self._informers.opened_are_listed(self._set.kinds)

    def is_answered(self) -> bool:
        return self._asked == 0

    def start(self) -> None:
        """Sends what differs. A refusal ends the run."""
        self._changed = {key for key, node in self._nodes.items() if self._differs(node)}
        self._asked = len(self._changed)
        for key in self._changed:
            self._run.loop.start(self._ask(self._nodes[key]))

    async def _ask(self, node: Desired) -> None:
        with contextlib.suppress(DriverError):  # the write itself is repeated until the deadline
            self._answered(node, *await self._run.loop.call(self._answer, node))
        self._asked -= 1

    def _stop_waiting(self) -> None:
        self._waits = False

    def _differs(self, node: Desired) -> bool:
        is_known = self._informers.is_listed(node.key.group_kind) and "patch" in node.resource.verbs
        has_ended = node.finished and node.live is None
        return is_known and not has_ended and differs(self._trial, node.obj, node.live)

    def _answer(self, node: Desired) -> tuple[DriverError | None, _Kinds | None]:
        def once() -> DriverError | None:
            why = refusal(self._trial, node.obj, node.resource, node.live, finished=node.finished)
            if why is not None and passes(why):
                raise why
            return why

        why = self._run.operation.persist(once, PATIENCE)
        return why, self._parameters(str(why)) if len(self._changed) > 1 else ()

    def _parameters(self, why: str) -> _Kinds | None:
        """The kind of the objects that the policy of a refusal reads; none if there is no policy, None if it is not known."""
        policy, resource = _BY_POLICY.search(why), self._run.resources.find(_POLICY)
        if policy is None:
            return ()
        try:
            live = self._run.context.client.read(resource, ObjectKey(*_POLICY, "", policy[1])) if resource else {}
        except DriverError:  # RBAC may forbid it
            return None
        kind = text(live, "spec", "paramKind", "kind")
        return {GroupKind(split(text(live, "spec", "paramKind", "apiVersion"))[0], kind)} if kind else ()

    def _answered(self, node: Desired, why: DriverError | None, parameters: _Kinds | None) -> None:
        if why is None or (isinstance(why, Refused) and self._set.can_do_without(node)):
            return
        rules = self._rules(node, parameters or ())
        before = [self._nodes[key] for key in sorted(self._changed & self._written_before(node.key) | rules)]
        if is_final(why, node.key, before, parameters):
            kinds = self._run.context.inventory.content.kinds
            self._run.loop.refuse(with_policy_remedy(missing(why, node.key), kinds))
        for key in sorted(rules):
            if node.key not in self._written_before(key):
                self._first[node.key] |= {key}
                self._set.put_after(node, key)

    def _written_before(self, key: ObjectKey) -> set[ObjectKey]:
        """What is written before the object: what it waits for, and what it names."""
        found, todo = set[ObjectKey](), [key]
        while todo:
            first = self._first[todo.pop()] - found
            found |= first
            todo += first
        return found - {key}

    def _rules(self, node: Desired, parameters: _Kinds) -> set[ObjectKey]:
        """What changes and decides about the object though the object does not name it."""
        return {key for key in self._changed if key != node.key and _decides(key, node.key, parameters)}


def _decides(one: ObjectKey, about: ObjectKey, parameters: _Kinds) -> bool:
    """Also a class that the object does not name: one may be the default. Rules of admission do not decide about rules."""
    kind = one.group_kind
    if about.group_kind in ADMISSION:
        return False
    is_class = is_builtin(kind) and kind.kind.endswith("Class")
    return kind in ADMISSION or kind in parameters or is_class or (kind in _LIMITS and one.namespace == about.namespace)


def is_final(why: DriverError, key: ObjectKey, before: Collection[Desired], parameters: _Kinds | None = ()) -> bool:
    """
    Whether the cluster would refuse an object for the same reason after `before` is written.

    A webhook may look at any object that this one waits for or names, or be served by it; a policy sees the object, its
    Namespace and the objects of its `parameters`, None if these are not known. So do other admission plugins look at the labels
    of a Namespace, limits, roles and classes. A quota, and the CRD of a kind, decide as they are then.
    """
    said, kinds = Said.of(str(why)), {one.key.group_kind for one in before}
    if Said.DENIED in said:
        is_policy = _BY_POLICY.search(str(why)) and parameters is not None
        return kinds.isdisjoint({*ADMISSION, NAMESPACE, *(parameters or ())}) if is_policy else kinds <= _DEFINITIONS
    if Said.QUOTA in said:
        return all(one.key[:3] != (*_QUOTA, key.namespace) for one in before)
    if isinstance(why, Forbidden):
        return all(one.key.group_kind == CRD or _is_elsewhere(one.key, key) for one in before)
    if type(why) in (Refused, NotReplaced):
        return key.group_kind not in {defined_by(one.obj.manifest) for one in before if one.key.group_kind == CRD}
    return True


def _is_elsewhere(one: ObjectKey, about: ObjectKey) -> bool:
    return one.group_kind in _LIMITS and one.namespace != about.namespace
