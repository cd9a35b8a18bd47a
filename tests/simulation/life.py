# SPDX-License-Identifier: Apache-2.0
"""
The life of one VNF instance, from a seed: its package, its verbs, its workers, and the trouble they are in.

Each verb is what the driver does for it, through `Session`. A worker may crash, fail, or still run when the next one
begins; who asked for the verb retries, or has it rolled back. After some tries the trouble is over, and what was begun
must come to a good end. In the end the instance is terminated, in any case.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from greenlet import GreenletExit

from k8s_cr_driver.engine.run.operation import Operation
from k8s_cr_driver.errors import DriverError, NotOurs, Refused
from k8s_cr_driver.journal.stored_form import NOTHING, InventoryContent
from k8s_cr_driver.kube import connection
from k8s_cr_driver.kube.endpoint import Endpoint
from k8s_cr_driver.vnf.additional_params import Options
from k8s_cr_driver.vnf.session import Session
from tests.fake_api import errors
from tests.fake_api.cluster import DEFAULT_NAMESPACES, Cluster
from tests.fake_api.deletion import NAMESPACES
from tests.fake_api.hand import Hand
from tests.fake_api.kinds import Resource
from tests.fake_api.objects import Key, Object
from tests.simulation import package, stand_ins, verbs
from tests.simulation.client import Client
from tests.simulation.controllers import Controllers
from tests.simulation.entries import Run
from tests.simulation.invariants import Invariants
from tests.simulation.ledger import Ledger
from tests.simulation.operators import Operator
from tests.simulation.scheduler import Scheduler, activated
from tests.simulation.servers import Servers
from tests.simulation.users import Users
from tests.simulation.verbs import Verb
from tests.simulation.weather import Weather

KINDS = frozenset(
    {
        *("Namespace", "ConfigMap", "Secret", "Pod", "PersistentVolumeClaim", "Event"),
        *("Deployment", "ReplicaSet", "StatefulSet", "Job", "ClusterRole"),
        *("CustomResourceDefinition", "SelfSubjectRulesReview"),
    }
)
"""Built-in kinds of the simulated cluster; more would only make its discovery longer."""
OPERATION_SECONDS = 900.0
SHORT = 0.9
"""The share of lives that are short: few objects, one verb at most between the first and the last, few kinds of trouble."""
FEW, FEWEST = 4, 2.5
"""Kinds of trouble in a short life, and in a brief one, on average."""
BRIEF = 16
"""Of so many lives one is as its seed wants it, the others are brief: for the time that they take these find as much."""
ONE_MORE, ONE_MORE_IN_BRIEF, ONE_MORE_WITH_OWNERS = 0.5, 0.3, 0.8
"""How often a verb follows that is neither the first nor the last."""
TRIES = 4
"""Tries of a verb after which the trouble ends."""
PAUSE = 20.0
"""Seconds between two tries without trouble: the cluster's controllers have done by then what was to be done."""

QUIET, LATE_QUIET = 60.0, 300.0
"""Seconds after which nothing happens any more once the trouble is over; with a late collector, for four of its steps."""


@dataclass
class Instance:
    """A VNF instance as Tacker knows it."""

    id: str
    home: str = "default"
    """The namespace of its inventory."""
    objects: list[Object] = field(default_factory=list)
    remembered: InventoryContent = NOTHING
    options: Options = field(default_factory=Options)
    adopts: bool = False
    """Whether its instantiate may adopt: what was adopted no package says, so a rollback goes by the inventory alone."""


@dataclass
class Worker:
    """One run of one verb."""

    name: str
    verb: Verb
    end: stand_ins.Event = field(default_factory=stand_ins.Event)
    """Set when it is over, or has crashed."""
    is_over: bool = False
    error: BaseException | None = None
    record: InventoryContent = NOTHING
    doomed: set[str] = field(default_factory=set)
    """The uids of objects that must be gone, or going."""


@dataclass(frozen=True)
class Outcome:
    """
    `trace` is all that happened, in order: (seconds, words). `objects` is the package of the instance in the end, and
    `applied` what the engine has applied of it, without what differs from life to life; `completed` are the Jobs that have
    run to their end, which nobody runs again when they vanish.
    """

    violations: list[str]
    trace: list[tuple[float, str]]
    requests: int
    workers: int
    objects: list[Object]
    applied: dict[str, Object]
    completed: set[str]


