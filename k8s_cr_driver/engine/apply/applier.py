# SPDX-License-Identifier: Apache-2.0
"""
The objects that must exist: each is applied as soon as its dependencies are ready, and assessed on every event.

Level based: an event is never interpreted alone, the whole object is assessed again. A transient error is retried with
backoff, any other ends the run.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

from k8s_cr_driver import logs
from k8s_cr_driver.engine.apply.finished import Ends, goes_after_its_end, has_ended_well
from k8s_cr_driver.engine.apply.forced_rollback import StuckPods
from k8s_cr_driver.engine.apply.recreate import Recreator
from k8s_cr_driver.engine.apply.verify import CrdReads, LastLook
from k8s_cr_driver.engine.report.diagnosis import Seen, warning_since
from k8s_cr_driver.engine.run.loop import Overdue, Run
from k8s_cr_driver.engine.run.nodes import Desired, Phase, changes_spec, is_another, is_older, spec_version, version
from k8s_cr_driver.engine.run.tolerance import Tolerance, can_do_without
from k8s_cr_driver.engine.watch.informers import Informers
from k8s_cr_driver.errors import DriverError, Refused
from k8s_cr_driver.journal.writer import Note, Writer
from k8s_cr_driver.kube.discovery import Resource, Resources
from k8s_cr_driver.objects import dependencies
from k8s_cr_driver.objects.crds import defined_by, served_versions
from k8s_cr_driver.objects.fields import field
from k8s_cr_driver.objects.keys import CRD, NAMESPACE, GroupKind, Object, ObjectKey, key_of, split
from k8s_cr_driver.objects.marks import is_optional
from k8s_cr_driver.resources.base import CustomResource
from k8s_cr_driver.resources.health.freshness import ACCEPTED, last_written
from k8s_cr_driver.resources.health.model import CRD_DECIDES, RUNNING, STATUS_OLDER_THAN_SPEC, waiting
from k8s_cr_driver.writes.create_or_apply import LeftToOthers, NotAdopted, write
from k8s_cr_driver.writes.write_errors import Immutable, missing, with_policy_remedy

LOG = logs.logger(__name__)


class Applier:
    """The desired objects of a run; `unready` is empty when all of them are ready."""

    def __init__(self, run: Run, desired: Sequence[CustomResource], last: Collection[ObjectKey] = ()) -> None:
        """`last`: objects that wait until all others are ready."""
        self._operation, self._loop, self._context = run.operation, run.loop, run.context
        self.nodes = _nodes(run.resources, desired, frozenset(last))
        self.unready = dict.fromkeys(self.nodes)
        self.kinds = frozenset(key.group_kind for key in self.nodes)
        self._own_crds = {defined_by(obj.manifest): self.nodes[obj.key] for obj in desired if obj.key.group_kind == CRD}
        self.brought = frozenset(self._own_crds)
        own = {key.name for key in self.nodes if key.group_kind == NAMESPACE}
        self.namespaces = frozenset(own | {key.namespace for key in self.nodes} - {""})
        self._dependents: dict[ObjectKey, list[Desired]] = {}
        self._followers: dict[ObjectKey, list[Desired]] = {}
        for node in self.nodes.values():
            for need in node.needs:
                self._dependents.setdefault(need, []).append(node)
            for first in node.after:
                self._followers.setdefault(first, []).append(node)
        self._notes = Writer(run.context.inventory, run.loop)
        self._ends = Ends(run, self._notes)
        self._stuck_pods = StuckPods(run)
        self._last_look = LastLook(run, self._assess_again)
        self._by_kind: dict[GroupKind, list[Desired]] = {}
        for node in self.nodes.values():
            self._by_kind.setdefault(node.key.group_kind, []).append(node)
        self._crds = CrdReads(run, self._by_kind, self._assess_again)
        self._run = run
        self._informers: Informers
        self._tolerance: Tolerance
        self._recreator: Recreator
        self._rerun: Collection[ObjectKey]
        self._is_held = False

    def uses(self, live: Object) -> bool:
        """Whether desired objects are in this Namespace, or of the kind that this CRD defines."""
        key = key_of(live)
        in_use = key.group_kind == NAMESPACE and key.name in self.namespaces
        return in_use or (key.group_kind == CRD and defined_by(live) in self.kinds)

    @property
    def awaits(self) -> bool:
        """Whether the run waits for one of the objects: for an optional one only until its first write was answered.

        And until it is created again, if the run deletes it for that.
        """
        return any(map(self._is_awaited, self.unready))

    def _is_awaited(self, key: ObjectKey) -> bool:
        node = self.nodes[key]
        is_to_be_sent = node.phase is Phase.SENDING or (node.phase is Phase.BLOCKED and not node.needs)
        is_replaced = node.is_held or (node.live is not None and node.replaces(node.live))
        return not is_optional(node.obj.manifest) or is_to_be_sent or is_replaced

    def live(self) -> list[tuple[Resource, Object]]:
        """The desired objects as they are now, as far as they are stored: reviews are not."""
        stored = (node for node in self.nodes.values() if "get" in node.resource.verbs)
        return [(node.resource, node.live) for node in stored if node.live is not None]

    def start(self, informers: Informers, rerun: Collection[ObjectKey], *, held: bool = False) -> None:
        """
        Kinds whose CRD is part of the set are watched once it is established. `rerun`: finished objects to run again.

        `held`: nothing is written before `write`.
        """
        self._informers, self._rerun, self._is_held = informers, rerun, held
        self._tolerance = Tolerance(self.nodes, self.unready, self.brought, rerun)
        self._recreator = Recreator(
            self._run,
            self._informers,
            self._ends,
            {node.key for node in self.nodes.values() if not node.needs},
            retry=self._retry,
            try_later=self._try_later,
            failed=self._failed,
            mark_unready=self._mark_unready,
        )

    def put_after(self, node: Desired, first: ObjectKey) -> None:
        """`node` is written after `first`, whose write is held, too. The caller knows that this closes no cycle."""
        if first not in node.after:
            node.after.add(first)
            self._followers.setdefault(first, []).append(node)

    def write(self) -> None:
        """Writes what was held until now."""
        self._is_held = False
        for node in self.nodes.values():
            self._try(node)

    def kind_listed(self, kind: GroupKind) -> None:
        """It is known which objects of a kind are ours: by its first list, or the first after the kind was not served."""
        inventory = self._context.inventory
        ended = {key for key, _ in inventory.content.finished}
        for node in self._by_kind.get(kind, ()):
            node.finished = node.finished or (node.key not in self._rerun and node.has_ended(inventory, node.live))
            node.has_former_end = node.key in ended and not node.finished
            self._ends.forget_failed(node, node.live)
            if node.finished and node.live is None:
                self._finish(node)
            else:
                self._try(node)

    def observe(self, node: Desired, live: Object | None) -> None:
        """A watch reports one of our objects; None: it no longer exists."""
        if node.is_left:
            return
        if live is None:
            self._gone(node)
            return
        if node.phase is Phase.SENT:
            self._judge(node, live)
        elif node.observe(live) and node.is_new and has_ended_well(node, live):
            self._ends.note(node)  # before the response to its creation

    def _try(self, node: Desired) -> None:
        """Applies the object if its dependencies are ready, or written, and its kind is listed."""
        is_free = node.phase is Phase.BLOCKED and not (node.needs or node.after) and not self._loop.refusals
        if is_free and not self._is_held and self._informers.is_listed(node.key.group_kind):
            node.phase, node.is_new, node.gone = Phase.SENDING, node.live is None, ""
            request = functools.partial(
                write, self._context, node.obj, node.resource, node.live, vanished=node.vanished, finished=node.finished
            )
            written = functools.partial(self._written, node, node.live)
            self._loop.send(request, written, functools.partial(self._failed, node))

    def _written(self, node: Desired, before: Object | None, live: Object) -> None:
        self._recreator.answered(node)
        self._tried(node)
        if node.is_settled:
            return
        if field(live, "metadata", "uid") == node.gone or self._is_gone(node, live):
            node.phase = Phase.SENT
            self._gone(node)
            return
        if live is not before:  # else nothing was sent, and it may be gone since
            self._informers.wrote(live)
        self._ends.forget_former(node)
        if node.replaces(live):
            node.replaced = ""  # somebody has changed it meanwhile, so that it need not be deleted
        node.phase, node.error, node.attempts, node.vanished = Phase.SENT, None, 0, False
        node.written = version(live)
        # A status may have other fields in the version that is watched, in which the same state is reported soon.
        is_comparable = self._informers.watched_version(node.key.group_kind) in ("", live["apiVersion"])
        is_changed = changes_spec(before, live)
        if is_changed and node.key.group_kind == CRD:
            self._tolerance.redefined(defined_by(live))
        node.obj.old_status = live.get("status") if is_changed and is_comparable else None
        node.awaits_old_status = is_changed and not is_comparable
        newest = node.live if node.live is not None and not is_older(node.live, node.written) else live
        node.live = None
        if newest is not live or is_comparable:
            self._judge(node, newest)

    def _tried(self, node: Desired) -> None:
        """What names the object is written then, also if its own write is repeated: controllers wait for what is missing."""
        for follower in self._followers.pop(node.key, ()):
            follower.after.discard(node.key)
            self._try(follower)

    def _is_gone(self, node: Desired, written: Object) -> bool:
        """Whether another object has been reported since under the name of what was written."""
        return node.live is not None and not is_older(node.live, version(written)) and is_another(node.live, written)

    def _failed(self, node: Desired, error: DriverError) -> None:
        if node.is_settled:
            self._recreator.answered(node)
            return
        if isinstance(error, LeftToOthers):
            node.phase, node.live, node.error, node.is_left = Phase.SENT, None, None, True
            self._recreator.answered(node)
            self._mark_ready(node)
            return
        if isinstance(error, NotAdopted):
            self._adopt(node, error.uid)
            return
        if self._tolerance.may_pass(node, error):
            self._recreator.delayed(node, error)
            node.error = error
            self._try_later(node)
            return
        if isinstance(error, Immutable):
            node.error = None
            self._recreator.add(node, error.live)
            self._tried(node)
        else:
            refused = with_policy_remedy(missing(error, node.key), self._context.inventory.content.kinds)
            if isinstance(refused, Refused) and can_do_without(node, self._dependents):
                node.phase, node.error = Phase.BACKOFF, refused  # is not tried again
                self._tried(node)
            else:
                self._loop.refuse(refused)
        self._recreator.answered(node)

    def _adopt(self, node: Desired, uid: str) -> None:
        """Records it before the first write to the object."""
        node.phase = Phase.BACKOFF
        LOG.warning("%s existed before and is adopted: it will be released, not deleted", node.key)
        written, failed = functools.partial(self._retry, node), functools.partial(self._failed, node)
        self._notes.add(Note(written, failed, adopted=(node.key, uid)))

    def _try_later(self, node: Desired) -> None:
        node.phase = Phase.BACKOFF
        self._tried(node)
        self._loop.after(node.backoff(), self._retry, node)

    def _retry(self, node: Desired) -> None:
        if node.is_settled:
            return
        node.phase = Phase.BLOCKED
        self._try(node)

    def _finish(self, node: Desired) -> None:
        """Nothing is left to do for an object that has run to its end, and has vanished."""
        node.phase, node.finished = Phase.SENT, True
        self._recreator.answered(node)
        self._mark_ready(node)

    def _gone(self, node: Desired) -> None:
        node.vanished = True
        if node.finished:
            self._finish(node)
            return
        if node.phase is Phase.SENDING:
            node.gone = str(field(node.live, "metadata", "uid"))
        node.live, node.written = None, ""
        if node.phase is Phase.SENT:
            node.phase = Phase.BLOCKED
            self._mark_unready(node)
        self._await_crd(node)
        self._try(node)

    def _await_crd(self, node: Desired) -> None:
        """A CRD that is deleted stays until there is no object of its kind: none is created again before the CRD is."""
        crd = self._own_crds.get(node.key.group_kind)
        if crd is not None and crd.key in self.unready:
            node.needs.add(crd.key)
            self._dependents.setdefault(crd.key, []).append(node)

    def _judge(self, node: Desired, live: Object) -> None:
        if node.observe(live):
            if node.obj.old_status is ACCEPTED and spec_version(live) != node.accepted:
                node.obj.old_status = None
            if node.awaits_old_status:
                node.awaits_old_status = False
                node.obj.old_status = live.get("status") if version(live) == node.written else None
            elif node.obj.old_status is not None and node.obj.old_status != live.get("status"):
                node.accept(live)
            self._assess(node, live)

    def _assess_again(self, node: Desired) -> None:
        if node.phase is Phase.SENT and node.live is not None:
            self._assess(node, node.live)

    def _assess(self, node: Desired, live: Object) -> None:
        if node.replaces(live):
            return  # it is about to be deleted, ready or not
        health = self._last_look.health(node, live)
        if health.reason != STATUS_OLDER_THAN_SPEC:
            node.warning = ""
        elif node.warning:
            health = waiting(health.reason, f"{node.warning}; {health.message}", trouble=True)
        node.judge(health)
        self._operation.progress(node.key, node.health.state.value, node.health.message)
        may_be_ruled = node.obj.crd is None and not node.obj.is_ruled(live)
        if node.obj.crd is None and (may_be_ruled or node.health.reason in CRD_DECIDES):
            self._crds.ask(node)
        if node.health.settled and not ((may_be_ruled or node.health.reason == RUNNING) and self._crds.is_awaited(node)):
            if node.obj.has_finished(live):
                self._ends.note(node)
            else:
                node.finished = False
            self._mark_ready(node)
            return
        self._mark_unready(node)
        self._stuck_pods.watch(node, live)
        self._ends.forget_failed(node, live)
        if goes_after_its_end(node, live):
            self._ends.note(node)
        if node.health.reason == STATUS_OLDER_THAN_SPEC and node.aging != version(live):
            node.aging = version(live)
            self._loop.after(self._operation.timing.silence, self._accept_old_status, node, version(live))
        if node.failed_at is not None:
            self._loop.after(self._operation.timing.failure_grace, self._give_up, node, node.failed_at)

    def _mark_ready(self, node: Desired) -> None:
        self._tried(node)
        if node.key not in self.unready:
            return
        del self.unready[node.key]
        if node.key.group_kind == CRD:
            kind = defined_by(node.obj.manifest)
            self._informers.reopen(kind, list(served_versions(node.obj.manifest)))
            self._informers.open(self.kinds & {kind})
        for dependent in self._dependents.pop(node.key, ()):
            dependent.needs.discard(node.key)
            self._try(dependent)

    def _accept_old_status(self, node: Desired, seen: str) -> None:
        """A controller whose status does not change for our change writes nothing, so there is no sign that it has seen it.

        What the status says decides then, unless the controller has said since by Warning events that it cannot do it.
        """
        if not self._awaits_age(node, seen):
            node.aging = "" if node.aging == seen else node.aging
        elif node.live is not None:
            since = last_written(node.live, self._context.manager)
            again, timing = functools.partial(self._accept_old_status, node, seen), self._operation.timing
            ask = functools.partial(warning_since, self._context.client, Seen.of(node), since, timing.warned)
            heard = functools.partial(self._heard, node, seen)
            self._loop.send(ask if since else str, heard, lambda _: self._loop.after(timing.silence, again))

    def _heard(self, node: Desired, seen: str, warning: str) -> None:
        node.aging = "" if node.aging == seen else node.aging
        if node.live is None or not self._awaits_age(node, seen):
            return
        node.warning = warning
        if not warning:
            node.accept(node.live)
        self._assess(node, node.live)

    def _awaits_age(self, node: Desired, seen: str) -> bool:
        """Whether nobody has written the object since it was `seen` with a status that is older than its spec."""
        return node.live is not None and version(node.live) == seen and node.health.reason == STATUS_OLDER_THAN_SPEC

    def _mark_unready(self, node: Desired) -> None:
        self.unready[node.key] = None

    def _give_up(self, node: Desired, failed_at: float) -> None:
        if node.failed_at == failed_at and not is_optional(node.obj.manifest):
            raise Overdue(headline=f"not ready, and {node.key} has failed")


def _nodes(
    resources: Resources, desired: Sequence[CustomResource], last: frozenset[ObjectKey]
) -> dict[ObjectKey, Desired]:
    pairs = [(first, obj.key) for obj in desired for first in obj.applied_after()]
    manifests = [obj.manifest for obj in desired]
    needs = dependencies.graph(manifests, pairs)
    others = needs.keys() - last
    needs = {key: (needed | others if key in last else needed - last) for key, needed in needs.items()} if last else needs
    after = dependencies.written_first(manifests, needs)
    paused_by = {key: obj.key for obj in desired for key in obj.pauses(manifests)}
    nodes = {}
    for obj in sorted(desired, key=lambda one: dependencies.rank(one.key.group_kind)):
        resource = resources.find(obj.key.group_kind, split(obj.manifest["apiVersion"])[1])
        if resource is None:
            raise Refused(f"{obj.key}: the cluster does not know {obj.manifest['apiVersion']} {obj.key.kind}. Install its CRD.")
        if resource.is_unlisted:
            raise Refused(f"{obj.key}: the cluster cannot list {resource.plural}, so nobody can follow it. Leave it out.")
        obj.paused_by = paused_by.get(obj.key)
        nodes[obj.key] = Desired(obj, resource, needs[obj.key], after=after[obj.key])
    return nodes