class Life:
    """`is_brief`: it is short, and its package has one object, with the Namespace and the CRD that this needs."""

    def __init__(
        self, seed: str, features: frozenset[str], *, is_brief: bool = False, crashes_at: int | None = None
    ) -> None:
        self.scheduler = Scheduler(seed)
        self._random = random.Random(f"{seed} story")
        self._is_brief, self._is_short = is_brief, is_brief or self._random.random() < SHORT
        few = FEWEST if is_brief else FEW
        self.features = features = _some(self._random, features, few) if self._is_short else features
        self.ledger = Ledger(self.scheduler, features)
        self.weather = Weather(self.scheduler, features, crashes_at)
        self.servers = Servers(self.scheduler, self.ledger, self.weather)
        self.blue = Instance("blue")
        self.users = Users(self.servers, self.blue.id, features)
        self.operator = Operator(self.servers, features)
        self.invariants = Invariants(self.servers, self.users)
        self._begun: list[Worker] = []
        self._asked: dict[str, Worker] = {}
        """Of each instance the worker that was asked last, as Tacker's database knows."""
        self._is_over = False

    @classmethod
    def of(cls, seed: int, features: frozenset[str]) -> Life:
        """That of the seed in a row of lives."""
        return cls(str(seed), features, is_brief=bool(seed % BRIEF))

    def run(self) -> Outcome:
        """From the instantiation to the termination."""
        return self._run(self._tell)

    def grow(self) -> Outcome:
        """Without the termination: `objects` is what the instance must have then."""
        return self._run(self._grow)

    def instantiate(self, objects: list[Object]) -> Outcome:
        """Nothing but that."""
        self.blue.objects = objects
        return self._run(self._begin)

    def _run(self, story: Callable[[], None]) -> Outcome:
        with activated(self.scheduler), surroundings():
            Client.servers = self.servers
            self._prepare()
            self.scheduler.spawn(self.scheduler.process("tacker"), story)
            self.scheduler.run()
        del Client.servers
        if self.servers.is_overrun():
            self.ledger.violated("requests without end")
        elif not self._is_over:
            self.ledger.violated("the story has come to a stand")
        found = self.ledger.violations, self.ledger.trace, self.servers.requests, len(self._begun)
        return Outcome(*found, self.blue.objects, self.invariants.applied(self.blue.id), self.ledger.jobs.completed)

    def _prepare(self) -> None:
        self.servers.cluster.serve_only(KINDS)
        for namespace in _namespaces():
            self.servers.store.put(NAMESPACES, namespace)
        Controllers(self.servers)

    def _tell(self) -> None:
        self.users.begin()
        blue, chance = self.blue, self._random
        has_widgets = chance.random() < 0.4
        if has_widgets:
            self.users.put(package.crd())
        blue.objects = self._first(has_widgets=has_widgets)
        self.operator.begin(blue.objects)
        green = Instance("green", "elsewhere" if "guests" in self.features else "default")
        rolled_back = blue.objects
        if self._perform(blue, verbs.instantiate(blue.objects), verbs.undo_instantiate(blue.objects)):
            self._visit()
            if "neighbours" in self.features and chance.random() < 0.5:
                green.objects = package.neighbour(chance, blue.objects, is_guest="guests" in self.features)
                if not self._perform(green, verbs.instantiate(green.objects), verbs.undo_instantiate(green.objects)):
                    green.objects = []
            one_more = ONE_MORE_IN_BRIEF if self._is_brief else ONE_MORE
            one_more = ONE_MORE_WITH_OWNERS if self.operator.owners else one_more
            while chance.random() < one_more and self._go_on() and not self._is_short:
                pass
            self._perform(blue, verbs.terminate(), None)
            rolled_back = []
        self._settle()
        self.invariants.check_gone(blue.id, rolled_back, by_inventory=bool(rolled_back) and blue.adopts)
        if green.objects:
            self._perform(green, verbs.terminate(), None)
            self._settle()
            self.invariants.check_gone(green.id, [])
        self._end()

    def _grow(self) -> None:
        chance = self._random
        self.blue.objects = self._first()
        goes_on = self._perform(self.blue, verbs.instantiate(self.blue.objects), verbs.undo_instantiate(self.blue.objects))
        while goes_on and chance.random() < 0.7:
            goes_on = self._go_on()
            if self._is_short:
                break
        if not goes_on:
            self.blue.objects = []
        self._settle()
        self._end()

    def _first(self, *, has_widgets: bool = False) -> list[Object]:
        objects = package.first(self._random, "blue", "shared", self.features, has_widgets=has_widgets)
        if self._is_short:
            objects = package.few(self._random, objects, 1 if self._is_brief else self._random.choice((1, 1, 2, 3)))
        if self.operator.is_there:
            objects = package.gathered(self._random, objects)
        if "kept" in self.features:
            package.kept(self._random, objects)
        package.depend(self._random, objects)
        return objects

    def _begin(self) -> None:
        self._perform(self.blue, verbs.instantiate(self.blue.objects), None)
        self._settle()
        self._end()

    def _visit(self) -> None:
        """Users have things beside the instance's, and in what it has made."""
        for feature, visitors in (("guests", package.guests), ("lookalikes", package.lookalikes)):
            for guest in visitors(self.blue.objects) if feature in self.features and self._random.random() < 0.5 else ():
                with contextlib.suppress(errors.ApiError, LookupError):  # where it would be may have gone already
                    self.users.put(guest)

    def _go_on(self) -> bool:
        """One more verb; False if the instance is to go now."""
        blue, chance = self.blue, self._random
        kind = chance.random()
        if kind < 0.3:
            return self._perform(blue, verbs.heal(chance, blue.objects), verbs.terminate())
        scaled = verbs.scale(chance, blue.objects) if kind < 0.6 else None
        newer = scaled or verbs.change(package.second(chance, blue.objects, "blue", self.features, self.operator.owners))
        undo = verbs.undo_scale(blue.objects, scaled) if scaled else verbs.change(blue.objects, yields=True)
        if self._perform(blue, newer, undo):
            blue.objects = newer.desired
        return True

    def _perform(self, instance: Instance, verb: Verb, undo: Verb | None) -> bool:
        """Until it is done; False if it was rolled back instead."""
        wanted = verb
        for number in range(3 * TRIES):  # each refusal names one object, and there are a few
            if number == TRIES:
                self.weather.calm()
                self.users.stop()
            instance.adopts |= wanted.is_first and instance.options.adopt_existing
            worker = self._start(instance, wanted)
            is_overtaken = not self._await(worker, is_patient=number >= TRIES or "two workers" not in self.features)
            if worker.is_over and worker.error is None:
                self._completed(instance, worker)
                return wanted is verb
            if isinstance(worker.error, Refused):
                self._undone(worker)
                self.users.heed(worker.error, instance.id, wanted.promised)
                instance.options = Options(adopt_existing=isinstance(worker.error, NotOurs))
                if wanted.may_fail and self._random.random() < 0.5:
                    return True
            if undo is not None and self._random.random() < (0.6 if is_overtaken else 0.3):
                wanted = verbs.undo_instantiate([]) if verb.is_first and instance.adopts else undo
                instance.options = Options()
            pause = 0.0 if is_overtaken else self._random.choice((0.0, 0.1, 3.0, 20.0))
            self.scheduler.sleep(PAUSE if number >= TRIES else pause)
        self.ledger.violated(f"{wanted.name} fails for good: {worker.error!r:.300}")
        return wanted is verb

    def _undone(self, worker: Worker) -> None:
        """What a refused instantiate has created is deleted again, so its retry is a first run."""
        if worker.verb.is_first and worker.name in self.ledger.founders:
            self.ledger.jobs.forget(())

    def _completed(self, instance: Instance, worker: Worker) -> None:
        verb = worker.verb
        instance.remembered = worker.record
        wanted = {package.named(manifest) for manifest in verb.desired}
        if verb.prunes and wanted:
            self.ledger.named(instance.id, wanted)
        if not verb.desired:
            self.ledger.is_over.add(instance.id)
        if verb.desired and not any(obj["kind"] == "StatefulSet" for obj in verb.desired):
            self.ledger.leave_claims(instance.id)
        self.ledger.jobs.forget(wanted)
        self.invariants.check_completed(instance.id, verb, worker.name, worker.doomed)

    def _await(self, worker: Worker, *, is_patient: bool) -> bool:
        """Until it is over, or dead; False if whoever asked for it had no more patience."""
        if is_patient or self._random.random() < 0.5:
            return worker.end.wait()
        while "early rollbacks" not in self.features and worker.name not in self.ledger.writers:
            if worker.end.wait(0.05):
                return True
        return worker.end.wait(self._random.expovariate(1.0))

    def _start(self, instance: Instance, verb: Verb) -> Worker:
        worker = Worker(f"{instance.id}'s worker {len(self._begun) + 1}", verb)
        process = self.scheduler.process(worker.name)
        process.at_crash = partial(self._crashed, worker)
        self.scheduler.spawn(process, lambda: self._work(instance, worker))
        wanted = frozenset(map(package.named, verb.desired))
        known = frozenset[tuple[Resource, Key]]() if verb.is_first else frozenset(map(package.named, instance.objects))
        self.ledger.begins(worker.name, Run(instance.id, wanted, wanted - known))
        self._begun.append(worker)
        self._asked[instance.id] = worker
        return worker

    def _work(self, instance: Instance, worker: Worker) -> None:
        name = worker.name
        self.ledger.note(f"{name} begins to {worker.verb.name}")
        is_current = lambda: self._asked[instance.id] is worker  # noqa: E731
        operation = Operation(name, instance.id, OPERATION_SECONDS, is_current=is_current)
        try:
            with Session(
                Endpoint(instance.id),
                instance.options,
                operation,
                inventory_namespace=instance.home,
                remembered=instance.remembered,
                keep_autoscaled=worker.verb.keeps_autoscaled,
                yields=worker.verb.yields,
            ) as session:
                worker.doomed = worker.verb.do(session) or set()
                worker.record = _recorded(session.inventory.content)
        except GreenletExit:
            raise
        except DriverError as error:
            worker.error = error
        if worker.error and not self.ledger.has_recorded(worker.name):
            self.ledger.unrecorded(worker.name)
        if worker.error:
            self.ledger.failed(worker.name)
        worker.is_over = True
        self._ended(worker)
        self.ledger.note(f"{name} ends: {type(worker.error).__name__} {str(worker.error).partition(chr(10))[0]}")

    def _crashed(self, worker: Worker) -> None:
        self.ledger.unrecorded(worker.name)
        self.ledger.failed(worker.name)
        self._ended(worker)

    def _ended(self, worker: Worker) -> None:
        self.ledger.ended[worker.name] = self.scheduler.now
        worker.end.set()

    def _end(self) -> None:
        self._is_over = True
        self.scheduler.stop()

    def _settle(self) -> None:
        """Until nobody does anything any more."""
        self.users.stop()
        self.weather.calm()
        for worker in self._begun:
            worker.end.wait()
        self.scheduler.sleep(LATE_QUIET if "late collector" in self.features else QUIET)


def surroundings() -> contextlib.AbstractContextManager[None]:
    """Time, threads, chance and requests as lives have them. Many lives within one begin sooner than each with its own."""
    return stand_ins.patched(connection=(connection.Connection, Client))


def _recorded(content: InventoryContent) -> InventoryContent:
    """What Tacker's record has of an inventory: it names no objects but those that were adopted."""
    known = {"uid": content.uid, "created": content.created}
    return InventoryContent(content.kinds, content.namespaces, content.adopted, content.adopted_uids, **known)


@functools.cache
def _namespaces() -> list[Object]:
    """Those that the cluster has from the beginning, in each life the same."""
    with activated(Scheduler("namespaces")):
        hand = Hand(Cluster())
        return [hand.put(package.namespace(name)) for name in (*DEFAULT_NAMESPACES, "team", "elsewhere")]


def _some(chance: random.Random, features: frozenset[str], few: float) -> frozenset[str]:
    """Those few kinds of trouble that come together: more often than all at once they show what only they can do."""
    return frozenset(one for one in sorted(features) if len(features) <= few or chance.random() < few / len(features))
